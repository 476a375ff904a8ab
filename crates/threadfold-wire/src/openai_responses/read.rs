//! Reading request bodies and answers: which items become which messages.

use super::{
    kinds::Label,
    marks::*,
    params,
    read_content::said,
    read_items::{Context, Item},
};
use crate::kit::*;

/// Reads a request body.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let mut reader = Reader { recognise: *options, ..Reader::default() };
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
    recognise: DecodeOptions,
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

/// What a response repeats of its request. It may be long, and the host has it.
const ECHOES: [&str; 20] = [
    "background",
    "include",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// Reads a `response` body.
pub(super) fn turn(body: &[u8]) -> Result<Turn, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::answer(&scanned)?;
    let output = fields.take_items("output", Path::Body, "an array of items")?;
    let content = blocks(&output, Path::Field(&Path::Body, "output"))?;
    let field = |key: &str| fields.text(key);
    let stop_reason = stop_reason(&field("status").unwrap_or_default(), &fields, &content);
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let extra = json::marked(CODEC, "~response", beside_answer(&fields));
    let origin = Some(Origin::new(CODEC, field("model")));
    let parts = MessageParts { origin, extra, ..MessageParts::new(Role::Assistant, content) };
    Ok(Turn::new(parts.into(), stop_reason, usage))
}

/// Reads the items. Calls that the provider answered in the same response are none for the host.
fn blocks(output: &[Raw<'_>], path: Path<'_>) -> Result<Vec<ContentBlock>, WireError> {
    let answers = output.iter().map(|raw| Label::read(*raw));
    let answers = answers.filter(Label::is_output);
    let settled = answers.filter_map(|label| label.call_id).collect();
    let mut context = Context::default();
    context.settled = settled;
    let mut blocks = Vec::new();
    for (index, raw) in output.iter().enumerate() {
        if !raw.get().starts_with('{') {
            return Err(Path::Item(&path, index).mismatch("an object", *raw));
        }
        match context.read(*raw, output.get(index + 1).copied()) {
            Item::Answered(answered) => blocks.extend(answered),
            Item::Said(_) | Item::Result(_) | Item::Kept(_) => blocks.push(opaque_item(*raw, None)),
        }
    }
    Ok(blocks)
}

/// What the body says beside the answer. It is kept with the message and never sent back.
fn beside_answer(body: &Fields<'_>) -> Json {
    let mut object = Object::default();
    for (key, raw) in body.rest().filter(|(key, _)| !ECHOES.contains(key)) {
        object.push(key.to_owned(), raw.json());
    }
    object.into_json()
}

/// Why the model stopped. The dialect does not say that the model waits for results.
fn stop_reason(status: &str, body: &Fields<'_>, content: &[ContentBlock]) -> StopReason {
    let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
    let refused = content.iter().any(|block| {
        matches!(block, ContentBlock::Text(text)
            if marked(&text.extra, "~as").is_some_and(|form| form == "refusal"))
    });
    match status {
        "incomplete" => incomplete(body),
        "cancelled" => StopReason::Aborted,
        "completed" | "" if calls => StopReason::ToolUse,
        "completed" | "" if refused => StopReason::Refusal,
        "completed" | "" => StopReason::EndTurn,
        other => StopReason::Other(other.into()),
    }
}

fn incomplete(body: &Fields<'_>) -> StopReason {
    let details = body.object("incomplete_details");
    let reason: Option<Text> = details.and_then(|mut details| details.take_text("reason"));
    match reason.as_deref() {
        Some("max_output_tokens") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        Some(other) => StopReason::Other(other.into()),
        None => StopReason::Other("incomplete".into()),
    }
}

/// What a response cost.
pub(super) const USAGE: Counts = Counts {
    input: &["input_tokens"],
    output: &["output_tokens"],
    cache_read: "input_tokens_details.cached_tokens",
    cache_write: "input_tokens_details.cache_write_tokens",
    reasoning: "output_tokens_details.reasoning_tokens",
};
