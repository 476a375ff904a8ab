//! The content of a thread, piece by piece, and whether a body still holds it, at any position.

use std::collections::HashSet;

use serde_json::{Value, json};
use threadfold::{
    ContentBlock, Message,
    message::{Json, MediaSource, Text, ToolInput},
};

/// How a piece depends on its dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every dialect can express it.
    Said,
    /// Reasoning of the model.
    Thought,
    /// The name of a document, which a dialect may have to change.
    Name,
    /// Only its author can read it: a signature, an encrypted or an unknown block.
    Sealed,
    /// A call of a provider's own tool, or its result.
    Server,
}

/// One piece.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Text(String),
    Tree(Value),
}

/// The pieces of a block.
pub(crate) fn pieces(block: &ContentBlock) -> Vec<Piece> {
    use Kind::{Name, Said, Sealed, Server, Thought};
    let text = |kind, text: &str| Piece { kind, content: Content::Text(text.trim().to_owned()) };
    let tree = |kind, json: &Json| Piece { kind, content: Content::Tree(json.to_value().unwrap()) };
    let media = |source: &MediaSource| match source {
        MediaSource::Base64 { data, .. } => text(Said, data),
        MediaSource::Url { url } => text(Said, url),
        MediaSource::File { id } => text(Said, id),
        MediaSource::Text { text: content, .. } => text(Said, content),
        MediaSource::Opaque { value, .. } => tree(Sealed, value),
    };
    let found = match block {
        ContentBlock::Text(block) => vec![text(Said, &block.text)],
        ContentBlock::SystemReminder(block) => vec![text(Said, &block.text)],
        ContentBlock::ContextUpdate(block) => vec![text(Said, &block.text)],
        ContentBlock::Summary(block) => vec![text(Said, &block.text)],
        ContentBlock::Checkpoint(block) => vec![text(Said, &format!("<checkpoint:{}>", block.id))],
        ContentBlock::Image(block) => vec![media(&block.source)],
        ContentBlock::Document(block) => {
            let beside = [&block.title, &block.context].into_iter().flatten();
            beside.map(|beside| text(Name, beside)).chain([media(&block.source)]).collect()
        }
        ContentBlock::Thinking(block) => {
            let signature = block.signature.iter().map(|signature| text(Sealed, signature));
            // Some dialects divide reasoning into several parts.
            let thoughts = block.text.split("\n\n").map(|thought| text(Thought, thought));
            signature.chain(thoughts).collect()
        }
        ContentBlock::RedactedThinking(block) => vec![text(Sealed, &block.data)],
        ContentBlock::ToolUse(call) => vec![input(&call.input)],
        ContentBlock::ToolResult(result) => result.content.iter().flat_map(pieces).collect(),
        ContentBlock::ServerToolUse(call) => vec![tree(Server, &call.input)],
        ContentBlock::ServerToolResult(result) => vec![tree(Server, &result.content)],
        ContentBlock::Opaque(opaque) => vec![tree(Sealed, &opaque.value)],
    };
    let says = |piece: &Piece| !matches!(&piece.content, Content::Text(text) if text.is_empty());
    found.into_iter().filter(says).collect()
}

fn input(input: &ToolInput) -> Piece {
    let read = input.json().ok().filter(|_| !input.as_str().trim().is_empty());
    let content = match read.and_then(|json| json.to_value().ok()) {
        Some(tree) => Content::Tree(tree),
        None => Content::Text(input.as_str().trim().to_owned()),
    };
    Piece { kind: Kind::Said, content }
}

/// All texts of a body.
#[derive(Debug, Default)]
pub(crate) struct Held {
    whole: HashSet<String>,
    texts: Vec<String>,
}

impl Held {
    pub(crate) fn of(body: &Json) -> Self {
        let mut held = Self::default();
        held.add(&body.to_value().unwrap());
        held
    }

