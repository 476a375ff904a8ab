//! The drivers: what runs a strategy, and what carries out its proposal.
//!
//! [`propose`] runs a strategy on a snapshot and changes nothing: the caller applies the proposal,
//! and dropping the future cancels the strategy. [`compact`] also changes thread, log and store of a
//! [`Conversation`]. It proposes, commits and stores, in this order, so a failure before the commit
//! changes nothing, except that one event in the log reports it. With the feature `tracing` a
//! compaction is one span; [`telemetry`] documents it.

mod compact;
mod models;
mod prepared;
mod span;
#[doc(inline)]
pub use crate::compaction::telemetry;

pub use crate::compaction::{CompactionError, CompactionErrorKind};
pub use compact::{Conversation, compact};
pub use models::{Models, advance, propose, propose_with};
pub use prepared::PreparedCompaction;

pub(crate) use models::{Calls, Listener};
pub(crate) use prepared::CompactionJob;
pub(crate) use span::CompactionSpan;
