//! threadfold keeps long-running LLM agent threads inside their context window.

pub mod edl;
