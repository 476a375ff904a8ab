//! The drivers: thin loops that await, so that strategies need not.
//!
//! [`propose`] runs a strategy on a snapshot and changes nothing: a proposal is carried out by
//! whoever asked for it, and dropping the future cancels without a trace. [`compact`] goes all the
//! way, over thread, log, store and archive of a [`Conversation`]: it proposes, archives, commits
//! and stores, in this order, so that whatever fails leaves everything as it was and one event that
//! says so. With the feature `tracing` it is one span, whose names [`telemetry`] has.

mod attempt;
mod compact;
mod error;
mod span;
pub mod telemetry;

pub use crate::compaction::{Done, DriveError, Driven};
pub use attempt::{DriveEvent, Models, advance, drive, propose};
pub use compact::{Conversation, compact};
pub use error::CompactionError;

pub(crate) use attempt::{Listener, drive_with};
pub(crate) use compact::{logged_snapshot, nothing_to_do};
pub(crate) use span::CompactionSpan;
