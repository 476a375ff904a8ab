//! The session: an agent thread that stays inside its model's context window.
//!
//! [`Session::send`] takes a user message and returns a stream of events: pieces of the answer,
//! tool calls, compactions. [`TurnMachine`](crate::turn::TurnMachine) decides the next step of the
//! loop of model and tools, [`AutoCompactor`](crate::auto::AutoCompactor) decides when to compact,
//! and a [strategy](crate::strategy) decides how. The session only awaits.
//!
//! ```
//! use futures::executor::block_on;
//! use std::sync::Arc;
//! use threadfold::{ModelAgent, session::Session, testing::ScriptedModel};
//!
//! let model = Arc::new(ScriptedModel::new(["Hello!"]));
//! let mut session = Session::builder(ModelAgent::new(model)).build()?;
//! let reply = block_on(async { session.send("Hi.").await })?;
//! assert_eq!(reply.text, "Hello!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - Thread and log change together, at message boundaries, and never across an await. The store is
//!   written before the next step.
//! - Dropping a stream at any point cancels the turn. The next `send` first answers open calls and
//!   emits the end event of a compaction that was in flight.
//! - Every call gets exactly one result, in the order of the calls. A tool that fails, panics or
//!   does not exist, and input that is not JSON, give an error result.
//! - A turn that broke off for any reason can be [continued](Session::continue_turn) without a new
//!   message.
//! - A queued text is sent by the running turn or waits for the next one, and the host learns
//!   [which](SessionHandle::queue), even if the turn is just ending.
//! - Every compaction has one start event and one end event, on every path.
//! - Messages are repaired before they are appended, so that every provider accepts them later:
//!   blank text and results without a call are removed, duplicate ids in one answer are renamed,
//!   and an empty answer is not appended.
//! - No request exceeds the window by the session's own estimate. The exceptions are windows that
//!   are unknown or known only from refusals: see [`AutoCompactor`](crate::auto::AutoCompactor).
//!
//! # Commands and tools
//!
//! `/compact INSTRUCTIONS` compacts and does not ask the agent; the instructions are optional and name what the
//! summary should concentrate on. `@compact PROMPT` compacts and then sends the prompt. If the host
//! names [moderators](SessionBuilder::moderators), a command of anybody else is an ordinary text.
//!
//! The model can compact through tools. With [`COMPACT_CONTEXT`] the strategy chooses what to
//! replace. With [`COMPACT`] the model names ranges between the checkpoints at the end of user
//! messages, and writes the summaries itself. With [`recall`](mod@crate::recall) it reads messages
//! that were compacted away.
//!
//! # Background work, previews and forks
//!
//! [`Session::prepare_compaction`] returns a future that a host can run on its own task while the
//! conversation continues; [`Session::preview`] shows what a strategy would do. Either result can
//! be [edited](crate::drive::PreparedCompaction::edited), [adopted](Session::adopt) or dropped. [`Session::fork`]
//! continues from an earlier point as a separate thread. [`Session::undo_compaction`] takes a
//! compaction back, and [`Session::redo_compaction`] makes it again without a model.
//!
//! # While the user is away
//!
//! [`Session::idle_for`] keeps the provider's cache of the prompt alive, or compacts shortly before
//! it dies, if the policy has the prices by which this pays.
//!
//! # Changing a running session
//!
//! | change of | from now on | once |
//! |---|---|---|
//! | agent or model | [`set_agent`](Session::set_agent) | |
//! | window | [`set_window`](Session::set_window) | |
//! | strategy | [`set_strategy`](Session::set_strategy), [`set_strategy_named`](Session::set_strategy_named) | [`compact_with`](Session::compact_with) |
//! | summary, by the host | | [`replace`](Session::replace) |
//! | policy | [`set_policy`](Session::set_policy) | |
//! | tools, system prompt | [`set_tools`](Session::set_tools), [`set_system`](Session::set_system) | |
//!
//! # Where compactions are reported
//!
//! | audience | type |
//! |---|---|
//! | the host | [`SessionEvent::Compaction`], in the events of the turn |
//! | every observer, `adopt` included | [`SessionBuilder::observe`] |
//! | a user at a console | a [`CompactionDisplay`], such as [`console`] |
//! | a web page | [`api::compaction_event`] and [`api::TokenUsageSummary`] |
//! | a client of the Agent Client Protocol | [`acp`] |
//! | traces | a span, with the feature `tracing`: [`drive::telemetry`](crate::drive::telemetry) |

mod build;
mod builder;
mod calls;
mod change;
mod compacting;
mod error;
mod event;
mod events;
mod handle;
mod idle;
mod job;
mod send;
#[expect(clippy::module_inception, reason = "the folder is the driver, the file its centre")]
mod session;
mod user_text;
mod work;

pub use crate::compaction::{
    COMPACT, COMPACT_CONTEXT, CompactionDisplay, CompactionEvent, acp, api, console,
};
pub use builder::SessionBuilder;
pub use error::{LastTurn, SessionError};
pub use event::SessionEvent;
pub use events::{Events, Reply};
pub use handle::SessionHandle;
pub use idle::Idled;
pub use session::Session;
pub use user_text::UserText;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_turns_and_jobs_may_move_to_another_thread() {
        fn send<T: Send>() {}
        fn unpin<T: Unpin>() {}
        send::<Session>();
        send::<Events<'static>>();
        unpin::<Events<'static>>();
        send::<Result<Reply, SessionError>>();
        send::<SessionEvent>();
    }
}
