//! The state of a log after its last event: the live thread, and the standing compactions.
//!
//! An event takes constant time; a compaction and its undo take time linear in the live thread,
//! which the context window bounds. A stored log may hold anything, so [`State::apply`] skips an
//! event that does not fit and records that it did; [`State::check`] refuses such an event before
//! it is appended.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use serde::{Deserialize, Serialize};

use super::{
    error::{LogError, Result},
    event::{COMPACTION_FAILED, CompactionRecord, Event, LoggedEvent},
    ids::Ids,
    logged_notes::LoggedNotes,
    size::ThreadSize,
    usage::{LastCount, TotalUsage},
};
use crate::{
    compact::{CompactError, Insert, Splice},
    ledger::Ledger,
    message::{CompactionId, InvalidValue, Json, Message, Role, Text, Timestamp, check_nesting},
    notes::Notes,
};

/// The state of a log.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The state after the events before the log's base.
    pub(super) dropped: Dropped,
    /// The `seq` of the event of each message appended since the base.
    pub(super) arrivals: Vec<u64>,
    /// The live thread.
    pub(super) thread: Vec<Entry>,
    /// The compactions that were applied since the base and not undone, in order.
    pub(super) standing: Vec<Standing>,
    /// The `seq` and outcome of every compaction since the base.
    pub(super) compactions: HashMap<CompactionId, (u64, Outcome)>,
    pub(super) skipped: Vec<(u64, LogError)>,
    pub(super) totals: Totals,
    pub(super) size: ThreadSize,
    pub(super) notes: LoggedNotes,
}

/// The state after the events before a log's base. Only the store holds these events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Dropped {
    /// The base: the `seq` of the first event that is held.
    pub(super) seq: u64,
    /// The number of messages that were appended.
    pub(super) messages: usize,
    /// The numbers of those that were not truncated, as ascending ranges with gaps between them.
    pub(super) originals: Vec<Range<usize>>,
    /// The ids of all compactions, failed ones included.
    pub(super) ended: Ids,
    /// The latest standing compaction.
    pub(super) latest: Option<Box<CompactionRecord>>,
    /// How full the context was, and the number of messages appended since it was counted.
    pub(super) count: (LastCount, usize),
    /// The standing rules as JSON, redacted if the log's reader redacts; null without a base.
    pub(super) rules: Json,
    /// The notes of the agent.
    #[serde(default)]
    pub(super) notes: Notes,
}

/// Totals over all events of a log, including those that the log no longer holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Totals {
    pub(super) billed: TotalUsage,
    /// The time of the latest answer.
    pub(super) answered: Option<Timestamp>,
    /// The rules that the host ever added.
    pub(super) added: Ledger,
    /// The highest compaction id.
    highest: Option<CompactionId>,
    pub(super) host_prompt: Option<Text>,
    pub(super) user_prompt: Option<Text>,
}

/// A message of the live thread, its source, and `seq` and time of the source's event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) message: Message,
    pub(super) source: EntrySource,
    pub(super) seq: u64,
    pub(super) at: Timestamp,
}

impl Entry {
    /// Returns the number of the appended message that this is, or is a part of.
    pub(super) fn arrival(&self) -> Option<usize> {
        match self.source {
            EntrySource::Arrival(number) => Some(number),
            EntrySource::Compaction { .. } | EntrySource::Dropped(_) => None,
        }
    }
}

/// The source of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntrySource {
    /// An appended message, whole or in part, by its number among all appended messages.
    Arrival(usize),
    /// A compaction: its index in [`State::standing`], and the index of its splice.
    Compaction { standing: usize, splice: usize },
    /// A compaction before the base.
    Dropped(CompactionId),
}

/// The replacement of a range of the thread.
#[derive(Clone, Debug)]
pub(super) struct Swap {
    pub(super) at: Range<usize>,
    pub(super) inserted: Vec<Entry>,
}

/// The outcome of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stands,
    Undone,
    Failed,
    Skipped,
}

/// A standing compaction, with the swaps that undo it.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) id: CompactionId,
    pub(super) seq: u64,
    /// The number of messages in the thread after the compaction.
    pub(super) after: usize,
    /// The size of the thread before the compaction and after it.
    sizes: (ThreadSize, ThreadSize),
    /// The swaps that undo it, in positions of the thread after it: they replace the inserted
    /// messages with the removed ones.
    pub(super) swaps: Vec<Swap>,
    /// The lowest number of messages to which the thread was truncated since; `None` if all `after`
    /// messages stayed.
    pub(super) cut: Option<usize>,
}

