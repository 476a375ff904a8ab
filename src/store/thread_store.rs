//! `ThreadStore`: storage for the logs of threads.

use std::fmt;

use async_trait::async_trait;

use super::store_error::{Result, StoreError};
use crate::{
    log::{EventLog, Loaded, LogId, LoggedEvent, read_event},
    message::ThreadId,
    model::for_pointers,
};

/// Stores logs: in memory, files or a database.
///
/// The stored events of a thread are always the beginning of its log. An append names the number of
/// stored events, and is refused if that number is wrong, so two writers cannot mix their events.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
/// use threadfold::store::{MemoryStore, StoreError, ThreadStore};
///
/// let (store, mut log) = (MemoryStore::default(), EventLog::new("t1".parse()?));
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// block_on(store.append(log.thread_id(), None, 0, log.events()))?;
/// assert_eq!(block_on(store.load(log.thread_id()))?.log, log);
///
/// let late = block_on(store.append(log.thread_id(), None, 0, log.events()));
/// assert!(matches!(late, Err(StoreError::Conflict { expected: 0, found: 1 })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait ThreadStore: fmt::Debug + Send + Sync {
    /// Appends events to the stored log of a thread, which must have exactly `expected_len` events
    /// and the id `log`, as [`load`](Self::load) returned it. The `seq`s of the events must
    /// continue from there ([`check_order`]). Without events, only length and id are checked.
    ///
    /// A new log gets the id, which distinguishes a log that was deleted and written again from the
    /// earlier one. A store need not keep ids: it then ignores `log`, and loads logs without an id.
    ///
    /// Either all events are stored or none, as far as the medium allows. After a crash some may be
    /// stored, but never one without those before it. When the future is ready, all are stored
    /// durably.
    ///
    /// The future may be dropped. It is then unknown whether the events are stored, as after
    /// [`StoreError::Medium`]: call [`load`](Self::load) before you append again.
    ///
    /// # Errors
    ///
    /// After each of these, except [`StoreError::Medium`], no event is stored.
    ///
    /// - [`StoreError::Conflict`] if the stored log has another length.
    /// - [`StoreError::OtherLog`] if it has another id, unless `expected_len` is 0: then the error
    ///   is [`StoreError::Conflict`].
    /// - [`StoreError::OutOfOrder`] if the `seq`s do not continue from it.
    /// - [`StoreError::TooLong`] if an event is longer than the store can read.
    /// - [`StoreError::Held`] if a worker has the lease of the thread.
    /// - [`StoreError::OtherThread`], [`StoreError::Unreadable`] and [`StoreError::Medium`].
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<()>;

    /// Returns the log of a thread; an empty one if no event is stored.
    ///
    /// The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherThread`], [`StoreError::Unreadable`] and [`StoreError::Medium`].
    async fn load(&self, thread: &ThreadId) -> Result<Loaded>;

    /// Returns the events of a thread from this `seq` on; none if the log is shorter.
    ///
    /// The default loads the whole log. The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>> {
        match self.inner() {
            Some(inner) => inner.load_from(thread, seq).await,
            None => Ok(self.load(thread).await?.log.since(seq).to_vec()),
        }
    }

    /// Stores the base of the log with this id: the state after its first `seq` events, with which
    /// a thread opens fast however long its log is. It replaces an earlier base. Only the journal
    /// interprets the texts of base and facts. The store keeps the two apart, so that
    /// [`load_base`](Self::load_base) need not read the facts. It ignores a base of a log with
    /// another id, of more events than are stored, or that is not later than the stored base.
    ///
    /// The default keeps none. The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`]. The log is unchanged in every case.
    async fn save_base(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
        base: &str,
        facts: &str,
    ) -> Result<()> {
        let Some(inner) = self.inner() else { return Ok(()) };
        inner.save_base(thread, log, seq, base, facts).await
    }

    /// Returns the text of the stored log's base; `None` if there is none. The base of a deleted
    /// log is deleted with it.
    ///
    /// The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>> {
        let Some(inner) = self.inner() else { return Ok(None) };
        inner.load_base(thread).await
    }

    /// Returns the text of the facts that was stored with the base of `seq` events of the log with
    /// this id; `None` if there is no base, or now a different one.
    ///
    /// The default keeps none; a compaction then reads the whole log. The future may be dropped at
    /// any point.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn load_facts(&self, thread: &ThreadId, log: LogId, seq: u64) -> Result<Option<String>> {
        let Some(inner) = self.inner() else { return Ok(None) };
        inner.load_facts(thread, log, seq).await
    }

    /// Returns the store that this one wraps, if any. The provided methods then call the methods of
    /// that store.
    ///
    /// ```
    /// # use threadfold::{log::{Loaded, LogId, LoggedEvent}, message::ThreadId};
    /// use threadfold::{async_trait, store::{MemoryStore, StoreError, ThreadStore}};
    ///
    /// /// Refuses to delete a thread.
    /// #[derive(Debug, Default)]
    /// struct Kept(MemoryStore);
    ///
    /// #[async_trait]
    /// impl ThreadStore for Kept {
    ///     fn inner(&self) -> Option<&dyn ThreadStore> {
    ///         Some(&self.0)
    ///     }
    ///
    ///     async fn delete(&self, _: &ThreadId) -> Result<(), StoreError> {
    ///         Err(StoreError::medium("a kept thread", std::fmt::Error))
    ///     }
    ///     // `append`, `load` and `list` call those of `self.0`.
    /// #     async fn append(
    /// #         &self,
    /// #         thread: &ThreadId,
    /// #         log: Option<LogId>,
    /// #         len: u64,
    /// #         events: &[LoggedEvent],
    /// #     ) -> Result<(), StoreError> {
    /// #         self.0.append(thread, log, len, events).await
    /// #     }
    /// #     async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
    /// #         self.0.load(thread).await
    /// #     }
    /// #     async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
    /// #         self.0.list().await
    /// #     }
    /// }
    /// ```
    fn inner(&self) -> Option<&dyn ThreadStore> {
        None
    }

    /// Returns the ids of the threads with stored events, sorted.
    ///
    /// The future may be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`].
    async fn list(&self) -> Result<Vec<ThreadId>>;

    /// Removes the log of a thread, and its lease if the store keeps leases.
    ///
    /// The future may be dropped. Whether the log was removed is then unknown.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherThread`] and [`StoreError::Medium`].
    async fn delete(&self, thread: &ThreadId) -> Result<()>;
}