    fn add(&mut self, tree: &Value) {
        self.whole.insert(tree.to_string());
        match tree {
            Value::String(text) => {
                // Some dialects write inputs and results as text.
                let inner = serde_json::from_str(text).ok();
                inner.iter().for_each(|inner| self.add(inner));
                self.whole.insert(text.trim().to_owned());
                self.texts.push(text.clone());
                if text.contains("<\\") || text.contains("</\\") {
                    self.texts.push(bare(text));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.add(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(crate) fn has(&self, piece: &Piece) -> bool {
        match &piece.content {
            Content::Text(text) => {
                // Gemini uses another alphabet for Base64.
                self.whole.contains(text)
                    || self.whole.contains(&text.replace('+', "-").replace('/', "_"))
                    || self.texts.iter().any(|held| held.contains(text))
                    || self.texts.iter().any(|held| held.contains(&bare(text)))
            }
            Content::Tree(tree) => {
                let text = tree.to_string();
                self.whole.contains(&text) || self.texts.iter().any(|held| held.contains(&text))
            }
        }
    }
}

/// Returns a text without the backslashes that escape our tags in it.
fn bare(text: &str) -> String {
    text.replace("<\\", "<").replace("</\\", "</")
}

/// Adds a unique word to every piece of a thread, so that no piece can be taken for another.
pub(crate) fn marked(thread: Vec<Message>) -> Vec<Message> {
    let mut number = 0;
    thread
        .into_iter()
        .map(|mut message| {
            message.make_mut().content.iter_mut().for_each(|block| mark(block, &mut number));
            message
        })
        .collect()
}

fn mark(block: &mut ContentBlock, number: &mut u32) {
    *number += 1;
    // Eight characters, so that the word is valid Base64 too.
    let word = format!("zq{:05}z", *number);
    let text = |text: &mut Text| {
        // A text that looks like a marker stays unchanged.
        if !text.is_blank() && !text.starts_with('<') {
            *text = format!("{text} {word}").into();
        }
    };
    let tree = |json: &mut Json| {
        let mut value = json.to_value().unwrap();
        match &mut value {
            Value::Object(fields) => drop(fields.insert("mark".into(), json!(word))),
            Value::Array(items) => items.push(json!({"type": "mark", "mark": word})),
            _ => return,
        }
        *json = value.into();
    };
    let media = |source: &mut MediaSource| match source {
        // After the first bytes of a PNG: other pictures are refused.
        MediaSource::Base64 { data, .. } => *data = format!("iVBORw0KGgoA{word}").into(),
        MediaSource::Url { url } => *url = format!("https://example.org/{word}").into(),
        MediaSource::File { id } => *id = word.as_str().into(),
        MediaSource::Text { text: content, .. } => text(content),
        MediaSource::Opaque { value, .. } => tree(value),
    };
    match block {
        ContentBlock::Text(block) => text(&mut block.text),
        ContentBlock::SystemReminder(block) => text(&mut block.text),
        ContentBlock::ContextUpdate(block) => text(&mut block.text),
        ContentBlock::Summary(block) => text(&mut block.text),
        ContentBlock::Checkpoint(_) => {}
        ContentBlock::Image(block) => media(&mut block.source),
        ContentBlock::Document(block) => {
            block.title.iter_mut().for_each(text);
            media(&mut block.source);
        }
        ContentBlock::Thinking(block) => {
            if !block.text.is_blank() {
                block.text = format!("{word} thought").into();
            }
            block.signature.iter_mut().for_each(|sealed| *sealed = word.as_str().into());
        }
        ContentBlock::RedactedThinking(block) => block.data = word.as_str().into(),
        ContentBlock::ToolUse(call) => {
            if let ToolInput::Json(json) = &mut call.input {
                tree(json);
            }
        }
        ContentBlock::ToolResult(result) => {
            result.content.iter_mut().for_each(|block| mark(block, number));
        }
        ContentBlock::ServerToolUse(call) => tree(&mut call.input),
        ContentBlock::ServerToolResult(result) => tree(&mut result.content),
        ContentBlock::Opaque(opaque) => tree(&mut opaque.value),
    }
}
