//! A block of a streamed response.

use crate::{
    assembly::{Merged, unreadable},
    fields::{Fields, items, text},
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Delta, Json, ModelError, Text};

/// A block in the making: how it began, and what came since.
#[derive(Debug)]
pub(super) struct Block {
    kind: Text,
    id: Text,
    begun: Merged,
    /// Texts that come piece by piece, by the field that they are.
    texts: Vec<(&'static str, String)>,
    /// The text of an input, which is JSON when it is complete.
    input: String,
    citations: Vec<Json>,
    stopped: bool,
}

impl Block {
    /// Returns a block that begins with these fields.
    pub(super) fn new(fields: &Fields<'_>) -> Self {
        let mut begun = Merged::default();
        begun.merge(fields);
        let field = |key: &str| fields.get(key).and_then(text).unwrap_or_default();
        Self {
            kind: field("type"),
            id: field("id"),
            begun,
            texts: Vec::new(),
            input: String::new(),
            citations: Vec::new(),
            stopped: false,
        }
    }

    /// What its beginning adds to the answer.
    pub(super) fn begin(&self) -> Vec<Delta> {
        let said = |key: &str| self.field(key).filter(|text| !text.is_empty());
        let delta = match self.kind.as_str() {
            "text" => said("text").map(|text| Delta::Text { text }),
            "thinking" => said("thinking").map(|text| Delta::Thinking { text }),
            "tool_use" => {
                self.field("name").map(|name| Delta::ToolUse { id: self.id.clone(), name })
            }
            _ => None,
        };
        delta.into_iter().collect()
    }

    /// Takes a `delta` and returns what it adds to the answer.
    pub(super) fn add(&mut self, fields: Fields<'_>) -> Result<Vec<Delta>, ModelError> {
        let kind = fields.get("type").and_then(text).unwrap_or_default();
        let piece = |key: &str| {
            let piece = fields.get(key).and_then(text);
            piece.ok_or_else(|| unreadable(&format!("a {kind} has no {key}")))
        };
        let delta = match kind.as_str() {
            "text_delta" => self.grow("text", piece("text")?),
            "thinking_delta" => self.grow("thinking", piece("thinking")?),
            "input_json_delta" => self.grow_input(piece("partial_json")?),
            "signature_delta" => {
                self.begun
                    .set("signature", serde_json::Value::from(piece("signature")?.as_str()).into());
                None
            }
            "citations_delta" => {
                self.citations.extend(fields.get("citation").map(Raw::json));
                None
            }
            "compaction_delta" => {
                let mut fields = fields;
                fields.take("type");
                self.begun.merge(&fields);
                None
            }
            _ => None,
        };
        Ok(delta.into_iter().collect())
    }

    /// Ends the block and returns what that adds to the answer: an input that came whole.
    pub(super) fn stop(&mut self) -> Vec<Delta> {
        self.stopped = true;
        let input = self.begun.get("input").filter(|input| input.as_str() != "{}");
        let whole = input.filter(|_| self.kind == "tool_use" && self.input.is_empty());
        let delta = whole
            .map(|input| Delta::ToolInput { id: self.id.clone(), text: input.as_str().into() });
        delta.into_iter().collect()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The block as a response has it.
    pub(super) fn tree(&self) -> Tree {
        let mut object = Object::default();
        for (key, value) in self.begun.fields() {
            object.push(key.to_owned(), self.grown(key).unwrap_or_else(|| value.clone().into()));
        }
        let keys = self.texts.iter().map(|(key, _)| *key).chain(["input", "citations"]);
        for key in keys.filter(|key| self.begun.get(key).is_none()) {
            object.set_some(key, self.grown(key));
        }
        object.into()
    }

    /// A field, where it came in pieces.
    fn grown(&self, key: &str) -> Option<Tree> {
        match key {
            // A call that was cut off holds a text that is no JSON. It is kept as that text.
            "input" if !self.input.trim().is_empty() => {
                let input = Json::parse(&self.input);
                Some(input.map_or_else(|_| self.input.clone().into(), Tree::from))
            }
            "citations" if !self.citations.is_empty() => {
                let begun = self.begun.get("citations").and_then(|json| items(Raw::of(json)));
                let begun = begun.into_iter().flatten().map(Raw::json);
                Some(Tree::Array(
                    begun.chain(self.citations.iter().cloned()).map(Tree::from).collect(),
                ))
            }
            _ => {
                let text = self.texts.iter().find(|(name, _)| *name == key);
                text.map(|(_, text)| text.clone().into())
            }
        }
    }

    fn grow(&mut self, key: &'static str, piece: Text) -> Option<Delta> {
        match self.texts.iter_mut().find(|(name, _)| *name == key) {
            Some((_, text)) => text.push_str(&piece),
            None => {
                let begun = self.field(key).unwrap_or_default();
                self.texts.push((key, format!("{begun}{piece}")));
            }
        }
        match self.kind.as_str() {
            _ if self.kind != key || piece.is_empty() => None,
            "text" => Some(Delta::Text { text: piece }),
            "thinking" => Some(Delta::Thinking { text: piece }),
            _ => None,
        }
    }

    fn grow_input(&mut self, piece: Text) -> Option<Delta> {
        self.input.push_str(&piece);
        let is_ours = self.kind == "tool_use" && !piece.is_empty();
        is_ours.then(|| Delta::ToolInput { id: self.id.clone(), text: piece })
    }

    /// A field of the beginning that is a text.
    fn field(&self, key: &str) -> Option<Text> {
        text(Raw::of(self.begun.get(key)?))
    }
}
