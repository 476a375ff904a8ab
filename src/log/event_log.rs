//! The log: every event of a thread, in order. Events are never removed from it; in memory it may
//! begin at a base.

use super::{
    error::{LogError, Result},
    event::{CompactionRecord, Event, LoggedEvent},
    size::weight,
    state::State,
    usage::{self, LastCount, TotalUsage},
};
use crate::{
    ledger::Ledger,
    message::{CompactionId, Text, ThreadId, Timestamp},
    notes::Notes,
};

/// Every event of a thread, in order. The log only grows, so messages that a compaction removed
/// from the thread are still here, and the compaction can be [undone](Self::undo).
///
/// The log tracks the live thread with every event. Appending takes constant time, whatever the
/// length of the log; a compaction and [`replay`](Self::replay) take time linear in the live
/// thread. The times of events may go backwards, as clocks do.
///
/// ```
/// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
///
/// let mut log = EventLog::new("main".parse()?);
/// log.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
/// log.append(Timestamp(2), Event::MessageAppended(Message::assistant("hello")))?;
/// assert_eq!(log.replay(), [Message::user("hi"), Message::assistant("hello")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventLog {
    thread: ThreadId,
    /// The events from the base on.
    events: Vec<LoggedEvent>,
    state: State,
    /// The size of the events in memory, in bytes.
    bytes: u64,
}

