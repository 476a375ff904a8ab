//! Reading request bodies: which items become which messages.

use super::{
    marks::CODEC,
    params,
    read_content::said,
    read_items::{Context, Item},
};
use crate::{
    contract::{DecodeOptions, Recognise, WireError},
    json::{Fields, Path, Raw, Scanned},
    texts::recognise,
};
use threadfold_core::message::{ContentBlock, Json, Message, MessageParts, Request, Role, Summary};

/// Reads a request body.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let mut reader = Reader { recognise: options.recognise, ..Reader::default() };
    reader.context.is_chained = params::is_chained(|key| fields.get(key).map(Raw::get));
    reader.instructions(&mut fields);
    let path = Path::Field(&Path::Body, "input");
    const EXPECTED: &str = "a string or an array of items";
    match fields.take("input") {
        Some(raw) if raw.is_text() => reader.text(raw),
        Some(raw) => {
            let items = raw.items().ok_or_else(|| path.mismatch(EXPECTED, raw))?;
            reader.items(&items, path)?;
        }
        None if has_other_start(&fields) => fields.mark("~input", "absent"),
        None => return Err(path.missing(EXPECTED)),
    }
    reader.close();
    Ok(params::read(fields, reader.system, reader.thread))
}

/// Whether a body without input continues something stored instead.
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
    /// The last message, which more items may join. It becomes a handle when it is complete.
    open: Option<MessageParts>,
    /// Whether the last item was the answer to a call: another one joins it.
    more_results: bool,
}

impl Reader {
    fn instructions(&mut self, fields: &mut Fields<'_>) {
        let said = |raw: Raw<'_>| raw.text().filter(|text| raw.is_text() && !text.is_blank());
        let Some(text) = fields.take_as("instructions", said) else { return };
        let message = MessageParts::new(Role::System, vec![ContentBlock::text(text)]);
        self.system.push(with_mark(message, "~as", "instructions").into());
    }

    /// The input that is one text.
    fn text(&mut self, raw: Raw<'_>) {
        let mut fields = Fields::default();
        fields.mark("~input", "string");
        let blocks = said(raw, &mut fields).unwrap_or_default();
        let extra = fields.keep(CODEC);
        self.said(MessageParts { extra, ..MessageParts::new(Role::User, blocks) });
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
            self.system.push(with_mark(message, "~as", "item").into());
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

/// Marks a summary that came as text: no compaction of this thread made it.
fn mark_summary(block: &mut ContentBlock) {
    if let ContentBlock::Summary(Summary { extra, .. }) = block {
        *extra = extra.with(CODEC, "~as", Json::text("text"));
    }
}

fn with_mark(mut message: MessageParts, key: &'static str, word: &str) -> MessageParts {
    message.extra = message.extra.with(CODEC, key, Json::text(word));
    message
}
