//! threadfold keeps long-running LLM agent threads inside their context window.

#![forbid(unsafe_code)]

pub mod compact;
pub mod message;
pub mod wire;

pub use compact::legality;
pub use message::{CheckpointId, ContentBlock, ContextWindow, Message, Request, Role, Turn, Usage};