impl State {
    /// Checks whether an event may be appended.
    pub(super) fn check(&self, event: &Event) -> Result<()> {
        match event {
            Event::LocalNotice { .. }
            | Event::RuleAdded { .. }
            | Event::RuleRevoked { .. }
            | Event::NoteWritten { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Spent { .. }
            | Event::SystemPromptSet { .. } => Ok(()),
            Event::CompactionFailed(failure) => self.check_new(failure.id),
            Event::MessageAppended(message) => Ok(check_nesting(&message.content)?),
            &Event::Truncated { from, len } => {
                self.check_whole()?;
                let found = self.thread.len();
                if from != found || len > from {
                    return Err(LogError::Truncated { from, len, found });
                }
                Ok(())
            }
            Event::Compacted(record) => {
                self.check_new(record.id)?;
                check_inserts(record)?;
                Ok(self.check_plan(record)?)
            }
            Event::CompactionUndone { id } => {
                self.check_undo(*id)?;
                Ok(())
            }
            Event::Malformed { .. } => Err(LogError::Malformed),
        }
    }

    /// Returns the compaction if it can be undone.
    pub(super) fn check_undo(&self, id: CompactionId) -> Result<&Standing> {
        match self.compactions.get(&id) {
            None if self.dropped.ended.contains(id) => self.check_whole()?,
            None => return Err(LogError::UnknownCompaction { id }),
            Some((_, Outcome::Failed)) => return Err(LogError::FailedCompaction { id }),
            Some((_, Outcome::Undone)) => return Err(LogError::UndoneCompaction { id }),
            Some((_, Outcome::Skipped)) => return Err(LogError::SkippedCompaction { id }),
            Some((_, Outcome::Stands)) => {}
        }
        let Some(top) = self.standing.last() else {
            return Err(LogError::UnknownCompaction { id });
        };
        if top.id != id {
            return Err(LogError::CoveredCompaction { id, by: top.id });
        }
        if top.cut.is_some() { Err(LogError::TruncatedCompaction { id }) } else { Ok(top) }
    }

    /// Returns the id of the next compaction.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let next = self.totals.highest.map_or(Some(0), |highest| highest.0.checked_add(1));
        // Only a foreign log can hold the highest possible id. Then use the lowest free one.
        let mut ids = (next.unwrap_or(0)..).map(CompactionId);
        ids.find(|id| !self.is_ended(*id)).unwrap_or_default()
    }

    /// Returns the `seq` of the event of a message that was appended since the base.
    pub(super) fn arrival(&self, number: usize) -> Option<u64> {
        self.arrivals.get(number.checked_sub(self.dropped.messages)?).copied()
    }

    /// Whether a compaction has this id.
    pub(super) fn is_ended(&self, id: CompactionId) -> bool {
        self.compactions.contains_key(&id) || self.dropped.ended.contains(id)
    }

    /// Applies the next event. An event that does not fit is recorded as skipped.
    pub(super) fn apply(&mut self, next: &LoggedEvent) {
        let seq = next.seq;
        self.totals.billed.record(&next.event);
        match &next.event {
            Event::MessageAppended(message) => self.append(next, message),
            Event::SystemPromptSet { text, by_user: false } => {
                self.totals.host_prompt = Some(text.clone());
            }
            Event::SystemPromptSet { text, by_user: true } => {
                self.totals.user_prompt = Some(text.clone());
            }
            Event::Truncated { from, len } => self.truncate(from.saturating_sub(*len)),
            Event::Compacted(record) => self.compact(next, record),
            Event::CompactionFailed(failure) => {
                if self.check_new(failure.id).is_ok() {
                    self.register(failure.id, seq, Outcome::Failed);
                }
            }
            Event::CompactionUndone { id } => match self.check_undo(*id) {
                Ok(_) => self.undo(),
                Err(error) => self.skip(seq, error),
            },
            Event::Malformed { kind, data } => self.apply_malformed(seq, kind, data),
            Event::RuleAdded { text } => {
                // A text that was refused as a rule when it was logged is refused again, so ignore
                // the error.
                let _ = self.totals.added.add(text);
            }
            Event::NoteWritten { name, text } => {
                let messages = self.dropped.messages.saturating_add(self.arrivals.len());
                self.notes.write(messages, name, text);
            }
            Event::Spent { .. } => self.totals.answered = Some(next.at),
            Event::LocalNotice { .. }
            | Event::RuleRevoked { .. }
            | Event::Host { .. }
            | Event::ResultCut(_) => {}
        }
    }

