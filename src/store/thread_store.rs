//! `ThreadStore`: where the logs of threads are kept.

use crate::message::BatchId;
use crate::message::CompactionId;
use std::{fmt, sync::Arc};

use async_trait::async_trait;

use crate::{
    log::{EventLog, LogError, LogId, LoggedEvent, TornTail},
    message::{Text, ThreadId},
};

/// Somewhere to keep logs: memory, files, a database.
///
/// What is stored of a thread is always the beginning of its log. Appending is conditional: it
/// names how many events are there already, and whoever has another number in mind is refused, so
/// that two writers cannot mix their events.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
/// use threadfold::store::{MemoryStore, StoreError, ThreadStore};
///
/// let (store, mut log) = (MemoryStore::default(), EventLog::new("t1".parse()?));
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// block_on(store.append(log.thread_id(), 0, log.events()))?;
/// assert_eq!(block_on(store.load(log.thread_id()))?.log, log);
///
/// let late = block_on(store.append(log.thread_id(), 0, log.events()));
/// assert!(matches!(late, Err(StoreError::Conflict { expected: 0, found: 1 })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait ThreadStore: fmt::Debug + Send + Sync {
    /// Appends events to the stored log of a thread, which must have exactly `expected_len` events.
    /// The events must run on from there: [`check_places`] is the check. No events are fine, if the
    /// length is right; they store nothing.
    ///
    /// All of the events are stored or none, as far as the medium allows: after a crash some may be
    /// there, but never one without those before it. When the future is done they are safe.
    ///
    /// The future may be dropped. Whether the events are stored is not known then, nor after
    /// [`StoreError::Medium`]: [`load`](Self::load) before you append again.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Conflict`] if the stored log has another length. Nothing is stored.
    /// - [`StoreError::Place`] if the events do not run on from it. Nothing is stored.
    /// - [`StoreError::TooLong`] if an event is longer than the store can read. Nothing is stored.
    /// - [`StoreError::OtherThread`], [`StoreError::Unreadable`] and [`StoreError::Medium`].
    async fn append(
        &self,
        thread: &ThreadId,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError>;

    /// As [`append`](Self::append), for a caller who knows which log it is: that of this id, as
    /// [`load`](Self::load) gave it, or one that comes to be now and is given the id. So a log that
    /// was deleted and written anew is not taken for the one before it, whatever it holds.
    ///
    /// The provided one is `append`, for stores that keep no ids: they tell logs by their length
    /// alone. A store over another one forwards this, too.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append), and [`StoreError::OtherLog`] if the log that is stored has
    /// another id. Nothing is stored then. To an empty log whose place was taken it is a
    /// [`StoreError::Conflict`].
    async fn append_to(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let _ = log;
        self.append(thread, expected_len, events).await
    }

    /// Returns the log of a thread; an empty one if nothing is stored of it.
    ///
    /// The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherThread`], [`StoreError::Unreadable`] and [`StoreError::Medium`].
    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError>;

    /// Returns the events of a thread from this place on, for whoever lacks only those. None if
    /// there are not as many.
    ///
    /// The provided one loads the whole log. The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        Ok(self.load(thread).await?.log.since(seq).to_vec())
    }

    /// Returns the threads of which something is stored, in order.
    ///
    /// The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`].
    async fn list(&self) -> Result<Vec<ThreadId>, StoreError>;

    /// Removes the log of a thread, if anything is stored of it. Its archive is another matter:
    /// [`Archive::delete_thread`](super::Archive::delete_thread).
    ///
    /// The future may be dropped; whether the log is gone is not known then.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherThread`] and [`StoreError::Medium`].
    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError>;
}

/// A log as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The log.
    pub log: EventLog,
    /// What tells it from another log of the same thread, where the store keeps that and the writer
    /// gave it.
    pub id: Option<LogId>,
    /// What a writer left behind it that died while it wrote. The next append removes it.
    pub torn: Option<TornTail>,
}

