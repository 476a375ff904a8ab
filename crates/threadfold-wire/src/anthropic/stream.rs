//! Assembling a response from the events of its stream.
//!
//! | event | does |
//! |---|---|
//! | `message_start` | begins the body |
//! | `content_block_start`, `_delta`, `_stop` | begin a block, add to it, end it |
//! | `message_delta` | sets the last fields; its counts are those of the whole answer |
//! | `message_stop` | ends the body |
//! | `error` | ends the answer as a failure |
//! | any other | nothing |
//!
//! A stream in another order is refused: an answer with a missing part must not count as complete.
//! An answer is also complete at the end of the stream if its stop reason came and all blocks are
//! closed: nothing can be missing but `message_stop`, which some servers do not send. An event of a
//! block without an index belongs to the block that was begun last. Counts of zero replace no other
//! counts, because some servers repeat the fields of the beginning as zeros.

use std::collections::BTreeMap;

use super::read;
use crate::kit::*;

/// A response that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    message: Option<Merged>,
    usage: Merged,
    /// The blocks by their index in the stream. A map, because a hostile index may be huge.
    blocks: BTreeMap<u64, Block>,
}

impl Assembly for Response {
    fn take(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        read_event((name, data), &["message_", "content_block"], |fields, data| {
            self.read(name, fields, data, out)
        })
    }

    fn body(&mut self, is_complete: bool) -> Option<Json> {
        let message = self.message.as_ref().filter(|_| is_complete || self.has_stopped())?;
        let mut body = message.object();
        body.set("content", Tree::Array(self.blocks.values().map(Block::tree).collect()));
        // These counts cover the whole answer and replace the first ones.
        body.set_some("usage", self.usage.begun());
        Some(body.into_json())
    }
}

impl Response {
    /// Whether the answer has its stop reason, and all its blocks their ends.
    fn has_stopped(&self) -> bool {
        let reason = self.message.as_ref().and_then(|message| message.get("stop_reason"));
        reason.is_some_and(|reason| Raw::of(reason).is_text())
            && self.blocks.values().all(|block| block.stopped)
    }

    fn read(&mut self, name: &str, fields: Fields<'_>, data: &str, out: &mut Output) -> Taken {
        let kind = fields.text("type");
        match kind.as_deref().unwrap_or(name) {
            "message_start" => return self.start(&fields, out),
            "content_block_start" => return self.start_block(&fields, out),
            "content_block_delta" => {
                return self.block(&fields)?.add(object(&fields, "delta")?, out);
            }
            "content_block_stop" => self.block(&fields)?.stop(out),
            "message_delta" => return self.add(fields, out),
            "message_stop" => {
                self.begun()?;
                out.is_complete = true;
                // Some servers do not end their blocks.
                self.blocks.values_mut().for_each(|block| block.stop(out));
            }
            "error" => return Err(provider_error(data)),
            // Gateways send errors without a type, in any form.
            "" => return error_within(data.as_bytes()).map_or(Ok(()), Err),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, fields: &Fields<'_>, out: &mut Output) -> Taken {
        let message = object(fields, "message")?;
        if self.message.is_some() {
            return Err(unreadable("it begins twice"));
        }
        out.usage = self.usage.count(message.get("usage"), &read::USAGE);
        self.message = Some(Merged::of(&message));
        Ok(())
    }

    fn start_block(&mut self, fields: &Fields<'_>, out: &mut Output) -> Taken {
        self.begun()?;
        let next = self.blocks.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        let index = index(fields)?.unwrap_or(next);
        if self.blocks.contains_key(&index) {
            return Err(unreadable(&format!("block {index} begins twice")));
        }
        let block = Block::new(&object(fields, "content_block")?, out);
        self.blocks.insert(index, block);
        Ok(())
    }

    fn block(&mut self, fields: &Fields<'_>) -> Result<&mut Block, ModelError> {
        let last = self.blocks.last_key_value().map(|(last, _)| *last);
        let index = index(fields)?.or(last);
        let index = index.ok_or_else(|| unreadable("a block has no index"))?;
        let block = self.blocks.get_mut(&index).filter(|block| !block.stopped);
        block.ok_or_else(|| unreadable(&format!("block {index} is not open")))
    }

    /// Takes the last fields of the message: those of `delta`, and those beside it.
    fn add(&mut self, mut fields: Fields<'_>, out: &mut Output) -> Taken {
        let delta = object(&fields, "delta")?;
        out.usage = self.usage.count(fields.take("usage"), &read::USAGE);
        fields.take("delta");
        fields.take("type");
        let message = self.message.as_mut().ok_or_else(not_begun)?;
        message.merge(&delta);
        message.merge(&fields);
        Ok(())
    }

    fn begun(&self) -> Taken {
        self.message.as_ref().map(|_| ()).ok_or_else(not_begun)
    }
}

fn not_begun() -> ModelError {
    unreadable("it has no beginning")
}

/// The index of a block; `None` if the event has none.
fn index(fields: &Fields<'_>) -> Result<Option<u64>, ModelError> {
    let index = fields.value("index");
    let number =
        index.map(|raw| raw.whole_number().ok_or_else(|| unreadable("an index is no number")));
    number.transpose()
}

fn object<'a>(fields: &Fields<'a>, key: &str) -> Result<Fields<'a>, ModelError> {
    let object = fields.object(key);
    object.ok_or_else(|| unreadable(&format!("an event has no {key}")))
}

