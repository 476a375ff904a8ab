//! The messages of a body as blocks with their places.

use serde_json::{Value, json};

use super::super::vendor::{items, word};

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) role: String,
    pub(super) blocks: Vec<Block>,
}

/// A block, with its message and its place there.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) at: (usize, usize),
    pub(super) value: Value,
}

impl Block {
    pub(super) fn path(&self) -> String {
        format!("messages.{}.content.{}", self.at.0, self.at.1)
    }

    pub(super) fn kind(&self) -> &str {
        word(&self.value, "type")
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.kind(), "thinking" | "redacted_thinking")
    }

    /// The signature of thinking, or what stands for it.
    pub(super) fn signature(&self) -> &str {
        word(&self.value, if self.kind() == "thinking" { "signature" } else { "data" })
    }
}

/// Returns the messages as they were sent. A text is one block.
pub(super) fn turns(body: &Value) -> Vec<Turn> {
    let messages = items(body.get("messages")).enumerate();
    let turns = messages.map(|(index, message)| {
        let blocks = blocks(message.get("content"));
        let blocks = blocks.into_iter().enumerate();
        let blocks = blocks.map(|(place, value)| Block { at: (index, place), value });
        Turn { role: word(message, "role").to_owned(), blocks: blocks.collect() }
    });
    turns.collect()
}

/// Returns the messages as the server reads them: neighbours of one role are one.
pub(super) fn merged(turns: &[Turn]) -> Vec<Turn> {
    let mut merged: Vec<Turn> = Vec::new();
    for turn in turns {
        match merged.last_mut() {
            Some(last) if last.role == turn.role => last.blocks.extend(turn.blocks.iter().cloned()),
            _ => merged.push(turn.clone()),
        }
    }
    merged
}

/// The blocks of a content or of a system prompt.
pub(super) fn blocks(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        content => items(content).cloned().collect(),
    }
}
