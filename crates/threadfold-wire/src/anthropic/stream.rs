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

use super::{response, stream_block::Block};
use crate::{
    assembly::{Assembly, Merged, read, said, unreadable},
    fields::{Fields, text},
    stream::StreamEvent,
    tree::{Object, Tree},
};
use threadfold_core::message::{Delta, Json, ModelError, Usage};

/// A response in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    message: Option<Merged>,
    usage: Merged,
    /// By the index that the stream gives them, however large.
    blocks: BTreeMap<u64, Block>,
    stopped: bool,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        read(event, &["message_", "content_block"], |fields, data| {
            self.read(event.name, fields, data)
        })
    }

    fn is_complete(&self) -> bool {
        self.stopped
    }

    fn body(&mut self) -> Option<Json> {
        let message = self.message.as_ref().filter(|_| self.stopped)?;
        let content = || Tree::Array(self.blocks.values().map(|block| block.tree()).collect());
        let mut body = Object::default();
        for (key, value) in message.fields() {
            match key {
                "content" => body.push(key.to_owned(), content()),
                "usage" => body.push(key.to_owned(), self.usage_tree(value)),
                _ => body.push(key.to_owned(), value.clone()),
            }
        }
        if message.get("content").is_none() {
            body.push("content", content());
        }
        if message.get("usage").is_none() {
            body.set_some("usage", self.usage.object());
        }
        Some(Tree::from(body).into_json())
    }

    fn usage(&self) -> Option<Usage> {
        self.usage.usage(&response::USAGE)
    }
}

impl Response {
    fn read(
        &mut self,
        name: &str,
        fields: Fields<'_>,
        data: &str,
    ) -> Result<Vec<Delta>, ModelError> {
        let kind = fields.get("type").and_then(text);
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
            "error" => return Err(said(data)),
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

    /// The counts of the whole answer, where the message began with these.
    fn usage_tree(&self, begun: &Json) -> Tree {
        self.usage.object().map_or_else(|| begun.clone().into(), Tree::from)
    }
}

fn not_begun() -> ModelError {
    unreadable("it has no beginning")
}

fn index(fields: &Fields<'_>) -> Result<u64, ModelError> {
    let index = fields.get("index").and_then(|raw| serde_json::from_str(raw.get()).ok());
    index.ok_or_else(|| unreadable("a block has no index"))
}

fn object<'a>(fields: &Fields<'a>, key: &str) -> Result<Fields<'a>, ModelError> {
    let object = fields.get(key).and_then(Fields::of);
    object.ok_or_else(|| unreadable(&format!("an event has no {key}")))
}
