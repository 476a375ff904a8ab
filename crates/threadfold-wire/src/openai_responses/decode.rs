//! Reading request bodies: which items become which messages.

use super::{
    marks::{CODEC, Field, mark},
    params,
    read_content::said,
    read_items::{Context, Item},
};
use crate::{
    contract::{DecodeOptions, Recognise, WireError},
    fields::{Fields, Path, is_text, items},
    raw::{Raw, Scanned},
    texts::recognise,
};
use threadfold_core::message::{ContentBlock, Message, MessageParts, Request, Role, Summary, Text};

/// Reads a request body.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let mut reader = Reader { recognise: options.recognise, ..Reader::default() };
    reader.context.is_chained = params::is_chained(|key| fields.get(key).map(Raw::get));
    reader.instructions(&mut fields);
    let mut own = Vec::new();
    let path = Path::Field(&Path::Body, "input");
    const EXPECTED: &str = "a string or an array of items";
    match fields.take("input") {
        Some(raw) if is_text(raw) => reader.text(raw),
        Some(raw) => {
            let items = items(raw).ok_or_else(|| path.mismatch(EXPECTED, raw))?;
            reader.items(&items, path)?;
        }
        None if has_other_start(&fields) => own.push(mark("~input", "absent")),
        None => return Err(path.missing(EXPECTED)),
    }
    reader.close();
    Ok(params::read(fields, reader.system, reader.thread, own))
}

/// Whether a body without input has something else to go on from.
fn has_other_start(fields: &Fields<'_>) -> bool {
    let starts = ["previous_response_id", "conversation", "prompt"];
    starts.into_iter().any(|key| fields.get(key).is_some_and(|raw| raw.get() != "null"))
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    recognise: Recognise,
    context: Context,
    system: Vec<Message>,
    thread: Vec<Message>,
    /// The last message, which more items may join: what is known of it is noted once.
    open: Option<MessageParts>,
    /// Whether the last item was the answer to a call: another one joins it.
    more_results: bool,
}

impl Reader {
    fn instructions(&mut self, fields: &mut Fields<'_>) {
        let Some(raw) = fields.get("instructions").filter(|raw| is_text(*raw)) else { return };
        let Some(text) = crate::fields::text(raw).filter(|text: &Text| !text.is_blank()) else {
            return;
        };
        fields.take("instructions");
        let message = MessageParts::new(Role::System, vec![ContentBlock::text(text)]);
        self.system.push(with_mark(message, mark("~as", "instructions")).into());
    }

    /// The input that is one text.
    fn text(&mut self, raw: Raw<'_>) {
        let blocks = said(raw).map(|content| content.blocks).unwrap_or_default();
        let message = MessageParts::new(Role::User, blocks);
        self.said(with_mark(message, mark("~input", "string")));
    }

    fn items(&mut self, items: &[Raw<'_>], path: Path<'_>) -> Result<(), WireError> {
        for (index, raw) in items.iter().enumerate() {
            if !raw.get().starts_with('{') {
                return Err(Path::Item(&path, index).mismatch("an object", *raw));
            }
            match self.context.read(*raw, items.get(index + 1).copied()) {
                Item::Said(message) => self.said(message),
                Item::Answered(blocks) => self.join(Role::Assistant, blocks),
                Item::Result(block) if self.more_results => self.join(Role::User, vec![block]),
                Item::Result(block) => {
                    self.open(MessageParts::new(Role::User, vec![block]));
                    self.more_results = true;
                    continue;
                }
                Item::Kept(block) => self.open(MessageParts::new(Role::User, vec![block])),
            }
            self.more_results &= self.open.as_ref().is_some_and(holds_result);
        }
        Ok(())
    }

    fn said(&mut self, mut message: MessageParts) {
        let is_first = self.thread.is_empty() && self.open.is_none();
        if message.role == Role::System && is_first {
            self.system.push(with_mark(message, mark("~as", "item")).into());
            return;
        }
        if message.role == Role::User {
            let last = message.content.len().checked_sub(1);
            recognise(CODEC, &mut message.content, self.recognise, last);
            message.content.iter_mut().for_each(mark_summary);
        }
        self.open(message);
    }

    /// Adds blocks to the last message, if it is of this role.
    fn join(&mut self, role: Role, blocks: Vec<ContentBlock>) {
        match self.open.as_mut().filter(|last| last.role == role) {
            Some(last) => last.content.extend(blocks),
            None => self.open(MessageParts::new(role, blocks)),
        }
    }

    /// Begins a message after the last one.
    fn open(&mut self, message: MessageParts) {
        self.close();
        self.open = Some(message);
    }

    fn close(&mut self) {
        self.thread.extend(self.open.take().map(Message::from));
    }
}

fn holds_result(message: &MessageParts) -> bool {
    message.content.iter().any(|block| matches!(block, ContentBlock::ToolResult(_)))
}

/// A summary that came as text is nothing that was compacted here.
fn mark_summary(block: &mut ContentBlock) {
    if let ContentBlock::Summary(Summary { extra, .. }) = block {
        let (key, word) = mark("~as", "text");
        *extra = extra.with(CODEC, key, word);
    }
}

fn with_mark(mut message: MessageParts, field: Field) -> MessageParts {
    message.extra = message.extra.with(CODEC, field.0, field.1);
    message
}
