//! Reading answers.

use super::{
    decode,
    marks::{CODEC, Field, refusal_form},
};
use crate::{
    contract::WireError,
    extras::object,
    fields::{Fields, Path, items, text},
    raw::Scanned,
    tree::Tree,
    usage::Counts,
};
use threadfold_core::message::{ContentBlock, Origin, StopReason, Text, Turn};

/// Reads a `chat.completion` body: its first choice.
pub(super) fn response(body: &[u8]) -> Result<Turn, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::answer(&scanned)?;
    let choices = Path::Field(&Path::Body, "choices");
    let path = Path::Item(&choices, 0);
    let raw = fields.take("choices").ok_or_else(|| choices.missing("an array of choices"))?;
    let all = items(raw).ok_or_else(|| choices.mismatch("an array of choices", raw))?;
    let first = all.first().ok_or_else(|| path.missing("a choice"))?;
    let mut choice = Fields::read(*first, path)?;
    let path = Path::Field(&path, "message");
    let raw = choice.take("message").ok_or_else(|| path.missing("a message"))?;
    let mut message = Fields::read(raw, path)?;
    message.take("role");

    let field = |key: &str| fields.get(key).and_then(text);
    let id = format!("function_call_{}", field("id").unwrap_or_default());
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let model = field("model");
    let reason = choice.get("finish_reason").and_then(text);
    let mut message =
        decode::assistant(message, Some(id.into()), vec![beside(&fields, choice)], path)?;
    message.make_mut().origin = Some(Origin::new(CODEC, model));
    let stop_reason = stop_reason(reason, &message.content);
    Ok(Turn::new(message, stop_reason, usage))
}

/// What the body says beside the answer. It is kept with the message and never sent back.
fn beside(body: &Fields<'_>, choice: Fields<'_>) -> Field {
    let kept = object(body).with("choice", object(&choice));
    ("~response", Tree::from(kept).into_json())
}

/// Why the model stopped. Some servers say `stop` although the model calls, or declined.
fn stop_reason(finish: Option<Text>, content: &[ContentBlock]) -> StopReason {
    let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
    let refused = content
        .iter()
        .any(|block| matches!(block, ContentBlock::Text(text) if refusal_form(text).is_some()));
    match finish.as_deref() {
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        Some("tool_calls" | "function_call") => StopReason::ToolUse,
        Some("stop") | None if calls => StopReason::ToolUse,
        Some("stop") | None if refused => StopReason::Refusal,
        Some("stop") | None => StopReason::EndTurn,
        Some(other) => StopReason::Other(other.into()),
    }
}

/// What was spent.
pub(super) const USAGE: Counts = Counts {
    input: &["prompt_tokens"],
    output: &["completion_tokens"],
    cache_read: "prompt_tokens_details.cached_tokens",
    cache_write: "prompt_tokens_details.cache_write_tokens",
    reasoning: "completion_tokens_details.reasoning_tokens",
};