    /// Checks that the log holds all its events.
    pub(super) fn check_whole(&self) -> Result<()> {
        match self.dropped.seq {
            0 => Ok(()),
            base => Err(LogError::NotHeld { base }),
        }
    }

    fn check_new(&self, id: CompactionId) -> Result<()> {
        if self.is_ended(id) { Err(LogError::IdUsed { id }) } else { Ok(()) }
    }

    fn check_plan(&self, record: &CompactionRecord) -> Result<(), CompactError> {
        record.plan.check_with(self.thread.len(), |index| self.message(index))
    }

    fn message(&self, at: usize) -> Option<&Message> {
        Some(&self.thread.get(at)?.message)
    }

    fn append(&mut self, next: &LoggedEvent, message: &Message) {
        let source = EntrySource::Arrival(self.dropped.messages + self.arrivals.len());
        self.arrivals.push(next.seq);
        if message.role == Role::Assistant {
            self.totals.answered = Some(next.at);
        }
        let added = ThreadSize::of([(message, true)]);
        self.size = self.size.with(added, ThreadSize::default());
        let message = message.clone();
        self.thread.push(Entry { message, source, seq: next.seq, at: next.at });
    }

    /// Replaces equal messages with the other state's handles, so that memory holds them once.
    pub(super) fn share(&mut self, other: &Self) {
        for (entry, other) in self.thread.iter_mut().zip(&other.thread) {
            if entry.message == other.message {
                entry.message = other.message.clone();
            }
        }
    }

    /// Drops this many messages from the end. The argument is not the number of kept messages,
    /// because that differs from the logged one if a compaction was skipped.
    fn truncate(&mut self, dropped: usize) {
        let len = self.thread.len().saturating_sub(dropped);
        let removed = self.size_of(self.thread.get(len..).unwrap_or_default());
        self.size = self.size.with(ThreadSize::default(), removed);
        let dropped = self.thread.split_off(len);
        let first = if len == 0 { Some(0) } else { self.first_arrival(&dropped) };
        if let Some(first) = first {
            self.notes.truncate(first);
        }
        if let Some(top) = self.standing.last_mut().filter(|top| len < top.after) {
            top.cut = Some(top.cut.map_or(len, |cut| cut.min(len)));
        }
    }

    /// The lowest number of an appended message among these, or among those that they replace.
    fn first_arrival(&self, entries: &[Entry]) -> Option<usize> {
        let (mut first, mut left, mut seen) = (None, vec![entries], HashSet::new());
        while let Some(entries) = left.pop() {
            for entry in entries {
                match entry.source {
                    EntrySource::Arrival(number) => {
                        first = Some(first.map_or(number, |first: usize| first.min(number)));
                    }
                    // A splice may insert several messages.
                    EntrySource::Compaction { standing, splice }
                        if seen.insert((standing, splice)) =>
                    {
                        let swaps = self.standing.get(standing).map(|it| &it.swaps);
                        let swap = swaps.and_then(|swaps| swaps.get(splice));
                        left.extend(swap.map(|swap| swap.inserted.as_slice()));
                    }
                    // Messages before a base can no longer be truncated.
                    EntrySource::Compaction { .. } | EntrySource::Dropped(_) => {}
                }
            }
        }
        first
    }

    /// The size of messages that are or were in the live thread.
    pub(super) fn size_of(&self, entries: &[Entry]) -> ThreadSize {
        let first = self.dropped.messages;
        ThreadSize::of(entries.iter().map(|entry| {
            let is_held = entry.arrival().is_some_and(|number| number >= first);
            (&entry.message, is_held)
        }))
    }

    fn compact(&mut self, next: &LoggedEvent, record: &CompactionRecord) {
        let seq = next.seq;
        if self.check_new(record.id).is_err() {
            return self.skip(seq, LogError::IdUsed { id: record.id });
        }
        if let Err(error) = self.check_plan(record) {
            self.register(record.id, seq, Outcome::Skipped);
            return self.skip(seq, LogError::Plan(error));
        }
        let standing = self.standing.len();
        let splices = record.plan.splices().iter().enumerate();
        let swaps = splices.map(|(number, splice)| {
            let source = EntrySource::Compaction { standing, splice: number };
            Swap { at: splice.at.clone(), inserted: self.entries(splice, (source, seq, next.at)) }
        });
        let swaps = apply_swaps(swaps.collect(), &mut self.thread);
        self.register(record.id, seq, Outcome::Stands);
        let (id, after, before) = (record.id, self.thread.len(), self.size);
        if !swaps.is_empty() {
            self.size = self.size_of(&self.thread);
        }
        let sizes = (before, self.size);
        self.standing.push(Standing { id, seq, after, sizes, swaps, cut: None });
    }

