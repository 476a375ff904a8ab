//! Reading answers.

use super::{
    decode,
    marks::{CODEC, refusal_form},
};
use crate::{
    contract::WireError,
    json::{Fields, Path, Scanned, Tree},
    usage::Counts,
};
use threadfold_core::message::{ContentBlock, Origin, StopReason, Text, Turn};

/// Reads a `chat.completion` body: its first choice.
pub(super) fn turn(body: &[u8]) -> Result<Turn, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::answer(&scanned)?;
    let choices = Path::Field(&Path::Body, "choices");
    let path = Path::Item(&choices, 0);
    let all = fields.take_items("choices", Path::Body, "an array of choices")?;
    let first = all.first().ok_or_else(|| path.missing("a choice"))?;
    let mut choice = Fields::read(*first, path)?;
    let path = Path::Field(&path, "message");
    let raw = choice.take("message").ok_or_else(|| path.missing("a message"))?;
    let mut message = Fields::read(raw, path)?;
    message.take("role");

    let field = |key: &str| fields.text(key);
    let id = format!("function_call_{}", field("id").unwrap_or_default());
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let model = field("model");
    let reason = choice.text("finish_reason");
    // What the body says beside the answer is kept with the message and never sent back.
    let beside = fields.tree().with("choice", choice.tree());
    message.note("~response", Tree::from(beside).into_json());
    let mut message = decode::assistant(message, Some(id.into()), path)?;
    message.make_mut().origin = Some(Origin::new(CODEC, model));
    let stop_reason = stop_reason(reason, &message.content);
    Ok(Turn::new(message, stop_reason, usage))
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
