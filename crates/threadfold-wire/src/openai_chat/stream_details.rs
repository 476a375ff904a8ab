//! `reasoning_details` of a streamed response: what gateways give back to the model as it came.
//!
//! Texts and summaries come piece by piece. Pieces next to each other belong together if they are
//! of one type, one index and, where both have one, one id. What is encrypted comes whole.

use crate::{
    assembly::Merged,
    fields::{Fields, text},
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Json, Text};

/// The entries so far.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Detail>);

#[derive(Debug)]
enum Detail {
    /// An entry that comes piece by piece: its fields, and the one that grows.
    Growing(Merged, &'static str, String),
    Whole(Json),
}

impl Details {
    /// Takes more entries, or pieces of them.
    pub(super) fn add(&mut self, items: &[Raw<'_>]) {
        for raw in items {
            let piece = Fields::of(*raw).and_then(Piece::read);
            let Some(Piece { fields, key, text }) = piece else {
                self.0.push(Detail::Whole(raw.json()));
                continue;
            };
            match self.0.last_mut() {
                Some(Detail::Growing(begun, name, grown))
                    if *name == key && fits(begun, &fields) =>
                {
                    begun.merge(&fields);
                    grown.push_str(&text);
                }
                Some(Detail::Growing(..) | Detail::Whole(_)) | None => {
                    let mut begun = Merged::default();
                    begun.merge(&fields);
                    self.0.push(Detail::Growing(begun, key, text.as_str().into()));
                }
            }
        }
    }

    /// The entries as a response has them.
    pub(super) fn tree(&self) -> Tree {
        Tree::Array(self.0.iter().map(Detail::tree).collect())
    }
}

impl Detail {
    fn tree(&self) -> Tree {
        match self {
            Self::Whole(json) => json.clone().into(),
            Self::Growing(fields, key, text) => {
                let mut object = Object::default();
                for (name, value) in fields.fields() {
                    object.push(name.to_owned(), value.clone());
                    if name == "type" {
                        object.push(*key, text.clone());
                    }
                }
                object.into()
            }
        }
    }
}

/// A piece of a text or of a summary.
struct Piece<'a> {
    fields: Fields<'a>,
    key: &'static str,
    text: Text,
}

impl<'a> Piece<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let key = match fields.get("type").and_then(text)?.as_str() {
            "reasoning.text" => "text",
            "reasoning.summary" => "summary",
            _ => return None,
        };
        let text = match fields.get(key) {
            // Such a piece brings a signature.
            None => Text::default(),
            Some(raw) if raw.get() == "null" => Text::default(),
            Some(raw) => text(raw)?,
        };
        fields.take(key);
        Some(Self { fields, key, text })
    }
}

/// Whether a piece goes on with an entry.
fn fits(begun: &Merged, piece: &Fields<'_>) -> bool {
    let one = |key| begun.get(key).map(Json::as_str).filter(|text| *text != "null");
    let other = |key| piece.get(key).map(Raw::get).filter(|text| *text != "null");
    let id = one("id").is_none() || other("id").is_none() || one("id") == other("id");
    id && one("index") == other("index")
}
