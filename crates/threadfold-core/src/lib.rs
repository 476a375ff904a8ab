//! The values of threadfold and what is computed from them alone.
//!
//! | module | what |
//! |---|---|
//! | [`message`] | threads: messages, blocks, requests, answers |
//! | [`tokens`] | how many tokens they have |
//! | [`compact`](mod@compact) | replacing ranges, plans of edits, legality |
//! | [`render`](mod@render) | a thread as text, in chunks that a model can read |
//! | [`retention`] | what an audit found that a compaction lost |
//!
//! Depend on `threadfold`, which has these modules under the same names. This crate is for those
//! who need the values and no session: a provider adapter, a viewer of logs.

#![forbid(unsafe_code)]

pub mod compact;
pub mod message;
pub mod render;
pub mod retention;
pub mod tokens;

pub use compact::{CompactReport, Compacted, Plan, Replacement, compact, legality};
pub use message::{
    Answer, CheckpointId, ContentBlock, ContextWindow, Message, Request, Role, Usage,
};
pub use tokens::TokenCounter;

/// The code of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
