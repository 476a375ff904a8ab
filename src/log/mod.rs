//! The history of a thread, and the live thread.
//!
//! [`EventLog`] holds every event, in order. [`Thread`] is the live projection: the messages of the
//! next request, with an index that answers the questions of every turn in constant time. After
//! every operation, `log.replay()` equals `thread.messages()`.
//!
//! A compaction is stored as its [`Plan`](crate::Plan), so a replay runs no strategy and calls no
//! model. Nothing is ever removed from the log, so every compaction can be undone.
//!
//! | I want to ... | use ... |
//! |---|---|
//! | record an event | [`EventLog::append`] with an [`Event`] |
//! | rebuild the thread | [`EventLog::replay`]; with sources: [`EventLog::sources`]; the events that it skips: [`EventLog::skipped`] |
//! | undo a compaction | [`EventLog::undo`] |
//! | find the messages that a summary replaces | [`EventLog::covered`] |
//! | get the messages that compactions removed | [`Recall`](crate::recall::Recall) |
//! | store and load a log | [`write_header`], [`write_event`], [`EventLog::read`] |
//! | append events that another writer stored | [`EventLog::append_logged`] |
//! | hold the live thread | [`Thread`]; after a load: [`Thread::restored`] |
//! | know what was billed, and how full the context is | [`total_usage`], [`Pressure`](crate::auto::Pressure) |
//! | ration tokens | [`TokenBudget`] |
//! | add checkpoints to a thread without them | [`stamp`] |
//!
//! # What is an event
//!
//! A message is one event, with its tool calls, or with all tool results that were sent in it.
//! Other agents log finer events. Those of lace, for example, map to:
//!
//! | lace | here |
//! |---|---|
//! | `USER_MESSAGE` | [`Event::MessageAppended`] by the user |
//! | `AGENT_MESSAGE` and the `TOOL_CALL`s after it | one [`Event::MessageAppended`] by the assistant, calls and usage in it |
//! | the `TOOL_RESULT`s of one turn | one [`Event::MessageAppended`] by the user, a block a result |
//! | `TOOL_APPROVAL_REQUEST`, `TOOL_APPROVAL_RESPONSE` | [`Event::Host`] |
//! | `LOCAL_SYSTEM_MESSAGE` | [`Event::LocalNotice`]: shown, never sent to a model |
//! | `SYSTEM_PROMPT` | [`Event::SystemPromptSet`] of the host |
//! | `USER_SYSTEM_PROMPT` | [`Event::SystemPromptSet`] of the user |
//! | `COMPACTION` | [`Event::Compacted`]: a plan instead of the remaining events |
//! | `EVENT_UPDATED` and its visibility flags | none: a plan removes messages as a whole |
//! | streamed tokens, states, tasks, agents, start and end of a compaction | none: not stored |
//! | none | [`Event::Truncated`], [`Event::CompactionFailed`], [`Event::CompactionUndone`] |
//!
//! # How a replay works
//!
//! - Compactions apply in order: each plan is for the thread that the earlier ones left.
//! - A compaction that cannot be read or does not fit is skipped. The thread then keeps its
//!   messages and is longer, and later events that were meant for the compacted thread are
//!   harmless. [`EventLog::skipped`] lists the skipped events.
//! - Any other event that cannot be read, or is of an unknown kind, is an error when the log is
//!   read ([`LogError`]), so no message, rule or note is silently missing.
//! - Tool results that are duplicates, have no id or answer no call are kept.
//!   [`legality::repair`](crate::legality::repair) removes them from a replayed thread. It keeps
//!   the first result of a call, so a result that a compaction inserted takes precedence over a
//!   late duplicate.
//! - Only the order in the log counts, never the times.
//!
//! ```
//! use threadfold::{Message, Replacement, Thread, compact::CompactOptions};
//! use threadfold::log::{CompactionRecord, Event, EventLog};
//! use threadfold::message::{CompactionReason, Timestamp};
//!
//! let (mut log, mut thread) = (EventLog::new("main".parse()?), Thread::default());
//! for message in [Message::user("hi"), Message::assistant("hello")] {
//!     log.append(Timestamp(1), Event::MessageAppended(message.clone()))?;
//!     thread.push(message);
//! }
//! let plan = thread.plan(&[Replacement::new("They greeted.")], &CompactOptions::default())?;
//! thread.apply(&plan)?;
//! let id = log.next_compaction();
//! let record = CompactionRecord::new(id, CompactionReason::default(), "by-hand", plan);
//! log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
//! assert_eq!(log.replay(), thread.messages()[..]);
//!
//! let mut stored = Vec::new();
//! log.write(&mut stored)?;
//! assert_eq!(EventLog::read(stored.as_slice())?.log, log);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod base;
mod batches;
mod budget;
mod error;
mod event;
mod event_log;
mod form;
mod ids;
mod lines;
mod log_id;
mod logged;
mod logged_notes;
mod net_gain;
mod projection;
mod removed;
mod repair;
mod size;
mod state;
mod thread;
mod usage;

pub(crate) use base::{LogBase, StoredBase};
pub use budget::TokenBudget;
pub use error::LogError;
pub use event::{CompactionFailure, CompactionRecord, Counted, Event, LoggedEvent, Rung};
pub use event_log::EventLog;
pub(crate) use form::read as read_event;
pub(crate) use lines::write_named_header;
pub use lines::{Loaded, write_event, write_header};
pub use log_id::LogId;
pub(crate) use logged::{LoggedFacts, LoggedRules};
pub use net_gain::NetGain;
pub(crate) use removed::Removed;
pub(crate) use thread::{Next, for_appending};
pub use thread::{Thread, stamp};
pub use usage::{TotalUsage, total_usage};
