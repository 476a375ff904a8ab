//! The life of a compaction: one state machine, whatever started it.
//!
//! An automatic compaction, `/compact`, the tools of the model, a background job and a host's own
//! plan all become a [`Compaction`]. It returns the next step and takes its result. It awaits
//! nothing, so the [driver](crate::drive) or a durable engine can run it. Every compaction has one
//! start and one end, and the log agrees with its events. A loop without a session offers the
//! model's tools with [`compact_tool`] and [`compact_context_tool`], and plans a call with
//! [`plan_call`]. [`CompactionDisplay`], [`api`] and [`acp`] show the events to people, web pages
//! and editors.
//!
//! ```
//! use threadfold::{Plan, message::CompactionId};
//! use threadfold::compaction::{Compaction, CompactionStep, Driven};
//! use threadfold::compact::{CompactReport, Splice};
//! use threadfold::strategy::{Brief, Proposal};
//!
//! let brief = Brief { compaction: Some(CompactionId(0)), ..Brief::default() };
//! let mut compaction = Compaction::begin(CompactionId(0), "main".parse()?, "my-own", &brief);
//! let plan = Plan::from_splices(2, vec![Splice { at: 0..1, insert: Vec::new() }]);
//! compaction.proposed(Ok(Driven::new(Proposal::new(plan))), None)?;
//! assert!(matches!(compaction.step(), CompactionStep::Archive(entries) if entries.is_empty()));
//! compaction.archived(Ok(0))?;
//! // The caller applies the plan to its thread and its log, both or neither.
//! assert!(matches!(compaction.step(), CompactionStep::Commit(_)));
//! compaction.committed(Ok(CompactReport::default()))?;
//! assert!(matches!(compaction.step(), CompactionStep::Store));
//! compaction.stored()?;
//! assert!(compaction.end().is_some_and(|event| event.is_end()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod acp;
pub mod api;
mod display;
mod error;
mod event;
mod machine;
mod outcome;
#[doc(hidden)]
pub mod telemetry;
mod tool_calls;
mod tool_specs;

pub use display::{CompactionDisplay, ConsoleDisplay};
pub use error::{CompactionError, CompactionErrorKind};
pub use event::CompactionEvent;
pub(crate) use machine::shown;
pub use machine::{Compaction, CompactionStep};
pub(crate) use outcome::redacted;
pub use outcome::{Done, Driven};
pub use tool_calls::{COMPACTED, plan_call};
pub use tool_specs::{COMPACT, COMPACT_CONTEXT, compact_context_tool, compact_tool};

pub(crate) use tool_calls::{ContextCompacted, ONE_CALL, not_compacted, plan_ranges, ranges};
pub(crate) use tool_specs::{compact_context_tool as compact_context, compact_tool as compact};
