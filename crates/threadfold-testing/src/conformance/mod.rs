//! Conformance suites for adapters, to run in the adapter's own tests.
//!
//! | if you implement | run |
//! |---|---|
//! | [`Model`](threadfold::model::Model) | [`model`](model()), and [`adapter`](adapter()) with a stub of the provider |
//! | [`ProviderThread`](threadfold::model::ProviderThread) | [`provider_thread`] |
//! | [`ThreadStore`](threadfold::store::ThreadStore) | [`store`], and [`failing_store`] with faults |
//! | [`LeaseStore`](threadfold::store::LeaseStore) | [`leases`], [`workers`](workers()) and [`store`] |
//! | [`CompactionStrategy`](threadfold::strategy::CompactionStrategy) | [`strategy`](strategy()) |
//!
//! A suite returns the first [`Breach`]: a [`Law`] and the smallest input that breaks it. If the
//! implementation panics, the suite panics too, except the suite for strategies.

mod adapter;
mod cases;
mod law;
mod leases;
mod model;
mod provider_thread;
mod store;
mod strategy;
mod workers;

pub use adapter::{Served, Stubbed, adapter};
pub use law::{Breach, Law};
pub use leases::leases;
pub use model::model;
pub use provider_thread::provider_thread;
pub use store::{failing_store, store};
pub use strategy::strategy;
pub use workers::workers;
