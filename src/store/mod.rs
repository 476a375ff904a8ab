//! Storing logs: the traits, and the implementations in this crate.
//!
//! | to store | trait | implementations |
//! |---|---|---|
//! | the log of a thread | [`ThreadStore`] | [`MemoryStore`], [`JsonlStore`] |
//! | who may write a thread | [`LeaseStore`] | [`MemoryStore`] |
//!
//! The packages `threadfold-sqlite` and `threadfold-postgres` implement both on a database.
//!
//! # Logs
//!
//! A store always holds the beginning of a log. An append names the number of stored events, and is
//! refused if there are more or fewer, so two writers of one thread cannot mix their events. The
//! second writer gets a [`Conflict`](StoreError::Conflict), and can load the new events before it
//! decides what to do. No event is ever changed in place.
//!
//! A new log gets a [`LogId`](crate::log::LogId), which distinguishes it from a later log of the
//! same thread. A [`Journal`] whose log was deleted therefore gets an error
//! ([`Deleted`](StoreError::Deleted), [`OtherLog`](StoreError::OtherLog)) and keeps the events that
//! it holds.
//!
//! A [`Journal`] holds the latest events in memory. For the events before them the store may keep a
//! [base](ThreadStore::save_base), from which the thread opens again.
//!
//! The files of a store are accessible to their owner only, and not encrypted.
//!
//! # Leases
//!
//! The expected length stops a second writer only at its first append, after it has paid for a
//! model call. A [`Lease`] stops it earlier: only one worker at a time has the lease of a thread,
//! until a time. Every append carries the lease's number, its fence, so a worker whose lease was
//! taken over cannot write.
//!
//! Test your own implementation with `threadfold_testing::conformance`.

mod file;
mod held;
mod journal;
mod jsonl;
mod lease;
mod lease_store;
mod memory;
mod rules_cache;
mod store_error;
mod thread_store;

pub use crate::log::Loaded;
#[doc(hidden)]
pub use file::{create_file, create_folder, replace_file};
pub use journal::Journal;
pub use jsonl::JsonlStore;
pub use lease::{Lease, lease_end};
pub use lease_store::{LeaseStore, leased};
pub use memory::MemoryStore;
pub use store_error::StoreError;
#[doc(hidden)]
pub use thread_store::Expected;
pub use thread_store::{ThreadStore, check_order, event_lines, stored_event};
