//! Conformance suites: what an adapter must keep, to be run in its own tests.
//!
//! | whoever implements | runs |
//! |---|---|
//! | [`Model`](crate::model::Model) | [`model`] |
//! | [`ProviderThread`](crate::model::ProviderThread) | [`provider_thread`] |
//! | [`WireFormat`](crate::wire::WireFormat) | [`wire_format`] |
//!
//! A suite returns the first [`Breach`]: which law, and the smallest input that breaks it. An
//! implementation that panics lets the suite panic.

mod law;
mod model;
mod provider_thread;
mod wire_format;

pub use law::{Breach, Law};
pub use model::model;
pub use provider_thread::provider_thread;
pub use wire_format::wire_format;
