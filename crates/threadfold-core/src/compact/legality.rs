//! Rules of all providers: how a thread breaks them, how to repair it, and where it may be cut.
//!
//! Rules of a single provider (which role comes first, strict alternation, the form of ids) belong
//! to its codec. As for the providers, adjacent messages of one role count as one *run*: the calls
//! of several assistant messages in a row may be answered together. An id may occur again in a
//! later run.
//!
//! ```
//! use threadfold::{Message, legality};
//! use threadfold::message::{Json, Role, ToolUse};
//!
//! let call = ToolUse::new("t1", "read", Json::parse("{}")?);
//! let thread = vec![
//!     Message::user("read a.txt"),
//!     Message::new(Role::Assistant, vec![call.into()]),
//!     Message::user("never mind"),
//! ];
//! assert_eq!(legality::violations(&thread).len(), 1);
//! let (repaired, repairs) = legality::repair(thread);
//! assert_eq!(legality::violations(&repaired), []);
//! assert_eq!(repairs.len(), 1);
//! # Ok::<(), threadfold::message::InvalidValue>(())
//! ```

use super::runs::{ServerCalls, role_runs};
use crate::message::{ContentBlock, Message, Role, Text};

#[doc(hidden)]
pub use super::repair::{NO_RESULT, repair_numbered};
pub use super::{
    repair::{Repair, repair},
    violations::{Violation, violations},
};

/// Returns the positions at which the thread may be cut in two, ascending: `n` means a cut before
/// message `n`. Zero is always included; the length is included unless calls are open at the end.
///
/// A cut never separates a tool call from its result. The same holds for a provider's own call,
/// whose result may follow many messages later. Nor does a cut separate reasoning from what the
/// model wrote after it: no cut is within an assistant run with reasoning, and in an open tool loop
/// with reasoning a cut is only before a message that starts with reasoning. (Anthropic rejects
/// other threads: `Expected thinking, but found tool_use`.)
///
/// ```
/// use threadfold::{Message, legality};
///
/// let thread = [Message::user("hi"), Message::assistant("hello")];
/// assert_eq!(legality::cut_points(&thread), [0, 1, 2]);
/// ```
#[must_use]
pub fn cut_points(messages: &[Message]) -> Vec<usize> {
    let signed_loop = open_loop(messages)
        .filter(|start| messages.iter().skip(*start).any(Message::has_reasoning));
    let mut points = Vec::with_capacity(messages.len() + 1);
    let mut open = false;
    // The range of messages from each of the provider's own calls to its result.
    let (mut servers, mut spans) = (ServerCalls::default(), Vec::new());
    for run in role_runs(messages) {
        // Calls of earlier runs are closed after the last result. A run with calls or reasoning
        // must not be cut.
        let first = run.results.last().map_or(run.start, |result| result.at.message + 1);
        open = !run.uses.is_empty();
        let calls_server = run.servers.iter().any(|mention| mention.call().is_some());
        let whole = open || calls_server || run.has_reasoning;
        let last = if whole { run.start + 1 } else { run.end };
        points.extend((first..last).filter(|at| keeps_reasoning(messages, signed_loop, *at)));
        let pairs = servers.answers(&run).filter_map(|(call, answer)| Some((call?, answer)));
        spans.extend(pairs.map(|(call, answer)| (call.at.message, answer.at.message)));
    }
    points.extend((!open).then_some(messages.len()));
    if points.first() != Some(&0) {
        points.insert(0, 0);
    }
    remove_cuts_within(spans, &mut points);
    points
}

/// Removes the cuts between the provider's own calls and their results.
fn remove_cuts_within(mut spans: Vec<(usize, usize)>, points: &mut Vec<usize>) {
    spans.sort_unstable();
    let mut spans = spans.into_iter().peekable();
    let mut covered_until = 0;
    points.retain(|point| {
        while let Some((_, answer)) = spans.next_if(|(call, _)| call < point) {
            covered_until = covered_until.max(answer);
        }
        *point > covered_until || *point == 0
    });
}

/// Returns the index of the first message that the model has not read: the one after its last answer,
/// or after a summary that follows that answer. Everything from there on is *unread*: tool results,
/// reminders, and what the user typed since. It is the length of the thread if nothing is unread.
///
/// No compaction changes unread messages, unless they and the head of the request alone exceed the
/// window.
///
/// ```
/// use threadfold::{Message, legality};
///
/// let thread = [Message::user("hi"), Message::assistant("hello"), Message::user("And now?")];
/// assert_eq!(legality::unread_from(&thread), 2);
/// assert_eq!(legality::unread_from(&thread[..2]), 2);
/// assert_eq!(legality::unread_from(&thread[..1]), 0);
/// ```
#[must_use]
pub fn unread_from(messages: &[Message]) -> usize {
    // A codec may have merged what the user typed after a summary with it.
    let is_read = |message: &Message| {
        message.role == Role::Assistant || (message.is_summary() && !message.is_typed())
    };
    messages.iter().rposition(is_read).map_or(0, |read| read + 1)
}

