//! Keeps agents of [goose](https://docs.rs/goose-agent) inside their context window.
//!
//! goose's agent loop is a list of steps over a stored conversation; the last of them asks the model.
//! [`Folding`] wraps that step: before each request it looks at the whole of it, and replaces the
//! conversation by a compacted one if the request would be too long.
//!
//! Nothing is deleted. What a compaction takes out stays in the conversation, where the user sees it and
//! the model does not, as goose's own compaction leaves it. So the next process continues with what is
//! stored, and a host can undo a compaction by turning the visibility back.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use goose_agent::{inference::{InferenceEffect, InferenceRunner}, machine::{MachineSession, Step}};
//! use goose_provider_types::{base::Provider, conversation::Conversation, model::ModelConfig};
//! use threadfold::ContextWindow;
//! use threadfold_goose::Folding;
//!
//! /// The step that asks the model, in a window of 200,000 tokens.
//! fn inference<S, E>(provider: Arc<dyn Provider>, model: ModelConfig) -> Step<'static, S, E>
//! where
//!     S: MachineSession + 'static,
//!     E: InferenceEffect + From<Conversation>,
//! {
//!     let runner = InferenceRunner::new(provider, model);
//!     Step::Inference(Arc::new(Folding::new(runner, ContextWindow::new(200_000))))
//! }
//! ```
//!
//! Without more, a digest that calls no model replaces the old part. With [`Folding::with_model`] a
//! provider of goose writes summaries.

mod folding;
mod from_ours;
mod host;
mod model;

pub use folding::Folding;
pub use model::GooseModel;