impl EventLog {
    /// Returns a copy of this log for another thread, which continues from here, or from an earlier
    /// message after a truncation. Compactions can be undone in it.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// let fork = log.forked("other".parse()?);
    /// assert_eq!(fork.replay(), [Message::user("hi")]);
    /// assert_eq!(fork.thread_id().as_str(), "other");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn forked(&self, thread: ThreadId) -> Self {
        Self { thread, ..self.clone() }
    }

    /// Returns the empty log of a thread.
    #[must_use]
    pub fn new(thread: ThreadId) -> Self {
        Self::with_state(thread, State::default())
    }

    pub(super) fn with_state(thread: ThreadId, state: State) -> Self {
        Self { thread, events: Vec::new(), state, bytes: 0 }
    }

    /// Returns the id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread
    }

    /// Returns the number of events, which is the `seq` of the next one.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.base().saturating_add(self.events.len() as u64)
    }

    /// Whether the log has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the `seq` of the first event that is held in memory: 0 if the log is whole.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.state.dropped.seq
    }

    /// The events in memory, in order.
    #[must_use]
    pub fn events(&self) -> &[LoggedEvent] {
        &self.events
    }

    /// Returns the events from this `seq` on: none if the log is shorter, and all events in memory
    /// if `seq` is before the [`base`](Self::base).
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let stored = log.len();
    /// log.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(log.since(stored).len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn since(&self, seq: u64) -> &[LoggedEvent] {
        let from = usize::try_from(seq.saturating_sub(self.base())).ok();
        from.and_then(|from| self.events.get(from..)).unwrap_or_default()
    }

    /// Appends an event and returns it with its `seq`. Its time may be earlier than the previous
    /// event's.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let logged = log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(logged.seq, 0);
    /// let cut = Event::Truncated { from: 5, len: 2 };
    /// assert!(log.append(Timestamp(8), cut).is_err(), "the thread has one message");
    /// assert_eq!(log.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError`] for an event that would not replay: a truncation or compaction that does not
    /// fit the live thread, a compaction whose id is in the log already, the undo of a compaction
    /// other than the latest standing one, or an event that this build could not read. A truncation
    /// needs a whole log.
    pub fn append(&mut self, at: Timestamp, event: Event) -> Result<&LoggedEvent> {
        self.check(&event)?;
        self.append_logged(LoggedEvent { seq: self.len(), at, event })
    }

    /// Checks whether an event can be appended, without appending it, for a caller that must do
    /// something else first.
    ///
    /// ```
    /// use threadfold::{EventLog, log::Event};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// assert!(log.check(&Event::Truncated { from: 5, len: 2 }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn check(&self, event: &Event) -> Result<()> {
        self.state.check(event)
    }

    /// Appends an event that another writer of the same log has stored. Like reading a log, this
    /// does not check whether the event fits the thread.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let mut theirs = log.clone();
    /// theirs.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// for event in theirs.since(log.len()) {
    ///     log.append_logged(event.clone())?;
    /// }
    /// assert_eq!(log, theirs);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError::Seq`] if the event is not the next one.
    pub fn append_logged(&mut self, event: LoggedEvent) -> Result<&LoggedEvent> {
        let (expected, found) = (self.len(), event.seq);
        if found != expected {
            return Err(LogError::Seq { expected, found });
        }
        self.push(event).ok_or(LogError::Seq { expected, found })
    }

    /// Returns the id of the next compaction. Failed compactions count too, so ids are never
    /// reused.
    ///
    /// ```
    /// use threadfold::{log::{CompactionFailure, Event, EventLog}, message::*};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let id = log.next_compaction();
    /// let failure = CompactionFailure::new(id, CompactionReason::Threshold, "summarize", "no model");
    /// log.append(Timestamp(1), Event::CompactionFailed(Box::new(failure)))?;
    /// assert_eq!((id, log.next_compaction()), (CompactionId(0), CompactionId(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn next_compaction(&self) -> CompactionId {
        self.state.next_compaction()
    }

    /// Returns the standing compactions, which were applied and not undone, in order. If the log
    /// has a [`base`](Self::base), only the latest of those before it is included.
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::{EventLog, Plan, message::*};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// for number in 0..2 {
    ///     let (id, plan) = (CompactionId(number), Plan::from_splices(0, vec![]));
    ///     let record = CompactionRecord::new(id, CompactionReason::Threshold, "by-hand", plan);
    ///     log.append(Timestamp(number), Event::Compacted(Box::new(record)))?;
    /// }
    /// let _ = log.undo(Timestamp(2), CompactionId(1))?;
    /// assert_eq!(log.standing().map(|record| record.id).collect::<Vec<_>>(), [CompactionId(0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn standing(&self) -> impl DoubleEndedIterator<Item = &CompactionRecord> {
        self.state.dropped.latest.as_deref().into_iter().chain(self.standing_since_base())
    }

    /// Returns the strategy of the last compaction, if the thread has not changed since.
    pub(crate) fn compacted_by(&self) -> Option<&Text> {
        let latest = self.standing().next_back()?;
        let is_cut = self.state.standing.last().is_some_and(|standing| standing.cut.is_some());
        let is_same = latest.plan.messages_after() == self.state.thread.len() && !is_cut;
        is_same.then_some(&latest.strategy)
    }

    fn standing_since_base(&self) -> impl DoubleEndedIterator<Item = &CompactionRecord> {
        self.state.standing.iter().filter_map(|standing| self.record(standing.seq))
    }

    /// Whether the compaction is standing and the log holds what its undo needs.
    pub(crate) fn holds(&self, id: CompactionId) -> bool {
        self.state.standing.iter().any(|standing| standing.id == id)
    }

    /// Returns a compaction by its id, even if it was undone. `None` if it is unknown or failed. Of
    /// the compactions before the [`base`](Self::base), only the latest standing one is known.
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::{EventLog, Message, Plan, Replacement, compact::CompactOptions, message::*};
    ///
    /// let (mut log, hello) = (EventLog::new("main".parse()?), Message::assistant("Hello!"));
    /// log.append(Timestamp(1), Event::MessageAppended(hello.clone()))?;
    /// let plan = Plan::new(&[hello], &[Replacement::new("A greeting.")], &CompactOptions::default())?;
    /// let (id, reason) = (log.next_compaction(), CompactionReason::Threshold);
    /// let record = CompactionRecord::new(id, reason, "by-hand", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    /// assert_eq!(log.compaction(id).map(|record| record.strategy.as_str()), Some("by-hand"));
    /// let _ = log.undo(Timestamp(3), id)?;
    /// assert_eq!((log.standing().count(), log.compaction(id).is_some()), (0, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn compaction(&self, id: CompactionId) -> Option<&CompactionRecord> {
        match self.state.compactions.get(&id) {
            Some((seq, _)) => self.record(*seq),
            None => self.state.dropped.latest.as_deref().filter(|latest| latest.id == id),
        }
    }

    /// Whether the log holds the result of this compaction, a success or a failure.
    ///
    /// ```
    /// use threadfold::{log::EventLog, message::CompactionId};
    ///
    /// assert!(!EventLog::new("main".parse()?).is_ended(CompactionId(0)));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn is_ended(&self, id: CompactionId) -> bool {
        self.state.is_ended(id)
    }

    /// Returns the host's latest system prompt.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&Text> {
        self.state.totals.host_prompt.as_ref()
    }

    /// Returns the user's latest system prompt.
    ///
    /// ```
    /// use threadfold::{log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let prompt = Event::SystemPromptSet { text: "Be brief.".into(), by_user: true };
    /// log.append(Timestamp(1), prompt)?;
    /// assert_eq!(log.user_prompt().map(|text| text.as_str()), Some("Be brief."));
    /// assert_eq!(log.system_prompt(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn user_prompt(&self) -> Option<&Text> {
        self.state.totals.user_prompt.as_ref()
    }

    /// Returns the tokens billed for all events, including those before the base.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, Usage, log::{self, Event}, message::Timestamp};
    ///
    /// let (mut log, mut answer) = (EventLog::new("main".parse()?), Message::assistant("Yes."));
    /// answer.make_mut().usage = Some(Usage::new(100, 50));
    /// log.append(Timestamp(1), Event::MessageAppended(answer))?;
    /// assert_eq!(log.billed(), log::total_usage(log.events()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn billed(&self) -> TotalUsage {
        self.state.totals.billed
    }

    /// Returns the notes that the agent wrote, except those of messages that were truncated.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(1), Event::MessageAppended(Message::assistant("I note that.")))?;
    /// let note = Event::NoteWritten { name: "port".into(), text: "8443".into() };
    /// log.append(Timestamp(2), note)?;
    /// assert_eq!(log.notes().to_string(), "- port\n> 8443\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn notes(&self) -> &Notes {
        self.state.notes.notes()
    }

    /// The rules that the host ever added, revoked or not.
    pub(crate) fn added_rules(&self) -> &Ledger {
        &self.state.totals.added
    }

    /// Replaces equal messages of this whole log with the handles of `part`, so that memory holds
    /// each message once. The events since the base of `part` are those of `part`.
    pub(crate) fn share(&mut self, part: &Self) {
        self.events.truncate(self.events.len().saturating_sub(part.events.len()));
        self.events.extend_from_slice(&part.events);
        self.state.share(&part.state);
    }

    /// Estimates the memory of the thread, in bytes.
    pub(crate) fn thread_bytes(&self) -> u64 {
        self.state.size.bytes
    }

    /// Estimates the memory of the events without those messages that are in the thread, in bytes.
    pub(crate) fn past_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.state.size.in_events)
    }

    pub(super) fn last_count(&self) -> (LastCount, usize) {
        usage::last_count(&self.events, self.state.dropped.count)
    }

    /// The compactions that the log still holds, those that were undone included.
    pub(crate) fn compactions(&self) -> impl Iterator<Item = &CompactionRecord> {
        let held = self.events.iter().filter_map(|logged| {
            if let Event::Compacted(record) = &logged.event { Some(record.as_ref()) } else { None }
        });
        self.state.dropped.latest.as_deref().into_iter().chain(held)
    }

    /// Appends the next event and returns it.
    pub(super) fn push(&mut self, event: LoggedEvent) -> Option<&LoggedEvent> {
        self.state.apply(&event);
        self.bytes = self.bytes.saturating_add(weight(&event.event));
        self.events.push(event);
        self.events.last()
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn event(&self, seq: u64) -> Option<&LoggedEvent> {
        self.events.get(usize::try_from(seq.checked_sub(self.base())?).ok()?)
    }

    pub(super) fn record(&self, seq: u64) -> Option<&CompactionRecord> {
        let event = &self.event(seq)?.event;
        if let Event::Compacted(record) = event { Some(record) } else { None }
    }
}

impl PartialEq for EventLog {
    /// Whether thread id, base and events are equal, and the live thread if there is a base.
    fn eq(&self, other: &Self) -> bool {
        self.thread == other.thread
            && self.base() == other.base()
            && self.events == other.events
            && (self.base() == 0 || self.replay() == other.replay())
    }
}

impl Eq for EventLog {}