/// Returns the index at which the open tool loop starts: the message after the last one that a
/// person typed, if the model has called tools since and has not finished its answer.
///
/// ```
/// use threadfold::{Message, legality};
///
/// assert_eq!(legality::open_loop(&[Message::user("hi"), Message::assistant("hello")]), None);
/// ```
#[must_use]
pub fn open_loop(messages: &[Message]) -> Option<usize> {
    let mut runs = runs_backwards(messages);
    let last = runs.find(|run| run.role != Role::System)?;
    let loops = match last.role {
        Role::Assistant => last.messages.iter().flat_map(Message::tool_uses).next().is_some(),
        Role::User => last.has_results(),
        Role::System => false,
    };
    let start = std::iter::once(last).chain(runs).find(Run::begins_loop).map_or(0, |run| run.end);
    loops.then_some(start)
}

/// Adjacent messages of one role.
struct Run<'a> {
    role: Role,
    messages: &'a [Message],
    /// The index of the message after the last.
    end: usize,
}

impl Run<'_> {
    /// `true` if a tool loop starts after the run. Text typed next to results interrupts a loop and
    /// starts none.
    fn begins_loop(&self) -> bool {
        let typed = self.messages.iter().any(Message::is_typed);
        self.role == Role::User && typed && !self.has_results()
    }

    fn has_results(&self) -> bool {
        self.messages.iter().flat_map(Message::tool_results).next().is_some()
    }
}

/// Returns the runs from the end of the thread, so that the caller reads only as much as it needs.
fn runs_backwards(messages: &[Message]) -> impl Iterator<Item = Run<'_>> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        let role = rest.last()?.role;
        let end = rest.len();
        let count = rest.iter().rev().take_while(|message| message.role == role).count();
        let (before, run) = rest.split_at_checked(end - count)?;
        rest = before;
        Some(Run { role, messages: run, end })
    })
}

/// Returns the ids of the tool calls at the end of the thread that have no result yet, in order.
///
/// ```
/// use threadfold::{Message, Role, legality, message::ToolUse};
///
/// let call = ToolUse::new("t1", "read", serde_json::json!({}));
/// let thread = [Message::new(Role::Assistant, vec![call.into()])];
/// assert_eq!(legality::open_calls(&thread).len(), 1);
/// ```
#[must_use]
pub fn open_calls(messages: &[Message]) -> Vec<Text> {
    let runs = runs_backwards(messages).take(1).filter(|run| run.role == Role::Assistant);
    let calls = runs.flat_map(|run| run.messages).flat_map(Message::tool_uses);
    calls.map(|call| call.id.clone()).collect()
}

/// `true` if the cut keeps reasoning together with what the model wrote after it: the cut is not
/// within the open loop, or the message after it begins with its own reasoning.
fn keeps_reasoning(messages: &[Message], signed_loop: Option<usize>, at: usize) -> bool {
    // At the end of the thread and before an empty message nothing follows that needs reasoning.
    let first_block = messages.get(at).and_then(|message| message.content.first());
    signed_loop.is_none_or(|start| at <= start)
        || first_block.is_none_or(ContentBlock::is_reasoning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Thinking, ToolResult, ToolUse};

    fn call(id: &str) -> ContentBlock {
        ToolUse::new(id, "read", Json::default()).into()
    }

    #[test]
    fn a_signed_loop_is_cut_only_before_reasoning_and_before_empty_messages() {
        let thought = || ContentBlock::from(Thinking::new("Hm.", None));
        let cut_before = |content: Vec<ContentBlock>| {
            let thread = [
                Message::user("Go on."),
                Message::new(Role::Assistant, vec![thought(), call("a")]),
                Message::new(Role::User, vec![ToolResult::text("a", "done").into()]),
                Message::new(Role::Assistant, content),
                Message::new(Role::Assistant, vec![call("c")]),
            ];
            cut_points(&thread).contains(&3)
        };
        assert!(cut_before(vec![thought(), call("b")]) && cut_before(Vec::new()));
        assert!(!cut_before(vec![call("b")]) && !cut_before(vec![ContentBlock::text(" ")]));
    }
}
