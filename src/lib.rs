//! threadfold keeps long-running LLM agent threads inside their context window.

#![forbid(unsafe_code)]

pub mod message;

pub use message::{CheckpointId, ContentBlock, ContextWindow, Message, Request, Role, Turn, Usage};
