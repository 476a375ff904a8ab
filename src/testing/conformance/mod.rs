//! Conformance suites for adapters, to run in the adapter's own tests.
//!
//! | if you implement | run |
//! |---|---|
//! | [`Model`](crate::model::Model) | [`model`](model()), and [`adapter`](adapter()) with a stub of the provider |
//! | [`ProviderThread`](crate::model::ProviderThread) | [`provider_thread`] |
//! | [`WireFormat`](crate::wire::WireFormat) | [`wire_format`] |
//! | [`ThreadStore`](crate::store::ThreadStore) | [`store`], and [`failing_store`] with faults |
//! | [`LeaseStore`](crate::store::LeaseStore) | [`leases`], [`runs`], [`workers`](workers()) and [`store`] |
//! | [`Archive`](crate::store::Archive) | [`archive`] |
//! | [`CompactionStrategy`](crate::strategy::CompactionStrategy) | [`strategy`](strategy()) |
//! | [`WordIndex`](crate::store::WordIndex) | [`store`], and `searches` with the feature `recall` |
//!
//! A suite returns the first [`Breach`]: a [`Law`] and the smallest input that breaks it. If the
//! implementation panics, the suite panics too, except the suite for strategies.

mod adapter;
mod archive;
mod cases;
mod law;
mod leases;
mod model;
mod provider_thread;
#[cfg(feature = "recall")]
mod searches;
mod store;
mod strategy;
mod wire_format;
mod workers;

pub use adapter::{Served, Stubbed, adapter};
pub use archive::archive;
pub use law::{Breach, Law};
pub use leases::{leases, runs};
pub use model::model;
pub use provider_thread::provider_thread;
#[cfg(feature = "recall")]
pub use searches::searches;
pub use store::{failing_store, store};
pub use strategy::strategy;
pub use wire_format::wire_format;
pub use workers::workers;
