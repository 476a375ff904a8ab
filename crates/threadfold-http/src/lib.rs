#![doc = include_str!("../README.md")]
//!
//! - [`HttpModel`] sends requests with retries, and streams the answers. Dropping a stream closes the
//!   connection, and the provider stops.
//! - [`HeldThread`] is an agent whose provider holds the thread, so that requests send only what is new.
//! - [`HttpOptions`] sets limits and waits; [`Dialect`] says what a server speaks.
//! - [`ModelArguments`] reads the arguments of a command line that name a model.
//! - [`TokioClock`] is the timer of a session on this runtime.
//!
//! Bodies, errors and streams are read by [`threadfold::wire`] and
//! [`threadfold::model::deltas_within`]; this crate only builds requests, sends the key and waits
//! between attempts. It needs a Tokio runtime with timers and sockets. It follows no redirect, and it
//! does not print the key.

mod arguments;
mod clock;
mod dialect;
mod event_stream;
mod held;
mod held_body;
mod key;
mod model;
mod options;

pub use arguments::{ModelArguments, NamedModel};
pub use clock::TokioClock;
pub use dialect::Dialect;
pub use held::HeldThread;
pub use key::Key;
pub use model::HttpModel;
pub use options::HttpOptions;
