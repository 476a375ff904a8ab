//! Where logs and summaries are kept: the traits, and what comes with the crate.
//!
//! | to keep | there is | which come with it |
//! |---|---|---|
//! | the log of a thread | [`ThreadStore`] | [`MemoryStore`], [`JsonlStore`] |
//! | the batches that a summary leaves out | [`Archive`] | [`MemoryArchive`] |
//!
//! # Logs
//!
//! A store holds at every moment the beginning of a log, and nothing else: whoever appends says how
//! many events there are, and is refused if there are more or fewer. So two writers of one thread
//! cannot mix their events; the second one learns of the [`Conflict`](StoreError::Conflict), loads
//! what is new, and decides. Nothing is ever changed in place.
//!
//! A log that comes to be gets a [`LogId`](crate::log::LogId), by which it is told from the next one
//! of the same thread: a [`Journal`] whose log was deleted learns of it
//! ([`Deleted`](StoreError::Deleted), [`OtherLog`](StoreError::OtherLog)) and keeps its events.
//!
//! What a store of files keeps is for the owner of the files alone, and not encrypted.
//!
//! # Archives
//!
//! An entry is written before the compaction that it belongs to is in the log, and is not seen until
//! then: [`Visible`] holds the compactions that stand. So there is no moment at which a summary is
//! nowhere, and none at which one is seen that stands for nothing. What a batch of batches stands
//! for is not listed any more, but [searched](Archive::search) all the same: detail is never lost.
//!
//! An implementation of one's own is right when it passes its suite: `testing::conformance`.

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
