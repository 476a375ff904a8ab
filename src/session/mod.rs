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
//! nothing; `@compact`, with a prompt behind it, compacts and goes on with the prompt. The model may
//! have a tool, `compact_context`, to the same end.

mod ask;
mod builder;
mod command;
mod compaction;
mod error;
mod event;
mod events;
mod handle;
mod lawful;
#[expect(clippy::module_inception, reason = "the folder is the driver, the file its centre")]
mod session;
mod tools;
mod undo;
mod work;

pub use builder::{BuildError, SessionBuilder};
pub use command::Command;
pub use error::SessionError;
pub use event::{CompactionEvent, SessionEvent};
pub use events::{Events, Reply};
pub use handle::SessionHandle;
pub use session::Session;
pub use tools::COMPACT_CONTEXT;
pub use undo::UndoCompactionError;
