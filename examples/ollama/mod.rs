//! A host over a server with the native API of Ollama, for which the crate has no codec.
//!
//! `adapter` is what the chapter shows, `server` a server in the same process, `host` the
//! conversation.

pub(crate) mod adapter;
pub(crate) mod host;
pub(crate) mod server;
