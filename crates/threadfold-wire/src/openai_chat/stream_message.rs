//! The message of a streamed response.
//!
//! | of a delta | becomes |
//! |---|---|
//! | `content`, `refusal`, `reasoning_content`, `reasoning` | one text each |
//! | a `content` of parts | parts, texts side by side joined |
//! | no content, or one of no text | `null` beside calls, else what it was |
//! | `tool_calls`, `function_call` | calls; see `stream_call` |
//! | `reasoning_details` | entries; see `stream_details` |
//! | `annotations` | one list |
//! | `audio` | one object, its `data` and `transcript` joined |
//! | any other field | the last that came |

use super::{
    marks::REASONING,
    stream_call::{Call, Calls},
    stream_details::Details,
};
use crate::{
    assembly::Merged,
    fields::{Fields, items, text},
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Delta, Json, Text};

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Message {
    content: Vec<Piece>,
    /// Whether a content of no text was spelled out.
    empty: bool,
    refusal: Option<Said>,
    reasoning: Vec<(&'static str, String)>,
    details: Option<Details>,
    annotations: Option<Vec<Tree>>,
    audio: Option<Audio>,
    function_call: Option<Call>,
    calls: Calls,
    rest: Merged,
}

/// A piece of the content.
#[derive(Debug)]
enum Piece {
    Text(Said),
    Part(Json),
}

/// A text of the answer. White space at its beginning is not reported before there is more: a text of
/// nothing else is none.
#[derive(Debug, Default)]
struct Said {
    text: String,
    reported: bool,
}

#[derive(Debug, Default)]
struct Audio {
    fields: Merged,
    texts: Vec<(&'static str, String)>,
}

impl Message {
    /// Takes a delta of the response of this id, and returns what it adds to the answer.
    pub(super) fn add(&mut self, mut fields: Fields<'_>, response: &str) -> Vec<Delta> {
        let mut deltas = self.reasoning(&mut fields);
        self.content(&mut fields, &mut deltas);
        if let Some(piece) = take_piece(&mut fields, "refusal") {
            deltas.extend(self.refusal.get_or_insert_default().add(&piece));
        }
        self.lists(&mut fields);
        if let Some(audio) = take_object(&mut fields, "audio") {
            self.audio.get_or_insert_default().add(audio);
        }
        if let Some(call) = take_object(&mut fields, "function_call") {
            let own = self.function_call.get_or_insert_with(|| Call::deprecated(response));
            deltas.extend(own.add_body("function_call", call));
        }
        if let Some(calls) = fields.get("tool_calls").and_then(items) {
            fields.take("tool_calls");
            for call in calls.into_iter().filter_map(Fields::of) {
                deltas.extend(self.calls.add(call));
            }
        }
        fields.take("role");
        self.rest.merge(&fields);
        deltas
    }

    /// The message as a response has it.
    pub(super) fn tree(&self) -> Tree {
        let mut object = Object::default().with("role", "assistant");
        object.push("content", self.content_tree());
        let known = self.known();
        // What is of another form than it should be, or `null`, is among the rest.
        for (key, value) in self.rest.fields() {
            if known.iter().all(|(name, _)| *name != key) {
                object.push(key.to_owned(), value.clone());
            }
        }
        for (key, value) in known {
            object.push(key, value);
        }
        object.into()
    }

    fn known(&self) -> Vec<(&'static str, Tree)> {
        let mut known: Vec<(&'static str, Tree)> =
            self.reasoning.iter().map(|(key, text)| (*key, text.clone().into())).collect();
        let others = [
            ("reasoning_details", self.details.as_ref().map(Details::tree)),
            ("refusal", self.refusal.as_ref().map(|said| said.text.clone().into())),
            ("annotations", self.annotations.clone().map(Tree::Array)),
            ("audio", self.audio.as_ref().map(Audio::tree)),
            ("function_call", self.function_call.as_ref().map(|call| call.body().into())),
            ("tool_calls", self.calls.tree()),
        ];
        known.extend(others.into_iter().filter_map(|(key, value)| Some((key, value?))));
        known
    }

    fn content_tree(&self) -> Tree {
        let calls = self.function_call.is_some() || !self.calls.is_empty();
        match self.content.as_slice() {
            [] if self.empty && !calls => "".into(),
            [] => Tree::Null,
            [Piece::Text(said)] => said.text.clone().into(),
            pieces => Tree::Array(pieces.iter().map(Piece::tree).collect()),
        }
    }

    /// Some servers send the same reasoning under two names: it is reported once.
    fn reasoning(&mut self, fields: &mut Fields<'_>) -> Vec<Delta> {
        let mut reported: Vec<Delta> = Vec::new();
        for key in REASONING {
            if let Some(text) = take_piece(fields, key) {
                grow(&mut self.reasoning, key, &text);
                let delta = Delta::Thinking { text };
                if reported.last() != Some(&delta) {
                    reported.push(delta);
                }
            }
        }
        reported
    }

    fn content(&mut self, fields: &mut Fields<'_>, deltas: &mut Vec<Delta>) {
        let Some(raw) = fields.take("content").filter(|raw| raw.get() != "null") else { return };
        self.empty = true;
        if let Some(piece) = text(raw) {
            deltas.extend(self.say(&piece));
        }
        for raw in items(raw).into_iter().flatten() {
            match plain_text(raw) {
                Some(piece) => deltas.extend(self.say(&piece)),
                None => self.content.push(Piece::Part(raw.json())),
            }
        }
    }

    fn say(&mut self, piece: &Text) -> Option<Delta> {
        if piece.is_empty() {
            return None;
        }
        if !matches!(self.content.last(), Some(Piece::Text(_))) {
            self.content.push(Piece::Text(Said::default()));
        }
        match self.content.last_mut() {
            Some(Piece::Text(said)) => said.add(piece),
            Some(Piece::Part(_)) | None => None,
        }
    }

    fn lists(&mut self, fields: &mut Fields<'_>) {
        if let Some(more) = fields.get("annotations").and_then(items) {
            fields.take("annotations");
            let more = more.into_iter().map(|raw| Tree::Raw(raw.json()));
            self.annotations.get_or_insert_default().extend(more);
        }
        if let Some(more) = fields.get("reasoning_details").and_then(items) {
            fields.take("reasoning_details");
            self.details.get_or_insert_default().add(&more);
        }
    }
}

impl Said {
    fn add(&mut self, piece: &Text) -> Option<Delta> {
        self.text.push_str(piece);
        if self.reported {
            return Some(Delta::Text { text: piece.clone() });
        }
        self.reported = !piece.is_blank();
        self.reported.then(|| Delta::Text { text: self.text.as_str().into() })
    }
}

impl Piece {
    fn tree(&self) -> Tree {
        match self {
            Self::Text(said) => Object::typed("text").with("text", said.text.clone()).into(),
            Self::Part(part) => part.clone().into(),
        }
    }
}

impl Audio {
    fn add(&mut self, mut fields: Fields<'_>) {
        for key in ["data", "transcript"] {
            if let Some(piece) = take_piece(&mut fields, key) {
                grow(&mut self.texts, key, &piece);
            }
        }
        self.fields.merge(&fields);
    }

    fn tree(&self) -> Tree {
        let mut object = self.fields.object().unwrap_or_default();
        for (key, text) in &self.texts {
            object.set(*key, text.clone());
        }
        object.into()
    }
}

fn grow(texts: &mut Vec<(&'static str, String)>, key: &'static str, piece: &str) {
    match texts.iter_mut().find(|(name, _)| *name == key) {
        Some((_, text)) => text.push_str(piece),
        None => texts.push((key, piece.to_owned())),
    }
}

/// Takes a text out; `None` if it is empty, or none.
fn take_piece(fields: &mut Fields<'_>, key: &str) -> Option<Text> {
    fields.take_text(key).filter(|text| !text.is_empty())
}

fn take_object<'a>(fields: &mut Fields<'a>, key: &str) -> Option<Fields<'a>> {
    let object = Fields::of(fields.get(key)?)?;
    fields.take(key);
    Some(object)
}

/// The text of a part that has nothing else.
fn plain_text(raw: Raw<'_>) -> Option<Text> {
    let mut fields = Fields::of(raw)?;
    let text = fields.take_text("text")?;
    let plain = fields.take_text("type").is_some_and(|kind| kind == "text");
    (plain && fields.left() == 0).then_some(text)
}
