//! Models for tests and examples, which need no network and no key.
//!
//! | you need | use |
//! |---|---|
//! | a model that answers from a script | [`ScriptedModel`] |
//! | a model that misbehaves | [`ScriptedModel::repeating`] with [`Scripted::misbehaving`] |
//! | a model that summarises offline | [`ExtractiveModel`] |
//! | the calls of a strategy, and its proposal | [`asked`] |
//!
//! The crate `threadfold-testing` has suites for adapters, stores and strategies, generated threads,
//! and a clock that does not wait.

mod asked;
mod extractive;
mod scripted;

pub use asked::{answers, asked};
pub use extractive::ExtractiveModel;
pub use scripted::{Scripted, ScriptedModel};
