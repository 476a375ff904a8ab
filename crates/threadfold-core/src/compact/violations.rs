//! Violations of the rules that all providers share.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::runs::{ById, RoleRun, ServerCalls, role_runs};
use crate::message::{Message, Text};

/// A violation of a rule that all providers share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Violation {
    /// A tool result whose call is not in the run of messages before it.
    OrphanResult {
        /// The index of the message with the result.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// A tool call that the next run of messages does not answer, although there is one.
    UnansweredCall {
        /// The index of the message with the call.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// A second result for one tool call.
    DuplicateResult {
        /// The index of the message with the second result.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// A call id that occurs twice in one run of messages.
    DuplicateCall {
        /// The index of the message with the second call.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// The result of a provider's own call, without that call anywhere before it.
    OrphanServerResult {
        /// The index of the message with the result.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// A block that the role cannot send: a tool call of the user, a tool result of the assistant.
    WrongRole {
        /// The index of the message with the block.
        message: usize,
        /// The kind of the block.
        kind: Text,
    },
    /// A text block that is empty or white space.
    BlankText {
        /// The index of the message with the block.
        message: usize,
    },
    /// A message without blocks.
    EmptyMessage {
        /// The index of the message.
        message: usize,
    },
}

/// Returns all violations of the rules that all providers share, in the order of the messages.
/// Calls at the end without a result are legal. Time is linear in the number of blocks.
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
    let (mut before, mut servers) = (None, ServerCalls::default());
    let mut runs = role_runs(messages).peekable();
    while let Some(run) = runs.next() {
        let within = messages.get(run.start..run.end).into_iter().flatten();
        for (index, message) in (run.start..).zip(within) {
            check_blocks(index, message, &mut found);
        }
        check_calls(&run, runs.peek(), &mut found);
        check_results(&run, before.as_ref(), &mut found);
        for (call, answer) in servers.answers(&run) {
            if call.is_none() {
                let (message, id) = (answer.at.message, answer.id.clone());
                found.push(Violation::OrphanServerResult { message, id });
            }
        }
        before = Some(run);
    }
    found.sort_by_key(Violation::message);
    found
}

fn check_blocks(index: usize, message: &Message, found: &mut Vec<Violation>) {
    if message.content.is_empty() {
        found.push(Violation::EmptyMessage { message: index });
    }
    for block in &message.content {
        if !message.role.may_send(block) {
            found.push(Violation::WrongRole { message: index, kind: block.kind().into() });
        }
        if block.is_blank() {
            found.push(Violation::BlankText { message: index });
        }
    }
}

fn check_calls(run: &RoleRun<'_>, next: Option<&RoleRun<'_>>, found: &mut Vec<Violation>) {
    let calls = ById::new(&run.uses);
    let results = next.map(|next| ById::new(&next.results));
    for call in &run.uses {
        let message = call.at.message;
        if calls.first(call.id).is_some_and(|first| first.at != call.at) {
            found.push(Violation::DuplicateCall { message, id: call.id.clone() });
        } else if results.as_ref().is_some_and(|results| results.first(call.id).is_none()) {
            found.push(Violation::UnansweredCall { message, id: call.id.clone() });
        }
    }
}

fn check_results(run: &RoleRun<'_>, before: Option<&RoleRun<'_>>, found: &mut Vec<Violation>) {
    let calls = ById::new(before.map_or(&[], |before| &before.uses));
    let results = ById::new(&run.results);
    for result in &run.results {
        let message = result.at.message;
        if calls.first(result.id).is_none() {
            found.push(Violation::OrphanResult { message, id: result.id.clone() });
        } else if results.first(result.id).is_some_and(|first| first.at != result.at) {
            found.push(Violation::DuplicateResult { message, id: result.id.clone() });
        }
    }
}

impl Violation {
    /// The kind of violation and what it names, independent of its position.
    #[doc(hidden)]
    pub fn key(&self) -> (std::mem::Discriminant<Self>, Option<&Text>) {
        let named = match self {
            Self::OrphanResult { id, .. }
            | Self::UnansweredCall { id, .. }
            | Self::DuplicateResult { id, .. }
            | Self::DuplicateCall { id, .. }
            | Self::OrphanServerResult { id, .. } => Some(id),
            Self::WrongRole { kind, .. } => Some(kind),
            Self::BlankText { .. } | Self::EmptyMessage { .. } => None,
        };
        (std::mem::discriminant(self), named)
    }

    /// The index of the message.
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
            Self::DuplicateCall { id, .. } => {
                write!(f, "call id {id} twice in one run of messages")
            }
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

    #[test]
    fn violations_of_one_kind_with_one_id_are_equal_wherever_they_are() {
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
