//! The plan for a call of the `compact` tool: the ranges that it names, and the call itself.
//!
//! The call is in the last answer, its result in the message after it. Unless the ranges cover
//! them, a text replaces the call: a model that reads its old request for ranges that no longer
//! exist would repeat it. Other calls of the same answer stay, with their results.

use super::{
    edit::{self, CompactError, Edit},
    edits::{self, CompactOptions},
    plan::Plan,
    position::{CheckpointIndex, Position},
    replacements::Replacement,
};
use crate::message::{ContentBlock, Message, Role, StopReason, Text};

/// The text that replaces the call.
const COMPACTED: &str = "I compacted the thread.";

impl Plan {
    /// Returns the plan for the call of the `compact` tool with this id: its replacements, a text
    /// instead of the call, and a reminder with `outcome` instead of its result. If the ranges
    /// include the call, only the reminder follows them.
    ///
    /// The last two messages must be the answer with the call and the user message with the results
    /// of all its calls.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, Role, compact::CompactOptions};
    /// use threadfold::message::{ToolResult, ToolUse};
    ///
    /// let call = ToolUse::new("c1", "compact", serde_json::json!({}));
    /// let thread = [
    ///     Message::user("Which colour?"),
    ///     Message::new(Role::Assistant, vec![call.into()]),
    ///     Message::new(Role::User, vec![ToolResult::text("c1", "").into()]),
    /// ];
    /// let all = [Replacement::new("The user wants to know a colour.")];
    /// let outcome = "The thread was compacted. Go on.".into();
    /// let plan = Plan::of_call(&thread, "c1", &all, &CompactOptions::default(), &outcome)?;
    /// let after = plan.after(&thread)?;
    /// assert!(after.len() == 2 && after[0].is_summary());
    /// assert_eq!(after[1].content[0].kind(), "system_reminder");
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`], as for [`Plan::new`].
    pub fn of_call(
        messages: &[Message],
        id: &str,
        replacements: &[Replacement],
        options: &CompactOptions,
        outcome: &Text,
    ) -> Result<Self, CompactError> {
        let checkpoints = CheckpointIndex::of(messages);
        let mut edits = edits::resolve_all(messages, replacements, options, &checkpoints)?;
        let ([.., answer, results], Some(at)) = (messages, messages.len().checked_sub(2)) else {
            return Self::from_edits_within(messages, edits, options, messages.len());
        };
        let end = Position::before(messages.len());
        let is_only_call = other_calls(answer, id) == 0;
        match edits.iter_mut().find(|edit| edit::normalized(messages, edit.range.end) == end) {
            Some(edit) => edit.insert.push(outcome_message(results, None, outcome)),
            None => edits.push(Edit {
                range: Position::before(at)..end,
                insert: vec![without_call(answer, id), outcome_message(results, Some(id), outcome)],
            }),
        }
        // Without another call the tool loop is finished, so its reasoning need not stay.
        let keep_open_loop = options.keep_open_loop && !is_only_call;
        let options = CompactOptions { keep_open_loop, ..*options };
        Self::from_edits_within(messages, edits, &options, messages.len())
    }
}

fn other_calls(answer: &Message, id: &str) -> usize {
    answer.tool_uses().filter(|call| call.id != *id).count()
}

/// Returns the answer with a text instead of the call. Its reasoning stays if it has other calls.
fn without_call(answer: &Message, id: &str) -> Message {
    let is_only_call = other_calls(answer, id) == 0;
    let blocks = answer.content.iter().filter(|block| !(is_only_call && block.is_reasoning()));
    let content = blocks.map(|block| {
        let is_this_call = matches!(block, ContentBlock::ToolUse(call) if call.id == *id);
        if is_this_call { ContentBlock::text(COMPACTED) } else { block.clone() }
    });
    let mut message = answer.with_content(content.collect());
    message.prefix_rewritten |= message.has_reasoning();
    if is_only_call {
        message.make_mut().stop_reason = Some(StopReason::EndTurn);
    }
    message
}

/// Returns the user message after the answer: the results except that of the call with this id, the
/// outcome, and the checkpoint. Without an id no result stays.
fn outcome_message(results: &Message, id: Option<&str>, outcome: &Text) -> Message {
    let blocks = results.content.iter().cloned();
    let (markers, mut content): (Vec<_>, Vec<_>) =
        blocks.partition(|block| matches!(block, ContentBlock::Checkpoint(_)));
    content.retain(|block| id.is_some_and(|id| !is_result_of(block, id)));
    content.push(ContentBlock::reminder(outcome.clone()));
    content.extend(markers);
    Message::new(Role::User, content)
}

fn is_result_of(block: &ContentBlock, id: &str) -> bool {
    matches!(block, ContentBlock::ToolResult(result) if result.tool_use_id == *id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Thinking, ToolResult, ToolUse};

    fn call(id: &str) -> ContentBlock {
        ToolUse::new(id, "tool", Json::default()).into()
    }

    fn marker(id: &str) -> ContentBlock {
        ContentBlock::checkpoint(id.parse().unwrap())
    }

    fn thought() -> ContentBlock {
        Thinking::new("hm", Some("sig".into())).into()
    }

    fn assistant(blocks: Vec<ContentBlock>) -> Message {
        Message::new(Role::Assistant, blocks)
    }

    fn user(blocks: Vec<ContentBlock>) -> Message {
        Message::new(Role::User, blocks)
    }

    fn result(id: &str) -> ContentBlock {
        ToolResult::text(id, "done").into()
    }

    /// A question, a tool call with reasoning and its result, and an answer with the call `c` and
    /// the calls of `beside`.
    fn thread(beside: &[&str]) -> Vec<Message> {
        let others = |block: fn(&str) -> ContentBlock| beside.iter().map(move |id| block(id));
        let mut answer = assistant([thought()].into_iter().chain(others(call)).collect());
        answer.make_mut().content.push(call("c"));
        answer.make_mut().stop_reason = Some(StopReason::ToolUse);
        let results = others(result).chain([result("c"), marker("bbbbbb")]);
        vec![
            user(vec![ContentBlock::text("Hello"), marker("aaaaaa")]),
            assistant(vec![thought(), call("r")]),
            user(vec![result("r")]),
            answer,
            user(results.collect()),
        ]
    }

    fn carried_out(thread: &[Message], range: Replacement) -> Vec<Message> {
        let options = CompactOptions::default();
        let plan = Plan::of_call(thread, "c", &[range], &options, &"Well done.".into()).unwrap();
        let mut after = thread.to_vec();
        plan.apply(&mut after).unwrap();
        after
    }

    fn greeting() -> Replacement {
        Replacement::new("They greeted.").to("aaaaaa".parse().unwrap())
    }

    fn outcome() -> ContentBlock {
        ContentBlock::reminder("Well done.")
    }

    fn summary(text: &str) -> Message {
        Message::summary(Role::Assistant, crate::message::Summary::new(text))
    }

    #[test]
    fn a_lone_call_ends_the_loop_and_loses_its_reasoning() {
        let mut answer = Message::assistant(COMPACTED);
        answer.make_mut().stop_reason = Some(StopReason::EndTurn);
        assert_eq!(
            carried_out(&thread(&[]), greeting()),
            [
                summary("They greeted."),
                assistant(vec![call("r")]),
                user(vec![result("r")]),
                answer,
                user(vec![outcome(), marker("bbbbbb")]),
            ]
        );
    }

    #[test]
    fn next_to_another_call_the_loop_continues_with_its_reasoning() {
        let marked = |blocks: Vec<ContentBlock>| assistant(blocks).rewritten();
        let mut answer = marked(vec![thought(), call("d"), ContentBlock::text(COMPACTED)]);
        answer.make_mut().stop_reason = Some(StopReason::ToolUse);
        assert_eq!(
            carried_out(&thread(&["d"]), greeting()),
            [
                summary("They greeted."),
                marked(vec![thought(), call("r")]),
                user(vec![result("r")]),
                answer,
                user(vec![result("d"), outcome(), marker("bbbbbb")]),
            ]
        );
    }

    #[test]
    fn a_range_to_the_end_removes_the_call_and_all_results() {
        let range = Replacement::new("All of it.").from("aaaaaa".parse().unwrap());
        for beside in [&[][..], &["d"]] {
            let question = user(vec![ContentBlock::text("Hello"), marker("aaaaaa")]);
            let closing = user(vec![outcome(), marker("bbbbbb")]);
            let after = [question, summary("All of it."), closing];
            assert_eq!(carried_out(&thread(beside), range.clone()), after);
        }
    }
}
