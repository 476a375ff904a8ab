//! What is known of a thread over time.
//!
//! [`Thread`] is the live projection: the messages that the model sees next, with an index that
//! answers in constant time what is asked on every turn. [`stamp`] puts checkpoints into a thread
//! that came without.

mod event;
mod event_log;
mod form;
mod lines;
mod thread;

pub use event::{
    CompactionFailure, CompactionRecord, CompactionUndone, Event, HostEvent, LocalNotice,
    LoggedEvent, PromptAuthor, RungReport, SystemPrompt, Truncated, UnreadEvent,
};
pub use event_log::{AppendError, EventLog};
pub use lines::{LogRead, LogReadError, LogReadOptions, TornTail, write_event, write_header};
pub use thread::{Thread, stamp};
