//! Putting a response together from the events of its stream.
//!
//! | event | does |
//! |---|---|
//! | `message_start` | begins the body |
//! | `content_block_start`, `_delta`, `_stop` | begin a block, add to it, end it |
//! | `message_delta` | sets what is known at the end; its counts are those of the whole answer |
//! | `message_stop` | ends the body |
//! | `error` | ends the answer as a failure |
//! | any other | nothing |
//!
//! A stream that does not keep to this order is refused: an answer of which a part went missing
//! must not be taken for a whole one.

use std::collections::BTreeMap;

use super::read;
use crate::kit::*;

/// A response in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    message: Option<Merged>,
    usage: Merged,
    /// The blocks by their index in the stream. A map, because a hostile index may be huge.
    blocks: BTreeMap<u64, Block>,
    stopped: bool,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        read_event(event, &["message_", "content_block"], |fields, data| {
            self.read(event.name, fields, data)
        })
    }

    fn is_complete(&self) -> bool {
        self.stopped
    }

    fn body(&mut self) -> Option<Json> {
        let message = self.message.as_ref().filter(|_| self.stopped)?;
        let mut body = message.object().unwrap_or_default();
        body.set("content", Tree::Array(self.blocks.values().map(Block::tree).collect()));
        // The counts of the whole answer replace those with which it began.
        body.set_some("usage", self.usage.object());
        Some(Tree::from(body).into_json())
    }

    fn usage(&self) -> Option<Usage> {
        self.usage.usage(&read::USAGE)
    }
}

impl Response {
    fn read(
        &mut self,
        name: &str,
        fields: Fields<'_>,
        data: &str,
    ) -> Result<Vec<Delta>, ModelError> {
        let kind = fields.text("type");
        match kind.as_deref().unwrap_or(name) {
            "message_start" => self.start(&fields)?,
            "content_block_start" => return self.start_block(&fields),
            "content_block_delta" => return self.block(&fields)?.add(object(&fields, "delta")?),
            "content_block_stop" => return Ok(self.block(&fields)?.stop()),
            "message_delta" => self.add(fields)?,
            "message_stop" => {
                self.begun()?;
                self.stopped = true;
            }
            "error" => return Err(provider_error(data)),
            _ => {}
        }
        Ok(Vec::new())
    }

    fn start(&mut self, fields: &Fields<'_>) -> Result<(), ModelError> {
        let message = object(fields, "message")?;
        if self.message.is_some() {
            return Err(unreadable("it begins twice"));
        }
        self.usage.count(message.get("usage"));
        self.message.insert(Merged::default()).merge(&message);
        Ok(())
    }

    fn start_block(&mut self, fields: &Fields<'_>) -> Result<Vec<Delta>, ModelError> {
        self.begun()?;
        let index = index(fields)?;
        if self.blocks.contains_key(&index) {
            return Err(unreadable(&format!("block {index} begins twice")));
        }
        let block = Block::new(&object(fields, "content_block")?);
        let deltas = block.begin();
        self.blocks.insert(index, block);
        Ok(deltas)
    }

    fn block(&mut self, fields: &Fields<'_>) -> Result<&mut Block, ModelError> {
        let index = index(fields)?;
        let block = self.blocks.get_mut(&index).filter(|block| !block.is_stopped());
        block.ok_or_else(|| unreadable(&format!("block {index} is not open")))
    }

    /// Takes what is known at the end: the fields of `delta`, and those beside it.
    fn add(&mut self, mut fields: Fields<'_>) -> Result<(), ModelError> {
        let delta = object(&fields, "delta")?;
        self.usage.count(fields.take("usage"));
        fields.take("delta");
        fields.take("type");
        let message = self.message.as_mut().ok_or_else(not_begun)?;
        message.merge(&delta);
        message.merge(&fields);
        Ok(())
    }

    fn begun(&self) -> Result<(), ModelError> {
        self.message.as_ref().map(|_| ()).ok_or_else(not_begun)
    }
}

fn not_begun() -> ModelError {
    unreadable("it has no beginning")
}

fn index(fields: &Fields<'_>) -> Result<u64, ModelError> {
    fields.number("index").ok_or_else(|| unreadable("a block has no index"))
}

fn object<'a>(fields: &Fields<'a>, key: &str) -> Result<Fields<'a>, ModelError> {
    let object = fields.object(key);
    object.ok_or_else(|| unreadable(&format!("an event has no {key}")))
}

/// A block in the making: how it began, and what came since.
#[derive(Debug)]
struct Block {
    kind: Text,
    id: Text,
    begun: Merged,
    /// The text of an input, which is JSON when it is complete.
    input: String,
    stopped: bool,
}

impl Block {
    /// Returns a block that begins with these fields.
    fn new(fields: &Fields<'_>) -> Self {
        let mut begun = Merged::default();
        begun.merge(fields);
        let field = |key: &str| fields.text(key).unwrap_or_default();
        Self { kind: field("type"), id: field("id"), begun, input: String::new(), stopped: false }
    }

    /// Returns what the beginning of the block adds to the answer.
    fn begin(&self) -> Vec<Delta> {
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
    fn add(&mut self, fields: Fields<'_>) -> Result<Vec<Delta>, ModelError> {
        let kind = fields.text("type").unwrap_or_default();
        let piece = |key: &str| {
            let piece = fields.text(key);
            piece.ok_or_else(|| unreadable(&format!("a {kind} has no {key}")))
        };
        let delta = match kind.as_str() {
            "text_delta" => self.grow("text", piece("text")?),
            "thinking_delta" => self.grow("thinking", piece("thinking")?),
            "input_json_delta" => self.grow_input(piece("partial_json")?),
            "signature_delta" => {
                self.begun.set("signature", Json::text(&piece("signature")?));
                None
            }
            "citations_delta" => {
                self.begun.extend("citations", Vec::from_iter(fields.get("citation")));
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
    fn stop(&mut self) -> Vec<Delta> {
        self.stopped = true;
        let input = self.begun.get("input").filter(|input| input.as_str() != "{}");
        let whole = input.filter(|_| self.kind == "tool_use" && self.input.is_empty());
        let delta = whole
            .map(|input| Delta::ToolInput { id: self.id.clone(), text: input.as_str().into() });
        delta.into_iter().collect()
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The block as it stands in a whole response.
    fn tree(&self) -> Tree {
        let mut object = self.begun.object().unwrap_or_default();
        // A call that was cut off holds a text that is no JSON. It is kept as that text.
        if !self.input.trim().is_empty() {
            let input = Json::parse(&self.input);
            object.set("input", input.map_or_else(|_| self.input.clone().into(), Tree::from));
        }
        object.into()
    }

    fn grow(&mut self, key: &'static str, piece: Text) -> Option<Delta> {
        self.begun.grow(key, &piece);
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
        Raw::of(self.begun.get(key)?).text()
    }
}