/// Checks that the `seq`s of events continue a log of `expected_len` events. Every append does this
/// first.
///
/// ```
/// use threadfold::{Message, log::{Event, LoggedEvent}, message::Timestamp, store::check_order};
///
/// let hi = || Event::MessageAppended(Message::user("hi"));
/// let events = [5, 7].map(|seq| LoggedEvent { seq, at: Timestamp(0), event: hi() });
/// let error = check_order(5, &events).unwrap_err();
/// assert_eq!(error.to_string(), "expected event 6, found event 7");
/// ```
///
/// # Errors
///
/// [`StoreError::OutOfOrder`] for the first event that does not.
pub fn check_order(expected_len: u64, events: &[LoggedEvent]) -> Result<()> {
    let mut expected = expected_len;
    for event in events {
        let found = event.seq;
        if found != expected {
            return Err(StoreError::OutOfOrder { expected, found });
        }
        expected = expected.saturating_add(1);
    }
    Ok(())
}

/// Returns the lines in which a text store keeps events: the JSON of each, in order. It checks
/// their `seq`s ([`check_order`]) and their lengths first.
///
/// ```
/// use threadfold::{Message, log::{Event, LoggedEvent}, message::Timestamp, store::event_lines};
///
/// let event = Event::MessageAppended(Message::user("hi"));
/// let lines = event_lines(5, &[LoggedEvent { seq: 5, at: Timestamp(7), event }])?;
/// assert!(lines[0].starts_with(r#"{"seq":5,"at":7,"#));
/// # Ok::<(), threadfold::store::StoreError>(())
/// ```
///
/// # Errors
///
/// [`StoreError::OutOfOrder`], [`StoreError::TooLong`], and [`StoreError::Medium`] if an event of the
/// host cannot be serialized.
pub fn event_lines(expected_len: u64, events: &[LoggedEvent]) -> Result<Vec<String>> {
    check_order(expected_len, events)?;
    let mut lines = Vec::with_capacity(events.len());
    for event in events {
        let line = serde_json::to_string(event);
        let line = line.map_err(|error| StoreError::medium("an event", error))?;
        check_size(event.seq, line.len() as u64)?;
        lines.push(line);
    }
    Ok(lines)
}

