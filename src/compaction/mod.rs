//! The life of a compaction: one state machine for all compactions.
//!
//! An automatic compaction, `/compact`, the tools of the model, a background job and a host's own
//! plan use the same machine. The [driver](crate::drive) runs it; a durable engine ends it with
//! [`Conversation::finish`](crate::drive::Conversation::finish). Every compaction has one start
//! event and one end event, and the log agrees with them. A loop without a session offers the
//! model's tools with [`compact_tool`] and [`compact_context_tool`], and plans a call with
//! [`plan_call`]. [`CompactionDisplay`], [`api`] and [`acp`] show the events to people, web pages
//! and editors.

pub mod acp;
pub mod api;
mod display;
mod error;
mod event;
mod machine;
#[doc(hidden)]
pub mod telemetry;
mod tool_calls;

pub use display::{CompactionDisplay, console};
pub(crate) use error::Result;
pub use error::{CompactionError, CompactionErrorKind};
pub use event::CompactionEvent;
pub(crate) use machine::redacted;
pub(crate) use machine::{Compaction, Stage, redacted_by};
pub use tool_calls::{
    COMPACT, COMPACT_CONTEXT, COMPACTED, compact_context_tool, compact_tool, plan_call,
};

pub(crate) use tool_calls::{ContextCompacted, ONE_CALL, not_compacted, plan_ranges, ranges};
