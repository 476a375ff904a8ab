//! Chunked summarisation: folds a thread that exceeds any single request into one summary.
//!
//! The thread is [rendered](crate::render) and cut into chunks between messages. For each chunk a
//! model is asked to bring `/summary.md` up to date with edit scripts ([`threadfold_edl`]).
//! [`CompactionRun`] is the state machine, for hosts that store and resume it step by step;
//! [`Chunked`] is the strategy that uses it.
//!
//! A run never discards the summary of a finished chunk: `condense` shortens a full summary,
//! `cover` adds an extract of the chunks that no model folded in, and `run` documents when each
//! happens. `strategy` sets the limits of a run so that its requests fit the window.

mod condense;
mod cover;
mod data;
mod prompt;
mod run;
mod strategy;
mod tools;

pub use data::{ChunkOutcome, ChunkStep, Chunked, RunStep};
pub use run::CompactionRun;
