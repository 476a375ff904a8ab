//! The drivers: async loops that run strategies, which are state machines without I/O.
//!
//! [`propose`] runs a strategy on a snapshot and changes nothing: the caller applies the proposal,
//! and dropping the future cancels the attempt. [`compact`] also changes thread, log and store
//! of a [`Conversation`]. It proposes, commits and stores, in this order, so a
//! failure before the commit changes nothing, except that one event in the log reports it. With the
//! feature `tracing` a compaction is one span; [`telemetry`] documents it.

mod attempt;
mod compact;
mod span;
#[doc(inline)]
pub use crate::compaction::telemetry;

pub use crate::compaction::{CompactionError, CompactionErrorKind};
pub use attempt::{Models, advance, drive, propose};
pub use compact::{Conversation, compact};

pub(crate) use attempt::{Listener, drive_with};
pub(crate) use compact::{Begun, nothing_to_do, run, with_facts};
pub(crate) use span::CompactionSpan;
