//! What messages and results hold, in both dialects of OpenAI: one string or a list of parts.

use super::{
    extras::own_object,
    tree::{Object, Tree},
};
use threadfold_core::message::{Extra, Json, MediaSource, Text};

/// One piece of a content.
#[derive(Debug)]
pub(super) enum Piece {
    /// Text without fields of its own, which may stand as a string.
    Plain(Text),
    /// A whole content as it came: a string, or the output of a call in a form of its own.
    Whole(Json),
    /// A part.
    Part(Tree),
}

impl Piece {
    /// A text with these extra fields, whose part is of this type.
    pub(super) fn text(codec: &str, kind: &'static str, text: Text, extra: &Extra) -> Self {
        let fields = own_object(codec, extra);
        if fields.len() == 0 {
            return Self::Plain(text);
        }
        Self::Part(fields.with("type", kind).with("text", text).into())
    }
}

/// Returns a content of these pieces, texts among them as parts of this type. The form is that in
/// which it came; where there is none, one plain text stands as a string. `None` without pieces.
pub(super) fn content(pieces: Vec<Piece>, form: Option<&str>, kind: &'static str) -> Option<Tree> {
    let alone = pieces.len() == 1 && form != Some("array");
    match pieces.first()? {
        Piece::Plain(text) if alone => Some(text.clone().into()),
        Piece::Whole(json) if alone => Some(json.clone().into()),
        Piece::Part(whole) if alone && form == Some("whole") => Some(whole.clone()),
        Piece::Plain(_) | Piece::Whole(_) | Piece::Part(_) => {
            Some(Tree::Array(pieces.into_iter().map(|piece| part(piece, kind)).collect()))
        }
    }
}

fn part(piece: Piece, kind: &'static str) -> Tree {
    match piece {
        Piece::Plain(text) => Object::typed(kind).with("text", text).into(),
        Piece::Whole(json) if json.as_str().starts_with('"') => {
            Object::typed(kind).with("text", json).into()
        }
        Piece::Whole(json) => json.into(),
        Piece::Part(part) => part,
    }
}

/// The content of a result that says nothing, in the form in which it came.
pub(super) fn no_content(form: Option<&str>) -> Option<Tree> {
    match form {
        Some("absent") => None,
        Some("null") => Some(Tree::Null),
        Some("empty_array") => Some(Tree::Array(Vec::new())),
        Some(_) | None => Some(Tree::Word("")),
    }
}

/// The address of a picture or a document: the data themselves, or where they are.
pub(super) fn address(source: &MediaSource) -> Option<Text> {
    match source {
        MediaSource::Base64 { media_type, data } => {
            Some(format!("data:{media_type};base64,{data}").into())
        }
        MediaSource::Url { url } => Some(url.clone()),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => None,
    }
}