impl Loaded {
    /// Returns a log with nothing torn behind it.
    #[must_use]
    pub fn new(log: EventLog) -> Self {
        Self { log, id: None, torn: None }
    }
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer was there first, or the log is not as long as the caller thinks.
    #[error("the stored log has {found} events, not {expected}")]
    Conflict {
        /// How many events the caller thinks are there.
        expected: u64,
        /// How many are.
        found: u64,
    },
    /// The thread was deleted in the store while its log was known to have events. They are in the
    /// memory of the caller alone; [`Journal::kept_by`](super::Journal::kept_by) writes them anew.
    #[error("the stored log is gone: it was deleted when it had {events} events")]
    Deleted {
        /// How many were stored.
        events: u64,
    },
    /// What is stored is another log of the same thread: the one that the caller knows was deleted,
    /// or never stored, and somebody began the thread anew.
    #[error("the stored log of thread {thread} is not the one that is known, but another")]
    OtherLog {
        /// The thread.
        thread: ThreadId,
        /// The log that the caller knows.
        expected: Option<LogId>,
        /// The log that is stored.
        found: Option<LogId>,
    },
    /// What would be opened is a symbolic link. None is followed: it may lead out of the folder.
    #[error("{place} is a symbolic link, and none is followed")]
    Link {
        /// Where.
        place: Text,
    },
    /// An event of the batch has not the place in the log that it would come to.
    #[error("an event with place {found} comes where {expected} is next")]
    Place {
        /// The place that is next.
        expected: u64,
        /// The place that the event names.
        found: u64,
    },
    /// An event is longer than what is read again.
    #[error("event {seq} has {bytes} bytes, {limit} are the most that can be read again")]
    TooLong {
        /// Its place in the log.
        seq: u64,
        /// How long it is as stored.
        bytes: u64,
        /// The most that it may have.
        limit: u64,
    },
    /// What is stored under this name is the log of another thread. It happens where file names
    /// do not tell upper case from lower.
    #[error("{place} holds the log of thread {found}, not of {expected}")]
    OtherThread {
        /// Where.
        place: Text,
        /// The thread that was asked for.
        expected: ThreadId,
        /// The thread that it says it is.
        found: ThreadId,
    },
    /// What is stored is no log that this build can read.
    #[error("{place}: {source}")]
    Unreadable {
        /// Where.
        place: Text,
        /// What is wrong with it.
        source: LogError,
    },
    /// An archive entry names another compaction than the one that it is written under.
    #[error("batch {batch} is written under compaction {compaction}")]
    OtherCompaction {
        /// The batch of the entry.
        batch: BatchId,
        /// The compaction that it is written under.
        compaction: CompactionId,
    },
    /// Two archive entries that are written together have the same batch id.
    #[error("two batches are named {batch}")]
    Repeated {
        /// The id.
        batch: BatchId,
    },
    /// What the store writes to or reads from failed.
    #[error("{place}: {source}")]
    Medium {
        /// What failed: a file, a table, a host.
        place: Text,
        /// How.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Returns the error of a medium: what failed, and how.
    #[must_use]
    pub fn medium(
        place: impl Into<Text>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Medium { place: place.into(), source: Arc::new(source) }
    }

    /// Whether some of the events may be stored all the same.
    pub(super) fn is_in_doubt(&self) -> bool {
        match self {
            Self::Unreadable { .. } | Self::Medium { .. } => true,
            Self::Conflict { .. }
            | Self::Deleted { .. }
            | Self::OtherLog { .. }
            | Self::Link { .. }
            | Self::Place { .. }
            | Self::TooLong { .. }
            | Self::OtherThread { .. }
            | Self::OtherCompaction { .. }
            | Self::Repeated { .. } => false,
        }
    }
}

/// Checks that events run on from a log of so many, which is the first thing that an append does.
///
/// ```
/// use threadfold::{Message, log::{Event, LoggedEvent}, message::Timestamp, store::check_places};
///
/// let hi = || Event::MessageAppended(Message::user("hi"));
/// let events = [5, 7].map(|seq| LoggedEvent { seq, at: Timestamp(0), event: hi() });
/// let error = check_places(5, &events).unwrap_err();
/// assert_eq!(error.to_string(), "an event with place 7 comes where 6 is next");
/// ```
///
/// # Errors
///
/// [`StoreError::Place`] for the first event that does not.
pub fn check_places(expected_len: u64, events: &[LoggedEvent]) -> Result<(), StoreError> {
    let places = (0_u64..).map(|index| expected_len.saturating_add(index));
    let mut places = places.zip(events.iter().map(|event| event.seq));
    match places.find(|(expected, found)| expected != found) {
        Some((expected, found)) => Err(StoreError::Place { expected, found }),
        None => Ok(()),
    }
}

/// Checks that what is stored of a thread is what the caller knows: this log, of this length.
pub(super) fn check_log(
    thread: &ThreadId,
    (expected, expected_len): (Option<LogId>, u64),
    (found, found_len): (Option<LogId>, u64),
) -> Result<(), StoreError> {
    // Of an empty log nobody knows more than that it is empty.
    if expected_len > 0 && found_len > 0 && expected != found {
        return Err(StoreError::OtherLog { thread: thread.clone(), expected, found });
    }
    check_length(expected_len, found_len)
}

/// Checks the length alone.
pub(super) fn check_length(expected: u64, found: u64) -> Result<(), StoreError> {
    if found == expected { Ok(()) } else { Err(StoreError::Conflict { expected, found }) }
}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        #[async_trait]
        impl<S: ThreadStore + ?Sized> ThreadStore for $pointer {
            async fn append(
                &self,
                thread: &ThreadId,
                expected_len: u64,
                events: &[LoggedEvent],
            ) -> Result<(), StoreError> {
                (**self).append(thread, expected_len, events).await
            }

            async fn append_to(
                &self,
                thread: &ThreadId,
                log: Option<LogId>,
                expected_len: u64,
                events: &[LoggedEvent],
            ) -> Result<(), StoreError> {
                (**self).append_to(thread, log, expected_len, events).await
            }

            async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
                (**self).load(thread).await
            }

            async fn load_from(
                &self,
                thread: &ThreadId,
                seq: u64,
            ) -> Result<Vec<LoggedEvent>, StoreError> {
                (**self).load_from(thread, seq).await
            }

            async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
                (**self).list().await
            }

            async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
                (**self).delete(thread).await
            }
        }
    )+};
}

forward!(&S, Box<S>, Arc<S>);

const _: Option<Box<dyn ThreadStore>> = None;
