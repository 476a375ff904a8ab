//! threadfold keeps long-running LLM agent threads inside their context window.

#![forbid(unsafe_code)]

pub mod compact;
pub mod message;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tokens;
pub mod wire;

pub use compact::{CompactReport, Compacted, Plan, Replacement, compact, legality};
pub use message::{CheckpointId, ContentBlock, ContextWindow, Message, Request, Role, Turn, Usage};
