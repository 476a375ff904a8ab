//! The test kit: what this crate's own tests are made of, for those of its users too.
//!
//! | to have | there is |
//! |---|---|
//! | a model that says what it is told to | [`ScriptedModel`] |
//! | a model that misbehaves | [`HostileModel`] |
//! | a wait that takes no time | [`WakefulSleeper`] |
//! | a store that fails where it is told to | [`FailingStore`] |
//! | a model that sums up without a network | [`ExtractiveModel`] |
//! | threads as text, in cases and failures | [`notation`] |
//! | cases as files | [`cases`] |
//! | threads by the thousand | [`generate`] |
//! | what an adapter must keep, as tests | [`conformance`] |

pub mod cases;
pub mod conformance;
mod extract;
mod extractive;
mod failing_store;
pub mod generate;
mod hostile;
pub mod notation;
mod pieces;
mod scripted;
mod sleeper;

pub use extractive::ExtractiveModel;
pub use failing_store::FailingStore;
pub use hostile::{HostileModel, Misbehaviour};
pub use scripted::{Answer, ScriptedModel};
pub use sleeper::WakefulSleeper;

#[cfg(test)]
mod prose;
