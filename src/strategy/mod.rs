//! Strategies: ways of making a thread smaller.
//!
//! A strategy is a machine. [`CompactionStrategy::begin`] gives an [`Attempt`] on a [`Snapshot`]
//! of the thread; its [`step`](Attempt::step) asks for a model call or proposes a plan;
//! [`Snapshot::accept`] judges the proposal. Nothing here waits, stores or knows a clock, so one
//! [driver](crate::drive) runs every strategy, cancels it by dropping it, and sums what it spent.
//!
//! | name | asks a model | what |
//! |---|---|---|
//! | `keep-recent` ([`KeepRecent`]) | no | keeps the end, drops the rest |
//! | `chunked` ([`Chunked`]) | a fast one | folds the thread chunk by chunk into one summary |
//! | `digest` ([`Digest`]) | no | replaces the old part with quotes and lists from it, and fits any target that can be met |
//! | `fold-batches` ([`FoldBatches`]) | a fast one | folds the thread chunk by chunk into batches, shows the first and the last |
//! | `ladder` ([`Ladder`]) | as its rungs do | tries strategies in order until one is accepted |
//! | `summarize` ([`Summarize`]) | the conversation's own | sums the old part up, keeps the end and what the user typed last |
//! | `trim-tool-results` ([`TrimToolResults`]) | no | keeps the first lines of what tools gave |
//!
//! [`attempt::propose`] and [`attempt::ask`] make the two common kinds of attempt in one line, so
//! that a strategy of one's own is ten lines; [`StrategyRegistry`] finds strategies by name and
//! builds them of settings ([`StrategyConfig`]). A [`Breaker`] tells a host when to stop trying for a while.

pub mod attempt;
mod breaker;
mod brief;
mod chunked;
mod clip;
mod config;
mod contained;
mod contract;
mod digest;
mod fold_batches;
mod keep_recent;
mod ladder;
mod net;
mod redacted;
mod registry;
mod rules;
mod settle;
mod snapshot;
mod stamps;
mod summarize;
mod tagged;
mod tail;
mod trim_tool_results;
mod whole;

pub use breaker::{Breaker, BreakerOpen, BreakerOptions};
pub use brief::Brief;
pub use chunked::{
    ChunkOutcome, ChunkStep, Chunked, CompactionRun, NotAsked, RunError, RunOptions, RunStep,
    StoredRunError,
};
pub use config::StrategyConfig;
pub use contract::{
    ArchiveEntry, Attempt, CompactionStrategy, ModelRole, Progress, Proposal, Rung, Step,
    StrategyError,
};
pub use digest::Digest;
pub use fold_batches::{FoldBatches, FoldError, Scoring};
pub use keep_recent::KeepRecent;
pub use ladder::Ladder;
pub(crate) use net::Net;
pub use registry::{RegistryError, StrategyRegistry};
pub use settle::Settled;
pub use snapshot::{Rejection, Snapshot};
pub use summarize::{RangeForm, Summarize};
pub use trim_tool_results::TrimToolResults;
