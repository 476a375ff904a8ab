//! What no provider accepts, how to mend it, and where a thread may be cut.
//!
//! Only rules that hold everywhere stand here; what one provider demands (who speaks first, strict
//! alternation, the form of ids) is the business of its codec. Neighbours of one role count as one
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
//! # Ok::<(), threadfold::message::JsonError>(())
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

use super::turns::{self, ById, Turn};
use crate::message::{ContentBlock, Message, Role, Text};

pub(crate) use super::repair::{NO_RESULT, repair_numbered};
pub use super::repair::{Repair, repair};

/// Something in a thread that no provider accepts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Violation {
    /// A result whose call is not in the turn before it.
    OrphanResult {
        /// The message that holds the result.
        message: usize,
        /// The call that it names.
        id: Text,
    },
    /// A call that the turn after it does not answer, although there is one.
    UnansweredCall {
        /// The message that holds the call.
        message: usize,
        /// Its id.
        id: Text,
    },
    /// A second result for one call.
    DuplicateResult {
        /// The message that holds the second one.
        message: usize,
        /// The call that it names.
        id: Text,
    },
    /// A call id twice in one turn.
    DuplicateCall {
        /// The message that holds the second one.
        message: usize,
        /// The id.
        id: Text,
    },
    /// The result of a provider's own call without that call before it in the same turn.
    OrphanServerResult {
        /// The message that holds the result.
        message: usize,
        /// The call that it names.
        id: Text,
    },
    /// A block that this role cannot send: a call of the user, a result of the assistant.
    WrongRole {
        /// The message that holds the block.
        message: usize,
        /// The kind of the block.
        kind: Text,
    },
    /// A text block of nothing but white space.
    BlankText {
        /// The message that holds the block.
        message: usize,
    },
    /// A message without blocks.
    EmptyMessage {
        /// The message.
        message: usize,
    },
}

/// Returns everything in the thread that no provider accepts, in order of the messages. Calls that
/// nobody has answered yet at the open end are legal. Takes time linear in the blocks.
///
/// ```
/// use threadfold::{Message, Role, legality, message::ToolResult};
///
/// let thread = [Message::new(Role::User, vec![ToolResult::text("t1", "done").into()])];
/// let found = legality::violations(&thread);
/// assert_eq!(found[0].to_string(), "message 0: result for t1, which is not called");
/// ```
#[must_use]
pub fn violations(messages: &[Message]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        check_blocks(index, message, &mut found);
    }
    let turns = turns::turns(messages);
    for (turn, next) in turns.iter().zip(turns.iter().skip(1).map(Some).chain([None])) {
        check_calls(turn, next, &mut found);
    }
    // A leading turn has nobody to answer; every other one answers the turn before it.
    let before = std::iter::once(None).chain(turns.iter().map(Some));
    for (turn, before) in turns.iter().zip(before) {
        check_results(turn, before, &mut found);
    }
    found.sort_by_key(Violation::message);
    found
}

/// Whether a message breaks no rule behind one of this role, where no call is open for it to answer.
/// That takes no look at the thread. `false` says nothing, and [`violations`] tells: so it is for
/// results, and where messages of one role meet.
pub(crate) fn begins_turn(before: Option<Role>, message: &Message) -> bool {
    let turns = match (before, message.role) {
        (None, Role::User | Role::Assistant) => true,
        (Some(Role::Assistant), Role::User) | (Some(Role::User), Role::Assistant) => true,
        (Some(_), Role::User | Role::Assistant) | (_, Role::System) => false,
    };
    let content = &message.content;
    let in_order = |block: &ContentBlock| stands_alone(message.role, block);
    turns && !content.is_empty() && content.iter().all(in_order) && has_few_calls(message)
}

