//! threadfold keeps long-running LLM agent threads inside their context window.

#![forbid(unsafe_code)]

pub mod compact;
pub mod drive;
pub mod log;
pub mod message;
pub mod model;
pub mod strategy;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tokens;
pub mod wire;

pub use async_trait::async_trait;
pub use compact::{CompactReport, Compacted, Plan, Replacement, compact, legality};
pub use log::Thread;
pub use message::{CheckpointId, ContentBlock, ContextWindow, Message, Request, Role, Turn, Usage};
pub use model::{Agent, Model, ModelAgent, ProviderThread};
pub use strategy::{CompactionStrategy, StrategyRegistry};
pub use tokens::TokenCounter;
pub use wire::WireFormat;
