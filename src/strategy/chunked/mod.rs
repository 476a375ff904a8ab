//! Reading a thread in chunks, for a thread that exceeds any single request.
//!
//! [`CompactionRun`] is the state machine, for hosts that store and resume it step by step. The thread
//! is [rendered](crate::render) and cut into chunks between messages. What a model does with a chunk is
//! the job of one of two writers:
//!
//! - for [`Chunked`], the strategy of this module, it brings `/summary.md` up to date with edit scripts
//!   ([`threadfold_edl`]);
//! - for [`Rolling`](super::Rolling) it answers with an account of the chunk.
//!
//! A run never discards the summary of a finished chunk: `condense` shortens a full summary,
//! `cover` makes an extract of the chunks that no model folded in, and `run` documents when each
//! happens. `window` sets the limits of a run so that its requests fit the window.

mod chunks;
mod condense;
mod cover;
mod data;
mod prompt;
mod run;
mod strategy;
mod tools;
mod window;

pub use data::{ChunkOutcome, ChunkStep, Chunked, RunStep};
pub(super) use prompt::{Prompts, Writer};
pub use run::CompactionRun;