/// Returns the positions at which the thread may be cut in two, ascending: `n` stands for a cut
/// before message `n`. Zero is always one; the length is one unless calls are open there.
///
/// No call is open across a cut, so no cut stands before a tool result. No cut divides reasoning
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
    let turns = turns::turns(messages);
    let signed_loop = open_loop(messages).filter(|start| has_reasoning(messages, *start));
    let mut points = Vec::with_capacity(messages.len() + 1);
    for turn in &turns {
        // Behind its last result nothing is open any more; a turn that calls is one piece, and so
        // is one whose reasoning or server tools belong together.
        let first = turn.results.last().map_or(turn.start, |last| last.at.message + 1);
        let whole = !turn.uses.is_empty() || !turn.server_uses.is_empty() || turn.has_reasoning;
        let last = if whole { turn.start + 1 } else { turn.end };
        points.extend((first..last).filter(|at| cuts_loop_well(messages, signed_loop, *at)));
    }
    let open = turns.last().is_some_and(|turn| !turn.uses.is_empty());
    points.extend((!open).then_some(messages.len()));
    if points.first() != Some(&0) {
        points.insert(0, 0);
    }
    points
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
        Role::Assistant => last.messages.iter().any(|message| message.tool_uses().next().is_some()),
        Role::User => last.has_results(),
        Role::System => false,
    };
    // What was typed beside results came while the loop went on; it did not begin one.
    let begins = |run: &Run<'_>| {
        run.role == Role::User && !run.has_results() && run.messages.iter().any(Message::is_typed)
    };
    let start = std::iter::once(last).chain(runs).find(begins).map_or(0, |run| run.end);
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
    fn has_results(&self) -> bool {
        self.messages.iter().any(|message| message.tool_results().next().is_some())
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

/// Returns the ids of the calls that nobody has answered yet at the end of the thread, in order.
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
    let run = messages.iter().rev().take_while(|message| message.role == Role::Assistant);
    let mut run: Vec<&Message> = run.collect();
    run.reverse();
    run.iter().flat_map(|message| message.tool_uses()).map(|call| call.id.clone()).collect()
}

/// Whether a block is in order in a message of this role, whatever stands around it, but for its id.
fn stands_alone(role: Role, block: &ContentBlock) -> bool {
    let result = matches!(block, ContentBlock::ToolResult(_) | ContentBlock::ServerToolResult(_));
    !result && turns::may_send(role, block) && !turns::is_blank(block)
}

/// Whether every call has an id of its own, and there are too few for a map to be worth it.
fn has_few_calls(message: &Message) -> bool {
    const FEW: usize = 8;
    let mut calls = message.tool_uses().enumerate();
    let own = |at: usize, id: &Text| message.tool_uses().take(at).all(|before| before.id != *id);
    calls.all(|(at, call)| at < FEW && own(at, &call.id))
}

fn has_reasoning(messages: &[Message], start: usize) -> bool {
    let blocks = messages.iter().skip(start).flat_map(|message| &message.content);
    blocks.into_iter().any(ContentBlock::is_reasoning)
}

fn cuts_loop_well(messages: &[Message], signed_loop: Option<usize>, at: usize) -> bool {
    if signed_loop.is_none_or(|start| at <= start) {
        return true;
    }
    let first = messages.get(at).and_then(|message| message.content.first());
    first.is_none_or(ContentBlock::is_reasoning)
}

fn check_blocks(index: usize, message: &Message, found: &mut Vec<Violation>) {
    if message.content.is_empty() {
        found.push(Violation::EmptyMessage { message: index });
    }
    for block in &message.content {
        if !turns::may_send(message.role, block) {
            found.push(Violation::WrongRole { message: index, kind: block.kind().into() });
        }
        if turns::is_blank(block) {
            found.push(Violation::BlankText { message: index });
        }
    }
}

fn check_calls(turn: &Turn<'_>, next: Option<&Turn<'_>>, found: &mut Vec<Violation>) {
    let calls = ById::new(&turn.uses);
    let results = next.map(|next| ById::new(&next.results));
    for call in &turn.uses {
        let (message, id) = (call.at.message, call.id.clone());
        if calls.first(call.id).is_some_and(|first| first.at != call.at) {
            found.push(Violation::DuplicateCall { message, id });
        } else if results.as_ref().is_some_and(|results| results.first(call.id).is_none()) {
            found.push(Violation::UnansweredCall { message, id });
        }
    }
}

fn check_results(turn: &Turn<'_>, before: Option<&Turn<'_>>, found: &mut Vec<Violation>) {
    let calls = ById::new(before.map_or(&[], |before| &before.uses));
    let results = ById::new(&turn.results);
    for result in &turn.results {
        let (message, id) = (result.at.message, result.id.clone());
        if calls.first(result.id).is_none() {
            found.push(Violation::OrphanResult { message, id });
        } else if results.first(result.id).is_some_and(|first| first.at != result.at) {
            found.push(Violation::DuplicateResult { message, id });
        }
    }
    let calls = ById::new(&turn.server_uses);
    for result in &turn.server_results {
        if calls.first(result.id).is_none_or(|call| call.at > result.at) {
            let (message, id) = (result.at.message, result.id.clone());
            found.push(Violation::OrphanServerResult { message, id });
        }
    }
}

impl Violation {
    /// What it is, wherever it stands: the kind, and the call.
    pub(crate) fn key(&self) -> (std::mem::Discriminant<Self>, Option<&Text>) {
        (std::mem::discriminant(self), self.id())
    }