/// The piece of text in a delta.
fn piece(delta: &Fields<'_>, key: &str) -> Result<Text, ModelError> {
    let kind = delta.text_or_empty("type");
    delta.text(key).ok_or_else(|| unreadable(&format!("a {kind} has no {key}")))
}

/// A block that is being received: its beginning, and the later pieces.
#[derive(Debug)]
struct Block {
    kind: Text,
    /// The id of a call that the host answers, if it has an id and a name.
    call: Option<Text>,
    begun: Merged,
    /// The text of an input, which is JSON once it is complete.
    input: String,
    stopped: bool,
}

impl Block {
    /// Returns a block that begins with these fields, and reports them.
    fn new(fields: &Fields<'_>, out: &mut Output) -> Self {
        let begun = Merged::of(fields);
        let (kind, mut call) = (fields.text_or_empty("type"), None);
        match kind.as_str() {
            "text" => out.text(fields.text_or_empty("text")),
            "thinking" => out.thinking(fields.text_or_empty("thinking")),
            "tool_use" => {
                if let Some((id, name)) = fields.text("id").zip(fields.text("name")) {
                    out.call(&id, name);
                    call = Some(id);
                }
            }
            _ => {}
        }
        Self { kind, call, begun, input: String::new(), stopped: false }
    }

    /// Takes a `delta`, and reports what it adds.
    fn add(&mut self, mut fields: Fields<'_>, out: &mut Output) -> Taken {
        let kind = fields.text_or_empty("type");
        match kind.as_str() {
            "text_delta" | "thinking_delta" => {
                let key = if kind == "text_delta" { "text" } else { "thinking" };
                let piece = piece(&fields, key)?;
                self.begun.grow(key, &piece);
                match (key, self.kind == key) {
                    ("text", true) => out.text(piece),
                    (_, true) => out.thinking(piece),
                    (_, false) => {}
                }
            }
            "input_json_delta" => {
                let piece = piece(&fields, "partial_json")?;
                self.input.push_str(&piece);
                self.call.iter().for_each(|id| out.input(id, piece.clone()));
            }
            "signature_delta" => {
                self.begun.set("signature", Json::text(&piece(&fields, "signature")?));
            }
            "citations_delta" => {
                self.begun.extend("citations", Vec::from_iter(fields.get("citation")));
            }
            "compaction_delta" => {
                fields.take("type");
                self.begun.merge(&fields);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the block. An input that arrived whole in the beginning is reported now.
    fn stop(&mut self, out: &mut Output) {
        let is_first = !std::mem::replace(&mut self.stopped, true);
        let input = self.begun.get("input").filter(|input| input.as_str() != "{}");
        let input = input.filter(|_| is_first && self.input.is_empty());
        if let (Some(id), Some(input)) = (&self.call, input) {
            out.input(id, input.as_str().into());
        }
    }

    /// The block as in a whole response.
    fn tree(&self) -> Tree {
        let mut object = self.begun.object();
        object.set_some("input", input(&self.input));
        if self.call.is_some() && object.get("input").is_none() {
            object.set("input", Object::default());
        }
        object.into()
    }
}
