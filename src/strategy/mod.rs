//! Strategies: algorithms that make a thread smaller.
//!
//! A strategy is a state machine without I/O. [`CompactionStrategy::begin`] starts an [`Attempt`]
//! on a [`Snapshot`] of the thread. [`Attempt::step`] returns either the next model call or a
//! proposed plan, and [`Snapshot::accept`] checks the plan. Strategies never wait, store or read a
//! clock, so one [driver](crate::drive) runs all of them, cancels an attempt by dropping it and
//! sums its token usage.
//!
//! | name | calls a model | effect |
//! |---|---|---|
//! | `keep-recent` ([`KeepRecent`]) | no | keeps the end of the thread, drops the rest |
//! | `chunked` ([`Chunked`]) | the fast one | folds the thread chunk by chunk into one summary |
//! | `clear-results` ([`ClearResults`]) | no | puts a line in place of old tool results |
//! | `digest` ([`Digest`]) | no | fills the target: task, course of the work, newest rounds, lines that may be needed |
//! | `fold-batches` ([`FoldBatches`]) | the fast one | folds the thread chunk by chunk into batches, shows the first and the last |
//! | `ladder` ([`Ladder`]) | as its rungs do | tries strategies in order until one is accepted |
//! | `native` ([`Native`]) | the conversation's provider | the provider's own compaction of the old part, and a digest beside it |
//! | `summarize` ([`Summarize`]) | the conversation's own | summarises the old part; keeps the end and the user's newest messages |
//! | `trim-tool-results` ([`TrimToolResults`]) | no | keeps the first lines of long tool results |
//!
//! [`attempt::propose`] and [`attempt::ask`] build the two common kinds of attempt, and
//! [`Plan::summarise`](crate::Plan::summarise) the most common plan, so a custom strategy takes
//! about thirty lines; `threadfold_testing::conformance::strategy` tests it. [`StrategyRegistry`] finds
//! strategies by name and builds them from settings ([`StrategyRegistry::build`]).

pub mod attempt;
mod brief;
mod call_facts;
pub(crate) use call_facts::Known;
mod chunked;
mod clear_results;
mod clip;
pub(crate) use clip::{border_before, clip_result};
mod contract;
mod digest;
mod fill;
mod floor;
pub(crate) use floor::{begin, begin_anyway};
mod fold_batches;
mod full_summary;
mod instructions;
mod keep_recent;
mod kit;
mod ladder;
mod lists;
mod native;
mod net;
mod panic_guard;
mod registry;
mod rejection;
mod run_error;
mod segments;
mod settle;
mod snapshot;
mod stamps;
mod summarize;
mod tail;
mod task;
mod trim_tool_results;
mod typed;

pub use crate::compact::TrimToolResults;
pub use brief::Brief;
pub use chunked::{ChunkStep, Chunked, CompactionRun, RunStep};
pub use clear_results::ClearResults;
pub use contract::{Attempt, CompactionStrategy, ModelRole, Proposal, Step, StrategyError};
pub use digest::Digest;
pub use fold_batches::FoldBatches;
pub use keep_recent::KeepRecent;
pub use ladder::Ladder;
pub use native::Native;
pub(crate) use net::Net;
pub(crate) use panic_guard::panic_message;
pub use registry::StrategyRegistry;
pub use rejection::Rejection;
pub use run_error::RunError;
pub use snapshot::Snapshot;
pub use summarize::Summarize;

/// The names in these messages with what is known of each, as the fill weighs them. For the script
/// that fits the weights.
#[doc(hidden)]
#[must_use]
pub fn facts(messages: &[crate::message::Message]) -> Vec<(String, Vec<f64>)> {
    fill::facts(messages)
}