    /// Returns the messages that a splice inserts. New ones have the source `new`.
    fn entries(&self, splice: &Splice, new: (EntrySource, u64, Timestamp)) -> Vec<Entry> {
        let messages = splice.build(|index| self.message(index));
        let sources = splice.insert.iter().map(|insert| match insert {
            Insert::Message { .. } => new,
            Insert::Part { message, .. } => {
                self.thread.get(*message).map_or(new, |it| (it.source, it.seq, it.at))
            }
        });
        let entries = messages.zip(sources);
        entries.map(|(message, (source, seq, at))| Entry { message, source, seq, at }).collect()
    }

    /// Undoes the latest standing compaction.
    fn undo(&mut self) {
        let Some(top) = self.standing.pop() else { return };
        let marked = self.marked(&top);
        let (before, after) = top.sizes;
        self.size = self.size.with(before, after);
        apply_swaps(top.swaps.into_iter().chain(marked).collect(), &mut self.thread);
        if let Some((_, outcome)) = self.compactions.get_mut(&top.id) {
            *outcome = Outcome::Undone;
        }
    }

    /// Returns the swaps that mark messages with signed reasoning that were appended after a
    /// compaction: its undo rewrites the messages before them, for which the reasoning was signed.
    /// The undo of an empty compaction rewrites nothing.
    pub(super) fn marked(&self, top: &Standing) -> Vec<Swap> {
        let since = if top.swaps.is_empty() { self.thread.len() } else { top.after };
        let signed = self.thread.iter().enumerate().skip(since);
        let signed = signed.filter(|(_, entry)| entry.message.is_signed());
        let swaps = signed.map(|(at, entry)| {
            let message = entry.message.clone().rewritten();
            Swap { at: at..at + 1, inserted: vec![Entry { message, ..*entry }] }
        });
        swaps.collect()
    }

    fn apply_malformed(&mut self, seq: u64, kind: &str, data: &Json) {
        // Record the id if it can be read, so that it is not used again.
        let failed = kind == COMPACTION_FAILED;
        let outcome = if failed { Outcome::Failed } else { Outcome::Skipped };
        if let Some(id) = unread_id(data).filter(|id| self.check_new(*id).is_ok()) {
            self.register(id, seq, outcome);
        }
        self.skip(seq, LogError::Malformed);
    }

    fn register(&mut self, id: CompactionId, seq: u64, outcome: Outcome) {
        self.totals.highest = self.totals.highest.max(Some(id));
        self.compactions.insert(id, (seq, outcome));
    }

    fn skip(&mut self, seq: u64, reason: LogError) {
        self.skipped.push((seq, reason));
    }
}

/// Checks the nesting of the messages that a compaction inserts.
fn check_inserts(record: &CompactionRecord) -> Result<(), InvalidValue> {
    let mut inserts = record.plan.splices().iter().flat_map(|splice| splice.insert.iter());
    inserts.try_for_each(|insert| match insert {
        Insert::Message { message } => check_nesting(&message.content),
        Insert::Part { .. } => Ok(()),
    })
}

/// Applies swaps, which are in order and in range, and returns the swaps that undo them.
fn apply_swaps(swaps: Vec<Swap>, thread: &mut Vec<Entry>) -> Vec<Swap> {
    // Split the thread into parts from its end and join them again: `Vec::splice` would move the
    // rest of the thread for every swap.
    let mut parts = Vec::with_capacity(swaps.len());
    for Swap { at, inserted } in swaps.into_iter().rev() {
        let kept = thread.split_off(at.end);
        parts.push((inserted, thread.split_off(at.start), kept));
    }
    let mut inverse = Vec::with_capacity(parts.len());
    for (inserted, removed, mut kept) in parts.into_iter().rev() {
        let start = thread.len();
        thread.extend(inserted);
        inverse.push(Swap { at: start..thread.len(), inserted: removed });
        thread.append(&mut kept);
    }
    inverse
}

/// Returns the id in a record of a compaction that cannot be read as a whole.
fn unread_id(data: &Json) -> Option<CompactionId> {
    #[derive(Deserialize)]
    struct Form {
        #[serde(alias = "compaction_failed")]
        compacted: Numbered,
    }
    #[derive(Deserialize)]
    struct Numbered {
        id: CompactionId,
    }
    let form: Form = serde_json::from_str(data.as_str()).ok()?;
    Some(form.compacted.id)
}
