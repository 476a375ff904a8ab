//! Storing logs and archived summaries: the traits, and the implementations in this crate.
//!
//! | to store | trait | implementations |
//! |---|---|---|
//! | the log of a thread | [`ThreadStore`] | [`MemoryStore`], [`JsonlStore`] |
//! | the batches that a summary leaves out | [`Archive`] | [`MemoryArchive`] |
//!
//! # Logs
//!
//! A store always holds the beginning of a log. An append names the number of stored events, and is
//! refused if there are more or fewer, so two writers of one thread cannot mix their events. The
//! second writer gets a [`Conflict`](StoreError::Conflict), and may load the new events and decide.
//! No event is ever changed in place.
//!
//! A new log gets a [`LogId`](crate::log::LogId), which distinguishes it from a later log of the
//! same thread. A [`Journal`] whose log was deleted therefore gets an error
//! ([`Deleted`](StoreError::Deleted), [`OtherLog`](StoreError::OtherLog)) and keeps its events.
//!
//! The files of a store are accessible to their owner only, and not encrypted.
//!
//! # Archives
//!
//! An entry is written before its compaction is in the log, and is invisible until then:
//! [`Visible`] holds the standing compactions. So no summary is ever missing, and none is visible
//! whose compaction did not happen. A batch that a later batch replaces is no longer listed, but
//! still [searched](Archive::search), so no detail is lost.
//!
//! Test your own implementation with `testing::conformance`.

mod archive;
mod file;
mod journal;
mod jsonl;
mod memory;
mod memory_archive;
mod plain_file;
mod thread_store;
mod visible;

pub use archive::{Archive, check_entries};
pub use journal::Journal;
pub use jsonl::{Fsync, JsonlOptions, JsonlStore};
pub use memory::MemoryStore;
pub use memory_archive::MemoryArchive;
pub use thread_store::{Loaded, StoreError, ThreadStore, check_places};
pub use visible::{Hit, Visible};
