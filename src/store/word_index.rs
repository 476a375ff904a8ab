//! `WordIndex`: the words of stored messages, so that a search does not read the whole log.
//!
//! The crate splits texts into words, and the database does not. A search with an index and one
//! without use the same function, so they find the same messages. An index of words cannot serve an
//! [`Archive`](super::Archive), where a word of the query also matches within a longer one; there
//! the database only filters, and the crate decides.

use std::{fmt, ops::Range};

use async_trait::async_trait;

use super::store_error::Result;
use crate::{
    log::{LogId, LoggedEvent},
    message::ThreadId,
};

/// Finds the messages of a stored log by their words.
///
/// A store with an index returns it from
/// [`ThreadStore::word_index`](super::ThreadStore::word_index). A recall gets the messages that may
/// match from it, and ranks only these. The recall also fills the index: the first search of a
/// thread indexes the stored messages, a later one the messages appended since. So an append costs
/// nothing extra, and a database of an earlier version needs no migration.
///
/// The index repeats the log. Code that deletes a log must delete its part of the index too.
#[async_trait]
pub trait WordIndex: fmt::Debug + Send + Sync {
    /// Returns how much of the log with this id is indexed: the number of events, and the number of
    /// messages in them. `None` if another log is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`](super::StoreError::Medium).
    async fn indexed(&self, thread: &ThreadId, log: Option<LogId>) -> Result<Option<(u64, u64)>>;

    /// Adds the messages of these events, in one step, and returns `true`. Adds nothing and returns
    /// `false` if another log is stored, or the index does not end at the first event and after
    /// `number` messages.
    ///
    /// Each message is given as the `seq` of its event and its different words. A word consists of
    /// letters, digits and `_` in lower case, and in its middle also of `/`, `\`, `:`, `.`, `-` and
    /// `>`. No word is longer than 260 bytes. The numbers of the messages, among all messages ever
    /// appended, ascend by one from `number`.
    ///
    /// The future may be dropped. Then either all messages are added or none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`](super::StoreError::Medium).
    async fn add(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        events: Range<u64>,
        number: u64,
        messages: &[(u64, Vec<String>)],
    ) -> Result<bool>;

    /// Returns the numbers of the indexed messages with at least one of these words, ascending.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`](super::StoreError::Medium).
    async fn find(&self, thread: &ThreadId, words: &[String]) -> Result<Vec<u64>>;

    /// Returns the events of these indexed messages, each with its number, in the order of
    /// `numbers`, which ascend. Numbers that are not indexed are omitted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`](super::StoreError::Medium) and
    /// [`StoreError::Unreadable`](super::StoreError::Unreadable).
    async fn read(&self, thread: &ThreadId, numbers: &[u64]) -> Result<Vec<(u64, LoggedEvent)>>;
}
