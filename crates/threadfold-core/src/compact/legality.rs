//! What no provider accepts, how to repair it, and where a thread may be cut.
//!
//! Only rules that hold for every provider stand here; what one provider demands (who speaks first,
//! strict alternation, the form of ids) is the business of its codec. Neighbours of one role count as one
//! *turn*, as the providers count: calls of several assistant messages in a row may be answered
//! together. An id may come again in a later turn.
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

use super::turns::{ServerCalls, turns};
use crate::message::{ContentBlock, Message, Role, Text};

#[doc(hidden)]
pub use super::repair::{NO_RESULT, repair_numbered};
pub use super::{
    repair::{Repair, repair},
    violations::{Violation, violations},
};

/// Returns the positions at which the thread may be cut in two, ascending: `n` stands for a cut
/// before message `n`. Zero is always one; the length is one unless calls are open there.
///
/// No call is open across a cut, so no cut stands before a tool result, and none between a call that
/// the provider answers itself and its answer, in whatever turn that stands. No cut divides reasoning
/// from what was said on it: not within one assistant turn that holds reasoning, and in an open
/// tool loop that holds reasoning only before a message that begins with its own
/// (`Expected thinking, but found tool_use`, says Anthropic otherwise).
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
    // From each call that the provider answers itself to its answer.
    let (mut servers, mut spans) = (ServerCalls::default(), Vec::new());
    for turn in turns(messages) {
        // After its last result nothing is open any more; a turn that calls is one piece, and so
        // is one whose reasoning or server tools belong together.
        let first = turn.results.last().map_or(turn.start, |result| result.at.message + 1);
        open = !turn.uses.is_empty();
        let calls_server = turn.servers.iter().any(|mention| mention.call().is_some());
        let whole = open || calls_server || turn.has_reasoning;
        let last = if whole { turn.start + 1 } else { turn.end };
        points.extend((first..last).filter(|at| cuts_loop_well(messages, signed_loop, *at)));
        let pairs = servers.answers(&turn).filter_map(|(call, answer)| Some((call?, answer)));
        spans.extend(pairs.map(|(call, answer)| (call.at.message, answer.at.message)));
    }
    points.extend((!open).then_some(messages.len()));
    if points.first() != Some(&0) {
        points.insert(0, 0);
    }
    part_no_servers(spans, &mut points);
    points
}

/// Takes out the cuts between a call that the provider answers itself and its answer.
fn part_no_servers(mut spans: Vec<(usize, usize)>, points: &mut Vec<usize>) {
    spans.sort_unstable();
    let mut spans = spans.into_iter().peekable();
    let mut divides_until = 0;
    points.retain(|point| {
        while let Some((_, answer)) = spans.next_if(|(call, _)| call < point) {
            divides_until = divides_until.max(answer);
        }
        *point > divides_until || *point == 0
    });
}

/// Returns where the open tool loop begins: the message after the last one that a person typed, if
/// the model has called tools since and not come to its final answer.
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

/// Neighbours of one role.
struct Run<'a> {
    role: Role,
    messages: &'a [Message],
    /// The message after its last.
    end: usize,
}

impl Run<'_> {
    /// What was typed beside results came while a loop went on and begins none.
    fn begins_loop(&self) -> bool {
        let typed = self.messages.iter().any(Message::is_typed);
        self.role == Role::User && typed && !self.has_results()
    }

    fn has_results(&self) -> bool {
        self.messages.iter().flat_map(Message::tool_results).next().is_some()
    }
}

/// The runs of a thread from its end: what is near the end is found without a look at the rest.
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

/// Returns the ids of the calls at the end of the thread that have no result yet, in order.
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

fn cuts_loop_well(messages: &[Message], signed_loop: Option<usize>, at: usize) -> bool {
    // At the end, and before a message without blocks, no reasoning is missing.
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
    fn a_signed_loop_is_cut_before_reasoning_and_before_what_says_nothing() {
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
