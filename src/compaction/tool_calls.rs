//! Calls of the two tools: the plan for a call of `compact`, and the results of both.

use serde::Serialize;
use serde_json::json;

use super::error::CompactionError;
use crate::{
    compact::{CompactError, CompactOptions, CompactReport, Plan, Replacement, Size},
    log::CompactionRecord,
    message::{CompactionId, Message, Text, ToolSpec, ToolUse},
    strategy::Snapshot,
    tokens::TokenCounter,
};

/// The placeholder result of a call of [`COMPACT`](super::COMPACT) in the thread that is passed to
/// [`plan_call`]. The plan replaces it, so no model reads it.
pub const COMPACTED: &str = "The thread was compacted.";

/// The result of a second call of `compact` in one answer.
pub(crate) const ONE_CALL: &str =
    "Not executed: an answer may call compact only once. Put all ranges into that call.";

/// How many of the latest checkpoints an error result lists.
const NAMED_CHECKPOINTS: usize = 40;

/// Returns the plan of a call of [`COMPACT`](super::COMPACT): the ranges with the model's own
/// summaries, a text instead of the call, and a reminder with the numbers instead of its result.
///
/// The last two messages of the thread must be the answer with the call and the user message with
/// the results of all its calls; the result of this call is [`COMPACTED`]. The summaries carry the
/// number of the compaction. [`Compactor::push_results`](crate::Compactor::push_results) does all
/// of this.
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
    // The results were appended after this answer, so the model has not seen their checkpoint.
    let seen = thread.split_last().map_or(thread, |(_, seen)| seen);
    // The notice quotes the plan's numbers, so plan once with an empty notice.
    let draft = Plan::of_call(thread, &call.id, ranges, &options, &Text::default())
        .map_err(|error| refused(&error, seen))?;
    let after = draft.after(thread).map_err(|error| not_read(&error))?;
    keeps_newest_text(thread, call, ranges, &options)?;
    let report = CompactReport::new(Size::of(thread, counter), &after, &draft, counter);
    let notice = format!("The thread was compacted as you asked: {report}. Go on with the task.");
    Plan::of_call(thread, &call.id, ranges, &options, &notice.into())
        .map_err(|error| refused(&error, seen))
}

/// Refuses ranges that delete the text that the user typed last without a summary of it.
fn keeps_newest_text(
    thread: &[Message],
    call: &ToolUse,
    ranges: &[Replacement],
    options: &CompactOptions,
) -> Result<(), Text> {
    let blank = ranges.iter().filter(|range| range.summary.trim().is_empty());
    let blank: Vec<Replacement> = blank.cloned().collect();
    if blank.is_empty() {
        return Ok(());
    }
    let deletes = Plan::of_call(thread, &call.id, &blank, options, &Text::default());
    let left = deletes.and_then(|plan| plan.after(thread)).map_err(|error| not_read(&error))?;
    if Snapshot::new(thread.to_vec()).keeps_last_typed(&left) {
        return Ok(());
    }
    Err("Nothing was compacted: a range without a summary holds the user's newest message, and \
         nothing would be left of it. Give a summary for that range, or end it before the message."
        .into())
}

/// The text for a refused call: the error and the latest checkpoints.
fn refused(error: &CompactError, seen: &[Message]) -> Text {
    let ids = seen.iter().flat_map(Message::checkpoints).map(|(id, _)| id.to_string());
    let mut ids: Vec<String> = ids.collect();
    let ids = ids.split_off(ids.len().saturating_sub(NAMED_CHECKPOINTS)).join(", ");
    let checkpoints = match ids.is_empty() {
        true => "There are no checkpoints in the thread yet.".to_owned(),
        false => format!("The latest checkpoints in the thread are, in order: {ids}."),
    };
    format!("Nothing was compacted: {error}. {checkpoints}").into()
}

fn not_read(error: &dyn std::fmt::Display) -> Text {
    format!("Nothing was compacted: {error}.").into()
}

/// The result of a call of `compact_context` that succeeded or was not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextCompacted {
    messages_compressed: usize,
    batches_created: usize,
    tokens_estimate_before: u64,
    tokens_estimate_after: u64,
}

/// The result of a call of `compact_context` that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct NotCompacted {
    success: bool,
    output: Text,
}

impl ContextCompacted {
    /// Returns the text of the result for a thread that has this many tokens now, and whether it is
    /// an error.
    pub(crate) fn result(
        before: u64,
        done: Result<&CompactionRecord, &CompactionError>,
    ) -> (String, bool) {
        match done {
            Ok(done) => (json(&Self::new(done)), false),
            Err(error) if error.is_nothing_to_compact() => (Self::nothing(before), false),
            Err(error) => (not_compacted(error.to_string()), true),
        }
    }

    fn new(done: &CompactionRecord) -> Self {
        let (plan, report) = (&done.plan, &done.report);
        let all = plan.messages_before().saturating_add(plan.new_messages().count());
        let has_summary = plan.new_messages().any(Message::is_summary);
        Self {
            messages_compressed: all.saturating_sub(plan.messages_after()),
            batches_created: done.batches.len().max(usize::from(has_summary)),
            tokens_estimate_before: report.before.tokens,
            tokens_estimate_after: report.after.tokens,
        }
    }

    /// The text of the result if nothing had to be compacted.
    pub(crate) fn nothing(tokens: u64) -> String {
        let (tokens_estimate_before, tokens_estimate_after) = (tokens, tokens);
        json(&Self { tokens_estimate_before, tokens_estimate_after, ..Self::default() })
    }
}

/// The text of the error result of a failed call of `compact_context`.
pub(crate) fn not_compacted(output: impl Into<Text>) -> String {
    json(&NotCompacted { success: false, output: output.into() })
}

