//! Keeps agents of [rig](https://docs.rs/rig) inside their context window.
//!
//! rig sends the whole history with every call of the model, also within a loop of tools. A
//! [`Folding`] is a hook of its agents: before each call it looks at the whole request, and sends a
//! compacted history if the request would be too long. The history of the agent, and what its
//! memory stores, stay as they are.
//!
//! ```
//! use rig_agent::AgentBuilder;
//! use rig_core::test_utils::MockCompletionModel;
//! use threadfold::ContextWindow;
//! use threadfold_rig::Folding;
//!
//! let model = MockCompletionModel::text("hi");
//! let agent = AgentBuilder::new(model).add_hook(Folding::new(ContextWindow::new(200_000))).build();
//! # let _ = agent;
//! ```
//!
//! Without more, the old part is replaced by a digest that calls no model. With
//! [`Folding::with_model`] a model of rig writes summaries.

mod folding;
mod from_ours;
mod host;
mod model;

pub use folding::Folding;
pub use model::RigModel;
