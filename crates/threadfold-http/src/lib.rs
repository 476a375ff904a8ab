//! Models over HTTP for [`threadfold`]: Anthropic, OpenAI, Gemini, Bedrock, and every server with
//! the dialect of OpenAI, such as llama.cpp, Ollama, LM Studio, vLLM and gateways.
//!
//! ```no_run
//! use std::{env, error::Error, sync::Arc};
//!
//! use threadfold::{ModelAgent, Session, session::SessionEvent};
//! use threadfold_http::HttpModel;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn Error>> {
//!     let model = HttpModel::anthropic("claude-haiku-4-5", &env::var("ANTHROPIC_API_KEY")?)?;
//!     let mut session = Session::builder(ModelAgent::new(Arc::new(model))).build()?;
//!     let mut events = session.send("What is a fold?");
//!     while let Some(event) = events.next().await {
//!         if let SessionEvent::TextDelta { text } = event? {
//!             print!("{text}");
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! - [`HttpModel`] sends requests with retries, and streams the answers. Dropping a stream closes the
//!   connection, and the provider stops.
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
mod key;
mod model;
mod options;

pub use arguments::{ModelArguments, NamedModel};
pub use clock::TokioClock;
pub use dialect::Dialect;
pub use key::Key;
pub use model::HttpModel;
pub use options::HttpOptions;
