//! Strategies: algorithms that make a thread smaller.
//!
//! A strategy is one async function without I/O: [`CompactionStrategy::propose`] gets a [`View`] of
//! the thread and an [`Ask`] for models, and returns a [`Proposal`] or a [`StrategyError`].
//! [`Snapshot::settle`] checks and completes the proposal. Strategies never store, read a clock or
//! await anything but their `Ask`, so one [driver](crate::drive) runs all of them, cancels one by
//! dropping its future and sums its token usage.
//!
//! | name | calls a model | effect |
//! |---|---|---|
//! | `chunked` ([`Chunked`]) | the fast one | folds the thread chunk by chunk into one summary |
//! | `clear-results` ([`ClearResults`]) | no | puts a line in place of old tool results |
//! | `digest` ([`Digest`]) | no | fills the target: task, course of the work, newest rounds, lines that may be needed |
//! | `keep-recent` ([`KeepRecent`]) | no | keeps the end of the thread, drops the rest |
//! | `ladder` ([`Ladder`]) | as its rungs do | tries strategies in order until one is accepted |
//! | `native` ([`Native`]) | the conversation's provider | the provider's own compaction of the old part, and a digest beside it |
//! | `rolling` ([`Rolling`]) | the fast one | folds the thread chunk by chunk into batches, shows the first and the last |
//! | `rollover` ([`Rollover`]) | no | begins a fresh window: the account, and what the model has not read or its last answer |
//! | `summarize` ([`Summarize`]) | the conversation's own | summarises the old part; keeps the end and the user's newest messages |
//! | `trim-tool-results` ([`TrimToolResults`]) | no | keeps the first lines of long tool results |
//!
//! `chunked` and `rolling` read a thread in chunks, with the same engine: a [`CompactionRun`] repeats a
//! call, halves a chunk that is too long, and puts an extract in place of what no model summarised.
//! The model edits one file for `chunked`, and writes an account of each chunk for `rolling`.
//!
//! [`Ask::question`] asks one question with retries, [`summary_of`] reads its answer, and
//! [`Plan::summarise`](crate::Plan::summarise) is the most common plan, so a custom strategy takes
//! about twenty lines; `threadfold_testing::conformance::strategy` tests it. [`StrategyRegistry`]
//! finds strategies by name and builds them from settings ([`StrategyRegistry::build`]).

mod ask;
mod batches;
mod brief;
mod call_facts;
pub(crate) use call_facts::ConversationFacts;
mod chunked;
mod clear_results;
mod clip;
pub(crate) use clip::clip_result;
mod contract;
mod digest;
mod engine;
mod error;
mod fill;
mod floor;
mod full_summary;
mod guard;
mod instructions;
mod keep_recent;
mod ladder;
mod lists;
mod native;
mod noted;
mod proposal;
mod registry;
mod rejection;
mod rolling;
mod rollover;
mod run_error;
mod segments;
mod settings;
mod settle;
mod snapshot;
mod stamps;
mod summarize;
mod tail;
mod trim_tool_results;
mod typed;
mod view;

pub use crate::compact::TrimToolResults;
pub(crate) use ask::panic_message;
pub use ask::{Answers, Ask, ModelCall, summary_of};
pub use brief::Brief;
pub use chunked::{ChunkOutcome, ChunkStep, Chunked, CompactionRun, RunStep};
pub use clear_results::ClearResults;
pub use contract::CompactionStrategy;
pub use digest::Digest;
pub use engine::Fallback;
pub(crate) use engine::{Failed, Terms, When, propose};
pub use error::StrategyError;
pub use guard::without_model;
pub use keep_recent::KeepRecent;
pub use ladder::Ladder;
pub use native::Native;
pub use proposal::{ModelRole, Proposal};
pub use registry::StrategyRegistry;
pub use rejection::Rejection;
pub use rolling::Rolling;
pub use rollover::Rollover;
pub use run_error::RunError;
pub use snapshot::Snapshot;
pub use summarize::Summarize;
pub use view::View;

/// The names in these messages with what is known of each, as the fill weighs them. For the script
/// that fits the weights.
#[doc(hidden)]
#[must_use]
pub fn facts(messages: &[crate::message::Message]) -> Vec<(String, Vec<f64>)> {
    fill::facts(messages)
}
