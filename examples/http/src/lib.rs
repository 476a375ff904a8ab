//! The adapter of the example `http`, for its tests and for the examples `agent` and `server`. A
//! host copies `adapter.rs`, and `event_stream.rs` if it uses Bedrock.

mod adapter;
mod arguments;
mod event_stream;

pub use adapter::{Dialect, HttpModel, HttpOptions, Key, TokioClock};
pub use arguments::{ModelArguments, NamedModel};
