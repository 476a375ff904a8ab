//! Reading answers.

use super::{
    kinds::Label,
    marks::{CODEC, marked, opaque_item},
    read_items::{Context, Item},
};
use crate::{
    contract::WireError,
    json::{self, Fields, Object, Path, Raw, Scanned, Tree},
    usage::Counts,
};
use threadfold_core::message::{
    ContentBlock, Json, MessageParts, Origin, Role, StopReason, Text, Turn,
};

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
    Tree::from(object).into_json()
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