/// Returns the JSON of a value whose serialization cannot fail.
pub(super) fn json<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_string(value);
    debug_assert!(json.is_ok(), "numbers, booleans and texts have a JSON form");
    json.unwrap_or_default()
}

/// The name of the tool with which the model replaces ranges of the thread with its own summaries.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::session::{COMPACT, Session};
/// use threadfold::{Message, ModelAgent, Role, message::ToolUse, testing::ScriptedModel};
///
/// // Without `from` and `to` it is the whole thread, this call included.
/// let range = serde_json::json!({"replacements": [{"summary": "The user wants a colour."}]});
/// let call = Message::new(Role::Assistant, vec![ToolUse::new("t1", COMPACT, range).into()]);
/// let model = ScriptedModel::new([call, Message::assistant("Blue.")]);
/// let builder = Session::builder(ModelAgent::new(Arc::new(model))).compact_tool();
/// let mut session = builder.build()?;
/// block_on(async { session.send("Which colour?").await })?;
/// assert!(session.messages()[0].is_summary());
/// assert_eq!(session.log().standing().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const COMPACT: &str = "compact";

/// The name of the tool without parameters with which the model has the thread compacted by the
/// strategy.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::session::{COMPACT_CONTEXT, Session};
/// use threadfold::{Message, ModelAgent, Role, strategy::KeepRecent, testing::ScriptedModel};
/// use threadfold::message::ToolUse;
///
/// let call = ToolUse::new("t1", COMPACT_CONTEXT, serde_json::json!({}));
/// let call = Message::new(Role::Assistant, vec![call.into()]);
/// let answers = [Message::assistant("Blue."), call, Message::assistant("It is a short word.")];
/// let mut session = Session::builder(ModelAgent::new(Arc::new(ScriptedModel::new(answers))))
///     .strategy(Arc::new(KeepRecent { messages: 1, ..KeepRecent::default() }))
///     .compact_context_tool()
///     .build()?;
/// block_on(async { session.send("Which colour?").await })?;
/// block_on(async { session.send("How long is that word?").await })?;
/// let last = session.log().standing().last().map(|record| record.reason.as_str());
/// assert_eq!(last, Some("agent_tool"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const COMPACT_CONTEXT: &str = "compact_context";

/// The description of [`COMPACT`] for the model: when to use it, what a checkpoint is, and what
/// makes a good summary.
const ABOUT_COMPACT: &str = include_str!("tool_compact.md");
const ABOUT_COMPACT_CONTEXT: &str = include_str!("tool_compact_context.md");

/// Returns the tool with which the model replaces ranges with its own summaries, for hosts with a
/// loop of their own. The user messages must end with checkpoints:
/// [`Compactor::stamp`](crate::Compactor::stamp).
///
/// ```
/// use threadfold::compaction::{COMPACT, compact_tool};
///
/// assert_eq!(compact_tool().name, *COMPACT);
/// ```
#[must_use]
pub fn compact_tool() -> ToolSpec {
    let range = json!({
        "type": "object",
        "properties": {
            "from": {"type": "string", "description": "Id of the checkpoint after which the range begins. Leave it out to begin at the start."},
            "to": {"type": "string", "description": "Id of the checkpoint with which the range ends. Leave it out to end here."},
            "summary": {"type": "string", "description": "What takes the place of the range. Empty to delete it."},
        },
        "required": ["summary"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"replacements": {"type": "array", "minItems": 1, "items": range}},
        "required": ["replacements"],
        "additionalProperties": false,
    });
    ToolSpec::new(COMPACT, ABOUT_COMPACT.trim_end(), schema)
}

/// Returns the tool without parameters with which the model has the thread compacted, for hosts
/// with a loop of their own.
///
/// ```
/// use threadfold::compaction::{COMPACT_CONTEXT, compact_context_tool};
///
/// assert_eq!(compact_context_tool().name, *COMPACT_CONTEXT);
/// ```
#[must_use]
pub fn compact_context_tool() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    ToolSpec::new(COMPACT_CONTEXT, ABOUT_COMPACT_CONTEXT.trim_end(), schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Role, ToolResult},
        tokens::ByteEstimate,
    };

    #[test]
    fn a_refusal_says_that_there_are_no_checkpoints() {
        let input = json!({"replacements": [{"from": "aaaaaa", "summary": "Mended."}]});
        let call = ToolUse::new("c1", super::super::COMPACT, input);
        let answer = Message::new(Role::Assistant, vec![call.clone().into()]);
        let result = Message::new(Role::User, vec![ToolResult::text("c1", COMPACTED).into()]);
        let thread = [Message::user("Mend the parser."), answer, result];
        let refused = plan_call(&thread, &call, CompactionId(0), &ByteEstimate::TRIGGER);
        let expected = "Nothing was compacted: replacement 0 names checkpoint aaaaaa, which is not \
                        in the thread. There are no checkpoints in the thread yet.";
        assert_eq!(refused, Err(expected.into()));
    }

    #[test]
    fn a_blank_range_over_the_users_newest_text_is_refused() {
        let input = |summary| json!({"replacements": [{"summary": summary}]});
        let planned = |summary| {
            let call = ToolUse::new("c1", super::super::COMPACT, input(summary));
            let result = ToolResult::text("c1", COMPACTED);
            let thread = [
                Message::user("Mend the parser."),
                Message::new(Role::Assistant, vec![call.clone().into()]),
                Message::new(Role::User, vec![result.into()]),
            ];
            plan_call(&thread, &call, CompactionId(0), &ByteEstimate::TRIGGER)
        };
        let refused = planned(" ").unwrap_err();
        assert!(
            refused.starts_with("Nothing was compacted: a range without a summary"),
            "{refused}"
        );
        assert!(planned("The parser is to be mended.").is_ok());
    }
}
