//! Chunked summarisation: a thread that no single request can hold, folded into one summary.
//!
//! The thread is [rendered](crate::render), cut into chunks between messages, and each chunk is
//! given to a small agent whose one task is to bring `/summary.md` up to date with edit scripts
//! ([`edl`](crate::edl)). [`CompactionRun`] is the machine behind it, for hosts that want to store
//! and resume it step by step; [`Chunked`] is the strategy over it.
//!
//! What was paid for is kept: `condense` makes a full summary shorter, `cover` extracts what no
//! model folded in, and `state` has the table of when which happens. `fit` sizes a run for a window.

mod condense;
mod cover;
mod fit;
mod halve;
pub(super) mod options;
mod prompt;
mod run;
mod state;
mod step;
mod strategy;
mod tools;

pub use options::RunOptions;
pub use run::CompactionRun;
pub use step::{ChunkOutcome, ChunkStep, RunStep};
pub use strategy::Chunked;