    fn id(&self) -> Option<&Text> {
        match self {
            Self::OrphanResult { id, .. }
            | Self::UnansweredCall { id, .. }
            | Self::DuplicateResult { id, .. }
            | Self::DuplicateCall { id, .. }
            | Self::OrphanServerResult { id, .. } => Some(id),
            Self::WrongRole { kind, .. } => Some(kind),
            Self::BlankText { .. } | Self::EmptyMessage { .. } => None,
        }
    }

    /// The message that it concerns.
    #[must_use]
    pub fn message(&self) -> usize {
        match self {
            Self::OrphanResult { message, .. }
            | Self::UnansweredCall { message, .. }
            | Self::DuplicateResult { message, .. }
            | Self::DuplicateCall { message, .. }
            | Self::OrphanServerResult { message, .. }
            | Self::WrongRole { message, .. }
            | Self::BlankText { message }
            | Self::EmptyMessage { message } => *message,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: ", self.message())?;
        match self {
            Self::OrphanResult { id, .. } => write!(f, "result for {id}, which is not called"),
            Self::UnansweredCall { id, .. } => write!(f, "call {id} is not answered"),
            Self::DuplicateResult { id, .. } => write!(f, "second result for {id}"),
            Self::DuplicateCall { id, .. } => write!(f, "call id {id} twice in one turn"),
            Self::OrphanServerResult { id, .. } => {
                write!(f, "server tool result for {id}, which is not called")
            }
            Self::WrongRole { kind, .. } => write!(f, "{kind} of the wrong role"),
            Self::BlankText { .. } => f.write_str("blank text"),
            Self::EmptyMessage { .. } => f.write_str("no content"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, ServerToolResult, ServerToolUse, Thinking, ToolResult, ToolUse};

    fn call(id: &str) -> ContentBlock {
        ToolUse::new(id, "read", Json::default()).into()
    }

    #[test]
    fn a_look_at_a_message_alone_knows_what_is_in_order_behind_whom() {
        let said = |text: &str| ContentBlock::text(text);
        let calls = |count: usize| (0..count).map(|at| call(&at.to_string())).collect();
        let search = || ContentBlock::from(ServerToolUse::new("s", "search", Json::default()));
        let found = || ContentBlock::from(ServerToolResult::new("s", "found", Json::default()));
        let (nobody, assistant, both) = ([false, false], [false, true], [true, true]);
        for (content, expected) in [
            (vec![], nobody),
            (vec![said("Well.")], both),
            (vec![said("Well."), said(" ")], nobody),
            (vec![said("Well."), call("a")], assistant),
            (vec![call("a"), call("b")], assistant),
            (vec![call("a"), call("b"), call("a")], nobody),
            (calls(8), assistant),
            (calls(9), nobody),
            (vec![ToolResult::text("a", "done").into()], nobody),
            (vec![Thinking::new("Hm.", None).into()], assistant),
            (vec![search()], assistant),
            (vec![search(), found()], nobody),
        ] {
            let begins = |before, role| begins_turn(before, &Message::new(role, content.clone()));
            let [user, assistant] = expected;
            let (of_user, of_assistant) = (Some(Role::User), Some(Role::Assistant));
            for (before, expected) in [
                (None, [user, assistant, false]),
                (of_user, [false, assistant, false]),
                (of_assistant, [user, false, false]),
                (Some(Role::System), [false; 3]),
            ] {
                let roles = [Role::User, Role::Assistant, Role::System];
                let found = roles.map(|role| begins(before, role));
                assert_eq!(found, expected, "{content:?} behind {before:?}");
            }
        }
    }

    #[test]
    fn violations_are_told_apart_by_kind_and_by_what_they_name_and_not_by_place() {
        let empty = |message| Violation::EmptyMessage { message };
        let blank = |message| Violation::BlankText { message };
        let open = |message, id: &str| Violation::UnansweredCall { message, id: id.into() };
        let twice = |message, id: &str| Violation::DuplicateCall { message, id: id.into() };
        let role = |message, kind: &str| Violation::WrongRole { message, kind: kind.into() };
        assert_eq!(open(1, "a").key(), open(2, "a").key());
        assert_eq!(empty(1).key(), empty(2).key());
        let others = [empty(1), blank(1), open(1, "a"), open(1, "b"), twice(1, "a")];
        let others = [others.to_vec(), vec![role(1, "tool_use"), role(1, "tool_result")]].concat();
        for (at, one) in others.iter().enumerate() {
            let like = others.iter().filter(|other| other.key() == one.key());
            assert_eq!(like.collect::<Vec<_>>(), [one], "{at}");
        }
    }
}
