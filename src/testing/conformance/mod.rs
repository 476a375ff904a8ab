//! Conformance suites for adapters, to run in the adapter's own tests.
//!
//! | if you implement | run |
//! |---|---|
//! | [`Model`](crate::model::Model) | [`model`] |
//! | [`ProviderThread`](crate::model::ProviderThread) | [`provider_thread`] |
//! | [`WireFormat`](crate::wire::WireFormat) | [`wire_format`] |
//! | [`ThreadStore`](crate::store::ThreadStore) | [`store`], and [`failing_store`] with faults |
//! | [`Archive`](crate::store::Archive) | [`archive`] |
//!
//! A suite returns the first [`Breach`]: a [`Law`] and the smallest input that breaks it. If the
//! implementation panics, so does the suite.

mod archive;
mod law;
mod model;
mod outcome;
mod provider_thread;
mod store;
mod wire_format;

pub use archive::archive;
pub use law::{Breach, Law};
pub use model::model;
pub use provider_thread::provider_thread;
pub use store::{failing_store, store};
pub use wire_format::wire_format;
