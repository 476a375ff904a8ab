//! Reading answers.

use super::{decode, marks::CODEC, read_results::Calls};
use crate::{
    contract::WireError,
    json::{Fields, Path, Raw, Scanned, Tree},
    usage::Counts,
};
use threadfold_core::message::{ContentBlock, MessageParts, Origin, Role, StopReason, Text, Turn};

/// Reads a response body: its first candidate.
pub(super) fn turn(body: &[u8]) -> Result<Turn, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::answer(&scanned)?;
    let refused = is_blocked(&fields);
    let path = Path::Field(&Path::Body, "candidates");
    let candidates = match fields.take("candidates") {
        Some(raw) => raw.items().ok_or_else(|| path.mismatch("an array of candidates", raw))?,
        None => Vec::new(),
    };
    let path = Path::Item(&path, 0);
    let first = candidates.iter().find(|raw| is_first(**raw)).or_else(|| candidates.first());
    let mut candidate = match first {
        Some(raw) => Fields::read(*raw, path)?,
        None if refused => Fields::default(),
        None => return Err(path.missing("a candidate")),
    };
    let usage = fields.get("usageMetadata").and_then(|raw| USAGE.read(raw));
    let model = fields.text("modelVersion");
    let reason = candidate.text("finishReason");
    let id = fields.text("responseId").unwrap_or_default();
    let (content, mut rest) = content(&mut candidate, &id, path)?;
    rest.take("role");
    let stop_reason = stop_reason(reason, refused, &content);
    // What the body says beside the answer is kept with the message and never sent back.
    let beside = fields.tree().with("candidate", candidate.tree());
    rest.note("~response", Tree::from(beside).into_json());
    let extra = rest.keep(CODEC);
    let origin = Some(Origin::new(CODEC, model));
    let parts = MessageParts::new(Role::Assistant, content);
    let message = MessageParts { origin, extra, ..parts }.into();
    Ok(Turn::new(message, stop_reason, usage))
}

/// The id of a call that came without one.
pub(super) fn made_up_id(response: &str, number: usize) -> Text {
    const MAX: usize = 30;
    let kept = response.chars().filter(|char| char.is_ascii_alphanumeric() || "-_".contains(*char));
    let kept: String = kept.take(MAX).collect();
    if kept.is_empty() { format!("call_{number}") } else { format!("call_{number}_{kept}") }.into()
}

/// Whether a candidate is the one that is read: number 0, which may be left out.
pub(super) fn is_first(candidate: Raw<'_>) -> bool {
    let index = Fields::of(candidate).and_then(|fields| fields.get("index"));
    index.is_none_or(|index| matches!(index.get(), "0" | "null"))
}

/// Whether the prompt was refused.
pub(super) fn is_blocked(fields: &Fields<'_>) -> bool {
    let feedback = fields.object("promptFeedback");
    let reason = feedback.and_then(|feedback| feedback.text("blockReason"));
    reason.is_some_and(|reason| reason != "BLOCK_REASON_UNSPECIFIED")
}

/// What was spent. The provider counts thoughts apart from the answer, and what its own tools gave
/// the model apart from the prompt.
pub(super) const USAGE: Counts = Counts {
    input: &["promptTokenCount", "toolUsePromptTokenCount"],
    output: &["candidatesTokenCount", "thoughtsTokenCount"],
    cache_read: "cachedContentTokenCount",
    cache_write: "",
    reasoning: "thoughtsTokenCount",
};

/// Reads the content of a candidate: its blocks, and its other fields. There may be none.
fn content<'a>(
    candidate: &mut Fields<'a>,
    id: &str,
    path: Path<'_>,
) -> Result<(Vec<ContentBlock>, Fields<'a>), WireError> {
    let path = Path::Field(&path, "content");
    let Some(raw) = candidate.take("content").filter(|raw| raw.get() != "null") else {
        return Ok((Vec::new(), Fields::default()));
    };
    let mut content = Fields::read(raw, path)?;
    let path = Path::Field(&path, "parts");
    let parts = match content.take("parts").filter(|raw| raw.get() != "null") {
        Some(raw) => raw.items().ok_or_else(|| path.mismatch("an array of parts", raw))?,
        None => Vec::new(),
    };
    let mut blocks = decode::answer(parts, &mut Calls::default(), |number| made_up_id(id, number));
    blocks.retain(says_something);
    Ok((blocks, content))
}

/// Streams end with an empty text, which no request may hold.
fn says_something(block: &ContentBlock) -> bool {
    if let ContentBlock::Thinking(thinking) = block {
        return !thinking.text.is_empty() || thinking.signature.is_some();
    }
    block.as_text().is_none_or(|text| !text.is_empty())
}

/// Why the model stopped. It says `STOP` where it calls, too.
fn stop_reason(finish: Option<Text>, refused: bool, content: &[ContentBlock]) -> StopReason {
    let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
    match finish.as_deref() {
        None if refused => StopReason::Refusal,
        Some("STOP" | "FINISH_REASON_UNSPECIFIED") | None if calls => StopReason::ToolUse,
        Some("STOP" | "FINISH_REASON_UNSPECIFIED") | None => StopReason::EndTurn,
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        Some(
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION",
        ) => StopReason::Refusal,
        Some(other) => StopReason::Other(other.into()),
    }
}
