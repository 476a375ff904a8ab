//! What an app embeds: an agent thread that never overflows.
//!
//! [`Session::send`] takes what the user says and gives a stream of what happens: pieces of the
//! answer, tools at work, compactions. The loop of model and tools is a
//! [`TurnMachine`](crate::turn::TurnMachine), when to compact is an
//! [`AutoCompactor`](crate::auto::AutoCompactor), how is a
//! [strategy](crate::strategy); the session only awaits.
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
//! # What holds
//!
//! - Thread and log change together, at the borders of messages, and never across an await. The
//!   store is written before the next step is taken.
//! - A stream that is dropped, at whatever point, cancels the turn. The next `send` works: calls
//!   that are open are answered first, and a compaction that was under way is told to be cancelled.
//! - Every call gets exactly one result, in the order of the calls. A tool that fails, does not
//!   exist or was given no JSON is told as an error result.
//! - Every compaction has one start and one end among the events, on every path.
//! - What a model or a person says comes into the thread as every provider takes it back: blank text,
//!   results that nobody asked for and ids that come twice in one answer are mended, and an answer
//!   of nothing leaves nothing.
//! - No request goes out that the window cannot hold by the session's own estimate.
//!
//! # Which commands there are
//!
//! `/compact`, with what the summary should attend to behind it, compacts and asks the model
//! nothing; `@compact`, with a prompt behind it, compacts and goes on with the prompt.
//!
//! The model may have tools to the same end. [`COMPACT_CONTEXT`] leaves the how to the strategy; with
//! [`COMPACT`] the model names ranges between the checkpoints that end every user message, and
//! writes their summaries itself. With [`recall`](mod@crate::recall) it reads what was compacted away.
//!
//! # What goes on beside it
//!
//! [`Session::prepare_compaction`] gives a job that a host runs on a task of its own while the
//! conversation goes on; [`Session::preview`] shows what a strategy would do. What comes of either is
//! [adopted](Session::adopt) or dropped. [`Session::fork`] goes another way from any point, and
//! [`Session::undo_compaction`] takes the latest compaction back.
//!
//! # How a compaction is told
//!
//! | to | with |
//! |---|---|
//! | the host | [`SessionEvent::Compaction`], among the events of the turn |
//! | a person at a console | a [`CompactionDisplay`], such as [`ConsoleDisplay`] |
//! | a web page | [`api::ApiEvent`] and [`api::TokenUsageSummary`] |
//! | a client of the Agent Client Protocol | [`acp`] |
//! | whoever traces | a span, with the feature `tracing`: [`drive::telemetry`](crate::drive::telemetry) |

mod build;
mod builder;
mod calls;
mod command;
mod compact_tools;
mod compacting;
mod context;
mod error;
mod event;
mod events;
mod fork;
mod handle;
mod job;
mod recall_tool;
mod repair;
mod rules;
mod rules_cache;
mod send;
#[expect(clippy::module_inception, reason = "the folder is the driver, the file its centre")]
mod session;
mod settings;
mod slot;
mod tool_output;
mod undo;
mod work;

pub use crate::compaction::{
    COMPACT, COMPACT_CONTEXT, CompactionDisplay, CompactionEvent, ConsoleDisplay, acp, api,
};
pub use build::BuildError;
pub use builder::SessionBuilder;
pub use command::Command;
pub use error::SessionError;
pub use event::SessionEvent;
pub use events::{Events, Reply, ReplyFuture};
pub use fork::{ForkError, ForkPoint};
pub use handle::{SessionHandle, SessionStatus};
pub use job::{CompactionJob, PreparedCompaction};
pub use session::Session;
pub use undo::UndoCompactionError;
