//! The base of a log: the state after its first events, so that memory need not hold these events.
//!
//! For everything that the thread needs from now on, a log that begins at a base returns the same
//! as the whole log. A call that needs earlier events returns
//! [`LogError::NotHeld`](super::LogError::NotHeld).
//!
//! A log that was opened from its base and a log that dropped its events are the same value,
//! because one function makes both. A base is made as soon as the events that are no longer
//! messages of the thread take 32 KB, so a thread that was never compacted is not stored twice.
//! After a compaction this condition suffices, because the compaction has just read the facts that
//! a base needs. At other times a base is made only if the events also take more memory than the
//! thread.
//!
//! The facts are stored separately from the base: they grow with the conversation, and only a
//! compaction reads them. It reads them from the store, and the next write drops them from memory.
//! The rules are treated in the same way, because their parsed form takes 3 KB each, unless the
//! system prompt contains them. An operation that needs earlier events (an older undo, a
//! truncation, recall, a fork) reads the whole log from the store for as long as it needs it. If an
//! event refers to a position before the base, the whole log is read at once.

use serde::{Deserialize, Serialize};

use super::{
    event::{Event, LoggedEvent},
    event_log::EventLog,
    log_id::LogId,
    logged_notes::LoggedNotes,
    state::{Dropped, Entry, EntrySource, State, Totals},
};
use crate::{
    ledger::Ledger,
    message::{Json, ThreadId},
    retention::Facts,
};

/// The version of the stored form. A base of another version is ignored, and the whole log is read.
const FORMAT: u32 = 3;

/// The state after the first events of a log: the live thread, totals, standing rules and facts.
///
/// A [`Journal`](crate::store::Journal) makes it and passes the text of the base and the text of
/// its facts to the store. Opening a thread reads the base and the events after it, so the time to
/// open hardly grows with the log. Rules and facts are redacted if the journal has a redactor;
/// messages are as in the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogBase {
    format: u32,
    thread: ThreadId,
    /// The id of the log that the base was made for.
    pub(crate) log: Option<LogId>,
    dropped: Dropped,
    live: Vec<Entry>,
    totals: Totals,
    /// Stored separately: facts grow with the log, and only a compaction needs them.
    #[serde(skip)]
    facts: Json,
}

impl LogBase {
    /// Returns the base for all events of a log so far. `None` if rules or facts are not JSON.
    pub(crate) fn of(
        log: &EventLog,
        id: Option<LogId>,
        rules: &Ledger,
        facts: &Facts,
    ) -> Option<Self> {
        let State { dropped, totals, .. } = log.state();
        let mut ended = dropped.ended.clone();
        ended.extend(log.state().compactions.keys().copied());
        let dropped = Dropped {
            seq: log.len(),
            messages: dropped.messages + log.state().arrivals.len(),
            originals: log.original_numbers(),
            ended,
            latest: log.standing().next_back().cloned().map(Box::new),
            count: log.last_count(),
            rules: stored(rules)?,
            notes: log.notes().clone(),
        };
        let live = log.state().thread.iter().map(|entry| without_splice(entry, log.state()));
        Some(Self {
            format: FORMAT,
            thread: log.thread_id().clone(),
            log: id,
            dropped,
            live: live.collect(),
            totals: totals.clone(),
            facts: stored(facts)?,
        })
    }

    /// Returns the log that begins at this base and continues with these events, the first of which
    /// has the number [`seq`](Self::seq). `None` if one of them needs an event before the base.
    pub(crate) fn log(&self, events: Vec<LoggedEvent>) -> Option<EventLog> {
        let (dropped, totals) = (self.dropped.clone(), self.totals.clone());
        let notes = LoggedNotes::begin(dropped.notes.clone());
        let mut state =
            State { dropped, totals, notes, thread: self.live.clone(), ..State::default() };
        state.size = state.size_of(&self.live);
        let mut log = EventLog::with_state(self.thread.clone(), state);
        for event in events {
            if matches!(event.event, Event::Truncated { .. }) {
                return None;
            }
            log.append_logged(event).ok()?;
        }
        log.state().skipped.is_empty().then_some(log)
    }

    /// Reads a stored base. `None` if it has another format or is of another thread; the whole log
    /// is then read.
    pub(crate) fn read(text: &str, thread: &ThreadId) -> Option<Self> {
        let base: Self = serde_json::from_str(text).ok()?;
        (base.format == FORMAT && base.thread == *thread).then_some(base)
    }

    /// Returns what a store keeps. `None` if the log has no id, because a base is stored only for a
    /// log with an id.
    pub(crate) fn stored_form(&self) -> Option<StoredBase<'_>> {
        let base = serde_json::to_string(self).ok()?;
        Some(StoredBase { log: self.log?, base, facts: self.facts.as_str() })
    }

    /// The number of events before the base.
    pub(crate) fn seq(&self) -> u64 {
        self.dropped.seq
    }
}

/// What a store keeps of a base.
pub(crate) struct StoredBase<'a> {
    /// The id of the log.
    pub(crate) log: LogId,
    /// The text of the base.
    pub(crate) base: String,
    /// The text of its facts.
    pub(crate) facts: &'a str,
}

/// Returns an entry whose source does not refer to a splice, because a base has no splices.
fn without_splice(entry: &Entry, state: &State) -> Entry {
    let source = match entry.source {
        EntrySource::Compaction { standing, .. } => {
            let standing = state.standing.get(standing);
            standing.map_or(entry.source, |standing| EntrySource::Dropped(standing.id))
        }
        EntrySource::Arrival(_) | EntrySource::Dropped(_) => entry.source,
    };
    Entry { source, ..entry.clone() }
}

/// Returns the JSON of rules or facts; `None` if it cannot be written. The log then gets no base,
/// because a base without its rules would lose them.
fn stored(value: &impl Serialize) -> Option<Json> {
    serde_json::to_string(value).ok().map(Json::from_compact)
}
