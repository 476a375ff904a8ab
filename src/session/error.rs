//! The error of a session.

use std::fmt;

use crate::{
    compact::CompactError,
    drive::CompactionError,
    log::LogError,
    message::{InvalidValue, ModelError, Text, ThreadId},
    store::StoreError,
};

pub(super) type Result<T, E = SessionError> = std::result::Result<T, E>;

/// Why a session could not be built, a turn failed, or a fork or an undo was refused. A session
/// stays usable after a turn failed: messages appended before the failure stay, and the next turn
/// first answers the open calls.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The model call failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The request exceeds the window: even the smallest possible request does, or
    /// [`max_reactive`](crate::auto::AutoPolicy::max_reactive) compactions did not help. All sizes
    /// are estimated tokens.
    #[error(
        "the request has about {tokens} tokens and {limit} fit; the system prompt has {system}, the \
         tools {tools}, and what was typed since the last answer {newest}{}{}", after(.tried),
        advice(*.system, *.tools, *.newest)
    )]
    CannotFit {
        /// The size of the smallest possible request.
        floor: u64,
        /// The size of the request.
        tokens: u64,
        /// The window minus the output reserve.
        limit: u64,
        /// The size of the system prompt, including the standing rules if they are in it.
        system: u64,
        /// The size of the tools.
        tools: u64,
        /// The size of what the user typed since the last answer, the message about to be sent included.
        newest: u64,
        /// Why the attempted compaction failed, if one was attempted.
        tried: Option<Text>,
    },
    /// A requested compaction failed.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    /// The store could not be read or written. Events that could not be written stay in the log,
    /// and the next turn writes them.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log refused an event. Thread and log are unchanged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A rule or a share of the policy is not valid. Nothing has changed.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// The builder names a thread and a store, but `build` does not load the thread from the store.
    #[error("thread {thread} is not loaded from its store: call open() instead of build()")]
    NotLoaded {
        /// The thread.
        thread: ThreadId,
    },
    /// The builder names another thread than its journal or its fork is of.
    #[error(
        "the log is of thread {found}, not of thread {thread}: a log and a fork keep the id that \
         they were made with"
    )]
    OtherThread {
        /// The thread that the builder names.
        thread: ThreadId,
        /// The thread of the log.
        found: ThreadId,
    },
    /// The message has no content for a model. The thread is unchanged.
    #[error("the message is blank")]
    Blank,
    /// There is no turn to continue.
    #[error("the thread has no turn to continue: {turn}")]
    NothingToContinue {
        /// Why.
        turn: LastTurn,
    },
    /// Two tools have the same name.
    #[error("two tools are called {name}")]
    DoubleTool {
        /// The name.
        name: Text,
    },
    /// The thread has fewer messages than the fork asks for.
    #[error("the thread has {found} messages, so it cannot fork before message {message}")]
    NoMessage {
        /// The index of the message before which to fork.
        message: usize,
        /// The number of messages in the thread.
        found: usize,
    },
    /// The thread does not match the log. Both are unchanged.
    #[error(transparent)]
    Stale(#[from] CompactError),
}

/// Why there is no turn to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastTurn {
    /// The thread ends with a complete answer.
    Over,
    /// The message that was sent last is not in the thread, because its stream was dropped or failed
    /// before that; or nothing was sent yet.
    NeverBegan,
}

impl fmt::Display for LastTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Over => "the last one is over, so send a message",
            Self::NeverBegan => "the last message is not in the thread, so send it again",
        })
    }
}

fn after(tried: &Option<Text>) -> String {
    tried.as_ref().map(|tried| format!("; compacting failed: {tried}")).unwrap_or_default()
}

/// Advice for the part with the most tokens.
fn advice(system: u64, tools: u64, newest: u64) -> &'static str {
    match newest.max(system).max(tools) {
        0 => "",
        most if most == newest => {
            "; send less at once, such as a file by its path, or continue the turn without a new \
             message if an earlier one is not answered yet"
        }
        most if most == tools => "; offer fewer tools, or describe them in fewer words",
        _ => "; shorten the system prompt",
    }
}
