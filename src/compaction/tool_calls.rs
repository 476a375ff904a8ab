//! Calls of the two tools: the plan for a call of `compact`, and the results of both.

use serde::Serialize;

use super::outcome::Done;
use crate::{
    compact::{CompactError, CompactOptions, CompactReport, Plan, Replacement, Size},
    message::{CompactionId, ContentBlock, Message, Text, ToolUse},
    tokens::TokenCounter,
};

/// The result of a successful call of [`COMPACT`](super::COMPACT), for the message with the results
/// from which [`plan_call`] makes its plan. The plan replaces it, so no model reads it.
pub const COMPACTED: &str = "The thread was compacted.";

/// The result of a second call of `compact` in one answer.
pub(crate) const ONE_CALL: &str =
    "Not carried out: one call of compact in an answer is. Name all ranges in one call.";

/// How many of the latest checkpoints an error result lists.
const NAMED_CHECKPOINTS: usize = 40;

/// Returns the plan of a call of [`COMPACT`](super::COMPACT): the ranges with the model's own
/// summaries, a text instead of the call, and a reminder with the numbers instead of its result.
///
/// The last two messages of the thread must be the answer with the call and the user message with
/// the results of all its calls; that of this call is [`COMPACTED`]. The summaries carry the number
/// of the compaction. [`Compactor::push_results`](crate::Compactor::push_results) does all of this.
///
/// ```
/// use threadfold::compaction::{COMPACT, COMPACTED, plan_call};
/// use threadfold::message::{CompactionId, ToolResult, ToolUse};
/// use threadfold::{ContentBlock, Message, Role, legality, tokens::ByteEstimate};
///
/// let mut greeting = Message::user("Hello");
/// greeting.make_mut().content.push(ContentBlock::checkpoint("aaaaaa".parse()?));
/// let input = serde_json::json!({"replacements": [{"to": "aaaaaa", "summary": "They greeted."}]});
/// let call = ToolUse::new("c1", COMPACT, input);
/// let mut thread = vec![
///     greeting,
///     Message::new(Role::Assistant, vec![call.clone().into()]),
///     Message::new(Role::User, vec![ToolResult::text("c1", COMPACTED).into()]),
/// ];
/// let plan = plan_call(&thread, &call, CompactionId(0), &ByteEstimate::TRIGGER);
/// plan.map_err(|words| words.to_string())?.apply(&mut thread)?;
/// assert!(thread[0].is_summary());
/// assert_eq!(thread[1].content, [ContentBlock::text("I compacted the thread.")]);
/// assert_eq!(legality::violations(&thread), []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The text of the error result for the model: what is wrong with the call, and the latest
/// checkpoints.
pub fn plan_call(
    thread: &[Message],
    call: &ToolUse,
    number: CompactionId,
    counter: &dyn TokenCounter,
) -> Result<Plan, Text> {
    plan_ranges(thread, call, &ranges(call)?, number, counter)
}

/// Returns the ranges that a call names.
pub(crate) fn ranges(call: &ToolUse) -> Result<Vec<Replacement>, Text> {
    let input = call.input.json().map_err(|error| not_read(&error))?;
    let input = input.to_value().map_err(|error| not_read(&error))?;
    Replacement::parse_all(&input).map_err(|error| not_read(&error))
}

/// Like [`plan_call`], for ranges that the caller has read.
pub(crate) fn plan_ranges(
    thread: &[Message],
    call: &ToolUse,
    ranges: &[Replacement],
    number: CompactionId,
    counter: &dyn TokenCounter,
) -> Result<Plan, Text> {
    let options = CompactOptions { compaction: Some(number), ..CompactOptions::default() };
    let plan = |notice: &Text| Plan::of_call(thread, &call.id, ranges, &options, notice);
    // The results were appended after this answer, so the model has not seen their checkpoint.
    let seen = thread.split_last().map_or(thread, |(_, seen)| seen);
    // The notice quotes the plan's numbers, so plan once with an empty notice.
    let draft = plan(&Text::default()).map_err(|error| refused(&error, seen))?;
    let after = draft.after(thread).map_err(|error| not_read(&error))?;
    let report = CompactReport::new(Size::of(thread, counter), &after, &draft, counter);
    let notice = format!("The thread was compacted as you asked: {report}. Go on with the task.");
    plan(&notice.into()).map_err(|error| refused(&error, seen))
}

/// The text for a refused call: the error and the latest checkpoints.
fn refused(error: &CompactError, seen: &[Message]) -> Text {
    let blocks = seen.iter().rev().flat_map(|message| message.content.iter().rev());
    let ids = blocks.filter_map(|block| {
        let ContentBlock::Checkpoint(checkpoint) = block else { return None };
        Some(checkpoint.id.to_string())
    });
    let mut ids: Vec<String> = ids.take(NAMED_CHECKPOINTS).collect();
    ids.reverse();
    let ids = ids.join(", ");
    format!(
        "Nothing was compacted: {error}. The latest checkpoints in the thread are, in order: {ids}."
    )
    .into()
}

fn not_read(error: &dyn std::fmt::Display) -> Text {
    format!("Nothing was compacted: {error}.").into()
}

/// The result of a call of `compact_context` that succeeded or was not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextCompacted {
    pub(crate) messages_compressed: usize,
    pub(crate) batches_created: usize,
    pub(crate) tokens_estimate_before: u64,
    pub(crate) tokens_estimate_after: u64,
}

/// The result of a call of `compact_context` that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct NotCompacted {
    success: bool,
    output: Text,
}

impl ContextCompacted {
    /// The result of a compaction that removed this many messages.
    pub(crate) fn new(done: &Done, messages: usize) -> Self {
        Self {
            messages_compressed: messages,
            batches_created: done.calls,
            tokens_estimate_before: done.report.before.tokens,
            tokens_estimate_after: done.report.after.tokens,
        }
    }

    /// The result if nothing had to be compacted.
    pub(crate) fn nothing(tokens: u64) -> Self {
        Self { tokens_estimate_before: tokens, tokens_estimate_after: tokens, ..Self::default() }
    }

    pub(crate) fn text(self) -> String {
        json(&self)
    }
}

/// The text of the error result of a failed call of `compact_context`.
pub(crate) fn not_compacted(output: impl Into<Text>) -> String {
    json(&NotCompacted { success: false, output: output.into() })
}

fn json<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_string(value);
    debug_assert!(json.is_ok(), "numbers, booleans and texts have a JSON form");
    json.unwrap_or_default()
}
