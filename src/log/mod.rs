//! What is known of a thread over time.
//!
//! [`EventLog`] is the truth: everything that happened, in order. [`Thread`] is the live projection:
//! the messages that the model sees next, with an index that answers the questions of every turn in
//! constant time. After every operation `log.replay()` is `thread.messages()`.
//!
//! A compaction is stored as its [`Plan`](crate::Plan), so a replay needs no algorithm of today and
//! asks no model; and since nothing is ever taken out of the log, it can be taken back.
//!
//! | I want to ... | use ... |
//! |---|---|
//! | note what happened | [`EventLog::append`] with an [`Event`] |
//! | have the thread again | [`EventLog::replay`]; with sources and what was left out: [`EventLog::projection`] |
//! | take a compaction back | [`EventLog::undo`] |
//! | know what a summary stands for | [`EventLog::covered`] |
//! | have what compactions took out of the thread | [`EventLog::taken`] |
//! | store and load a log | [`write_header`], [`write_event`], [`EventLog::read`] |
//! | go on with what another writer stored | [`EventLog::append_logged`] |
//! | hold the live thread | [`Thread`]; after a load: [`Thread::restored`] |
//! | know what was billed, and how full the context is | [`total_usage`], [`context_usage`] |
//! | ration tokens | [`TokenBudget`] |
//! | put checkpoints into a thread that came without | [`stamp`] |
//!
//! # What is an event
//!
//! A message is one event, with its calls or with all the results that were sent in it. Logs of
//! other agents have finer events; lace's, for one, are these here:
//!
//! | there | here |
//! |---|---|
//! | `USER_MESSAGE` | [`Event::MessageAppended`] by the user |
//! | `AGENT_MESSAGE` and the `TOOL_CALL`s after it | one [`Event::MessageAppended`] by the assistant, calls and usage in it |
//! | the `TOOL_RESULT`s of one turn | one [`Event::MessageAppended`] by the user, a block a result |
//! | `TOOL_APPROVAL_REQUEST`, `TOOL_APPROVAL_RESPONSE` | [`Event::Host`] |
//! | `LOCAL_SYSTEM_MESSAGE` | [`Event::LocalNotice`]: shown, never sent |
//! | `SYSTEM_PROMPT` | [`Event::SystemPromptSet`] by [`PromptAuthor::Host`] |
//! | `USER_SYSTEM_PROMPT` | [`Event::SystemPromptSet`] by [`PromptAuthor::User`] |
//! | `COMPACTION` | [`Event::Compacted`]: a plan instead of the events that are left |
//! | `EVENT_UPDATED` and its visibility flags | none: what a plan takes out is out |
//! | tokens as they stream, states, tasks, agents, start and end of a compaction | none: not stored |
//! | none | [`Event::Truncated`], [`Event::CompactionFailed`], [`Event::CompactionUndone`] |
//!
//! # How a thread is had again
//!
//! - The latest compaction counts: its plan is for the thread that the earlier ones left, so what
//!   they put in is seen through it or not at all.
//! - A compaction that cannot be read or does not fit is left out, and the thread is what it was
//!   before: complete, and only too long. What follows and was meant for the compacted
//!   thread does no harm. [`Projection::skipped`] says what was left out.
//! - A message that cannot be read is an error ([`LogError`]): nothing is silently missing.
//! - Results that come twice, have no id or answer no call are kept, as they happened.
//!   [`legality::repair`](crate::legality::repair) on what a replay gives takes them out; the first
//!   result stays, so one that a compaction put in beats a late double.
//! - Places in the log count, times never do.
//! - Kinds of events that a build does not know are kept, written back as they came and never sent.
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
//! assert_eq!(log.replay()?, thread.messages()[..]);
//!
//! let mut stored = Vec::new();
//! log.write(&mut stored)?;
//! assert_eq!(EventLog::read(stored.as_slice())?.log, log);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod covered;
mod error;
mod event;
mod event_log;
mod facts;
mod form;
mod lines;
mod log_id;
mod originals;
mod projection;
mod rewrite;
mod rules;
mod state;
mod taken;
mod thread;
mod undo;
mod usage;

pub use budget::{BudgetStatus, Recommendations, TokenBudget};
pub use error::{LogError, Skipped};
pub use event::{
    CompactionFailure, CompactionRecord, CompactionUndone, Event, HostEvent, LocalNotice,
    LoggedEvent, PromptAuthor, RuleChange, RungReport, SystemPrompt, Truncated, UnreadEvent,
};
pub use event_log::EventLog;
pub(crate) use facts::LoggedFacts;
pub(crate) use lines::write_named_header;
pub use lines::{LogRead, LogReadOptions, TornTail, write_event, write_header};
pub use log_id::LogId;
pub use projection::{Projection, Source};
pub(crate) use rewrite::Next;
pub use rewrite::Rewrite;
pub(crate) use rules::LoggedRules;
pub use taken::Taken;
pub use thread::{Thread, stamp};
pub use usage::{ContextCount, ContextUsage, TotalUsage, context_usage, total_usage};
