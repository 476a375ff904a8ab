//! The test kit: the tools of this crate's own tests, for tests of hosts and adapters.
//!
//! | you need | use |
//! |---|---|
//! | a model that answers from a script | [`ScriptedModel`] |
//! | a model that misbehaves | [`ScriptedModel::repeating`] with [`Answer::misbehaving`] |
//! | a deterministic clock that does not wait | [`TestClock`] |
//! | a store whose appends fail on request | [`faulty_store`] |
//! | a model that summarises offline | [`ExtractiveModel`] |
//! | threads as text, in test cases and failure messages | [`notation`] |
//! | generated threads | [`generate`] |
//! | tests for your adapter | [`conformance`] |

pub mod conformance;
mod extractive;
mod faulty_store;
pub mod generate;
pub mod notation;
mod scripted;
mod test_clock;

pub use extractive::ExtractiveModel;
pub use faulty_store::faulty_store;
pub use scripted::{Answer, ScriptedModel};
pub use test_clock::TestClock;
