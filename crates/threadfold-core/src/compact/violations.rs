//! What no provider accepts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::turns::{ById, ServerCalls, Turn, turns};
use crate::message::{Message, Text};

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
    /// The result of a provider's own call without that call anywhere before it.
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
    /// A text block of white space only.
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

/// Returns everything in the thread that no provider accepts, in order of the messages. Calls at
/// the end that have no result yet are legal. Takes time linear in the blocks.
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
    let mut turns = turns(messages).peekable();
    while let Some(turn) = turns.next() {
        let within = messages.get(turn.start..turn.end).into_iter().flatten();
        for (index, message) in (turn.start..).zip(within) {
            check_blocks(index, message, &mut found);
        }
        check_calls(&turn, turns.peek(), &mut found);
        check_results(&turn, before.as_ref(), &mut found);
        for (call, answer) in servers.answers(&turn) {
            if call.is_none() {
                let (message, id) = (answer.at.message, answer.id.clone());
                found.push(Violation::OrphanServerResult { message, id });
            }
        }
        before = Some(turn);
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

fn check_calls(turn: &Turn<'_>, next: Option<&Turn<'_>>, found: &mut Vec<Violation>) {
    let calls = ById::new(&turn.uses);
    let results = next.map(|next| ById::new(&next.results));
    for call in &turn.uses {
        let message = call.at.message;
        if calls.first(call.id).is_some_and(|first| first.at != call.at) {
            found.push(Violation::DuplicateCall { message, id: call.id.clone() });
        } else if results.as_ref().is_some_and(|results| results.first(call.id).is_none()) {
            found.push(Violation::UnansweredCall { message, id: call.id.clone() });
        }
    }
}

fn check_results(turn: &Turn<'_>, before: Option<&Turn<'_>>, found: &mut Vec<Violation>) {
    let calls = ById::new(before.map_or(&[], |before| &before.uses));
    let results = ById::new(&turn.results);
    for result in &turn.results {
        let message = result.at.message;
        if calls.first(result.id).is_none() {
            found.push(Violation::OrphanResult { message, id: result.id.clone() });
        } else if results.first(result.id).is_some_and(|first| first.at != result.at) {
            found.push(Violation::DuplicateResult { message, id: result.id.clone() });
        }
    }
}

impl Violation {
    /// What it is, wherever it stands: the kind, and the call.
    #[doc(hidden)]
    pub fn key(&self) -> (std::mem::Discriminant<Self>, Option<&Text>) {
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