/// Checks the bytes of an event's line.
pub(super) fn check_size(seq: u64, bytes: u64) -> Result<()> {
    let limit = EventLog::MAX_LINE_BYTES;
    if bytes <= limit { Ok(()) } else { Err(StoreError::TooLong { seq, bytes, limit }) }
}

/// Returns the event of a stored line. `place` is the table or file, for errors.
///
/// ```
/// use threadfold::{log::LogError, store::{StoreError, stored_event}};
///
/// let error = stored_event("events", 3, "hi").unwrap_err();
/// assert!(matches!(error, StoreError::Unreadable { source: LogError::Broken { line: 5, .. }, .. }));
/// ```
///
/// # Errors
///
/// [`StoreError::Unreadable`] if the line is not an event.
pub fn stored_event(place: &str, seq: u64, line: &str) -> Result<LoggedEvent> {
    // Number the line as in a file of this log, whose first line is a header.
    read_event(line, seq.saturating_add(2)).map_err(|source| StoreError::unreadable(place, source))
}

/// The log that an append expects.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its id.
    pub id: Option<LogId>,
    /// The number of its events.
    pub len: u64,
}

impl Expected {
    /// Checks the id and the length of the stored log.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherLog`] or [`StoreError::Conflict`].
    pub fn check(self, thread: &ThreadId, found: Option<LogId>, found_len: u64) -> Result<()> {
        let Self { id: expected, len } = self;
        // An empty log has no id.
        if len > 0 && found_len > 0 && expected != found {
            return Err(StoreError::OtherLog { thread: thread.clone(), expected, found });
        }
        let conflict = StoreError::Conflict { expected: len, found: found_len };
        if found_len == len { Ok(()) } else { Err(conflict) }
    }
}

for_pointers! { ThreadStore {
    async fn append(
        &self, thread: &ThreadId, log: Option<LogId>, expected_len: u64, events: &[LoggedEvent]
    ) -> Result<()>;
    async fn load(&self, thread: &ThreadId) -> Result<Loaded>;
    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>>;
    async fn save_base(&self, thread: &ThreadId, log: LogId, seq: u64, base: &str, facts: &str)
        -> Result<()>;
    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>>;
    async fn load_facts(&self, thread: &ThreadId, log: LogId, seq: u64)
        -> Result<Option<String>>;
    async fn list(&self) -> Result<Vec<ThreadId>>;
    async fn delete(&self, thread: &ThreadId) -> Result<()>;
    fn inner(&self) -> Option<&dyn ThreadStore>;
} }

/// Whether `events` begin with `prefix`. Events are compared by their stored forms, because a
/// loaded event may differ in memory from the appended one.
pub(super) fn begins_with(events: &[LoggedEvent], prefix: &[LoggedEvent]) -> bool {
    let mut pairs = events.iter().zip(prefix).filter(|(one, other)| one != other);
    prefix.len() <= events.len()
        && pairs.all(|(one, other)| {
            match (serde_json::to_string(one), serde_json::to_string(other)) {
                (Ok(one), Ok(other)) => one == other,
                (Err(_), _) | (_, Err(_)) => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_beyond_the_limit_is_refused() {
        let most = EventLog::MAX_LINE_BYTES;
        assert!(check_size(3, most).is_ok());
        let Err(StoreError::TooLong { seq, bytes, limit }) = check_size(3, most + 1) else {
            panic!("it is too long")
        };
        assert_eq!((seq, bytes, limit), (3, most + 1, most));
    }
}
