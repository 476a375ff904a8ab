//! The state of a log after each event: the live thread, and the compactions that stand.
//!
//! An event takes constant time, a compaction and its undo the time of the live thread, which the
//! context window bounds. A stored log may hold anything, so an event that does not fit is skipped
//! and noted; [`State::check`] is strict, because it judges events before they are appended.

use std::{collections::HashMap, ops::Range};

use serde::Deserialize;

use super::{
    error::{LogError, Skipped},
    event::{CompactionRecord, Event, LoggedEvent, PromptAuthor, Truncated, UnreadEvent},
    form,
};
use crate::{
    compact::{CompactError, Insert, Splice},
    message::{CompactionId, InvalidValue, Message, check_nesting},
};

/// The state of a log.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The event of each message that was ever appended.
    pub(super) arrivals: Vec<u64>,
    /// The live thread.
    pub(super) thread: Vec<Entry>,
    /// The compactions that are carried out and not undone, in order.
    pub(super) standing: Vec<Standing>,
    /// Every compaction: where it is in the log, and what became of it.
    pub(super) compactions: HashMap<CompactionId, (u64, Fate)>,
    pub(super) skipped: Vec<Skipped>,
    /// The first event with a message that cannot be read.
    pub(super) unreadable: Option<u64>,
    highest: Option<CompactionId>,
    host_prompt: Option<u64>,
    user_prompt: Option<u64>,
}

/// A message of the thread, by handle.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) message: Message,
    pub(super) source: Maker,
}

impl Entry {
    /// The number of the appended message that this is the whole or a part of.
    pub(super) fn arrival(&self) -> Option<usize> {
        match self.source {
            Maker::Arrival(number) => Some(number),
            Maker::Compaction { .. } => None,
        }
    }
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Maker {
    /// The whole or a part of an appended message, by its number among all of them.
    Arrival(usize),
    /// A compaction: its index among those that stand, and the index of its splice.
    Compaction { standing: usize, splice: usize },
}

/// Some messages go, others come.
#[derive(Clone, Debug)]
pub(super) struct Swap {
    pub(super) at: Range<usize>,
    pub(super) comes: Vec<Entry>,
}

/// What became of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stands,
    Undone,
    Failed,
    Skipped,
}

/// A compaction that is carried out, with what it takes to carry the thread back.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) id: CompactionId,
    pub(super) seq: u64,
    /// How many messages it left.
    pub(super) after: usize,
    /// What takes it back: what it put in, in positions of the thread that it left, and what had been
    /// there.
    pub(super) swaps: Vec<Swap>,
    /// How few of the messages that it left stayed, where some were dropped from the end.
    pub(super) cut: Option<usize>,
}

impl State {
    /// Returns whether an event may be appended.
    pub(super) fn check(&self, event: &Event) -> Result<(), LogError> {
        match event {
            Event::LocalNotice(_)
            | Event::RuleChanged(_)
            | Event::Host(_)
            | Event::SystemPromptSet(_) => Ok(()),
            Event::CompactionFailed(failure) => self.check_new(failure.id),
            Event::MessageAppended(message) => {
                self.check_readable()?;
                Ok(check_nesting(&message.content)?)
            }
            Event::Truncated(truncated) => {
                self.check_readable()?;
                let (Truncated { from, len }, found) = (*truncated, self.thread.len());
                let fits = from == found && len <= from;
                if fits { Ok(()) } else { Err(LogError::Truncated { from, len, found }) }
            }
            Event::Compacted(record) => {
                self.check_readable()?;
                self.check_new(record.id)?;
                check_inserts(record)?;
                Ok(self.check_plan(record)?)
            }
            Event::CompactionUndone(undone) => {
                self.check_undo(undone.id)?;
                Ok(())
            }
            Event::Unknown(unread) | Event::Malformed(unread) => {
                Err(LogError::Unread { kind: unread.kind.clone() })
            }
        }
    }

    /// Returns the compaction if it can be undone.
    pub(super) fn check_undo(&self, id: CompactionId) -> Result<&Standing, LogError> {
        if let Some(seq) = self.unreadable {
            return Err(LogError::Unreadable { seq });
        }
        match self.compactions.get(&id) {
            None => return Err(LogError::UnknownCompaction { id }),
            Some((_, Fate::Failed)) => return Err(LogError::FailedCompaction { id }),
            Some((_, Fate::Undone)) => return Err(LogError::UndoneCompaction { id }),
            Some((_, Fate::Skipped)) => return Err(LogError::SkippedCompaction { id }),
            Some((_, Fate::Stands)) => {}
        }
        let Some(top) = self.standing.last() else {
            return Err(LogError::UnknownCompaction { id });
        };
        if top.id != id {
            return Err(LogError::CoveredCompaction { id, by: top.id });
        }
        if top.cut.is_some() { Err(LogError::TruncatedCompaction { id }) } else { Ok(top) }
    }

    /// The number that the next compaction has.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let next = self.highest.map_or(Some(0), |highest| highest.0.checked_add(1));
        // Only a log that was not written by us counts so far; then a number between is free.
        let mut ids = (next.unwrap_or_default()..).map(CompactionId);
        ids.find(|id| !self.compactions.contains_key(id)).unwrap_or_default()
    }

    /// Where the latest system prompt of this author is in the log.
    pub(super) fn prompt(&self, by: PromptAuthor) -> Option<u64> {
        match by {
            PromptAuthor::Host => self.host_prompt,
            PromptAuthor::User => self.user_prompt,
        }
    }

    /// Takes the next event. What does not fit is noted and changes nothing else.
    pub(super) fn take(&mut self, next: &LoggedEvent) {
        let seq = next.seq;
        match &next.event {
            Event::MessageAppended(message) => self.arrive(seq, message),
            Event::SystemPromptSet(prompt) => match prompt.by {
                PromptAuthor::Host => self.host_prompt = Some(seq),
                PromptAuthor::User => self.user_prompt = Some(seq),
            },
            Event::Truncated(truncated) => self.truncate(*truncated),
            Event::Compacted(record) => self.compact(seq, record),
            Event::CompactionFailed(failure) => {
                if self.check_new(failure.id).is_ok() {
                    self.enter(failure.id, seq, Fate::Failed);
                }
            }
            Event::CompactionUndone(undone) => match self.check_undo(undone.id) {
                Ok(_) => self.undo(),
                Err(error) => self.skip(seq, error),
            },
            Event::Malformed(unread) => self.take_malformed(seq, unread),
            Event::LocalNotice(_) | Event::RuleChanged(_) | Event::Host(_) | Event::Unknown(_) => {}
        }
    }

    fn check_readable(&self) -> Result<(), LogError> {
        self.unreadable.map_or(Ok(()), |seq| Err(LogError::Unreadable { seq }))
    }

    fn check_new(&self, id: CompactionId) -> Result<(), LogError> {
        if self.compactions.contains_key(&id) { Err(LogError::IdUsed { id }) } else { Ok(()) }
    }

    fn check_plan(&self, record: &CompactionRecord) -> Result<(), CompactError> {
        record.plan.check_with(self.thread.len(), |index| self.message(index))
    }

    fn message(&self, at: usize) -> Option<&Message> {
        Some(&self.thread.get(at)?.message)
    }

    fn arrive(&mut self, seq: u64, message: &Message) {
        let source = Maker::Arrival(self.arrivals.len());
        self.arrivals.push(seq);
        self.thread.push(Entry { message: message.clone(), source });
    }

    /// Drops messages from the end: as many as went then, where the thread was another one.
    fn truncate(&mut self, truncated: Truncated) {
        let gone = truncated.from.saturating_sub(truncated.len);
        let len = self.thread.len().saturating_sub(gone);
        self.thread.truncate(len);
        if let Some(top) = self.standing.last_mut().filter(|top| len < top.after) {
            top.cut = Some(top.cut.map_or(len, |cut| cut.min(len)));
        }
    }

    fn compact(&mut self, seq: u64, record: &CompactionRecord) {
        if self.check_new(record.id).is_err() {
            return self.skip(seq, LogError::IdUsed { id: record.id });
        }
        if let Err(error) = self.check_plan(record) {
            self.enter(record.id, seq, Fate::Skipped);
            return self.skip(seq, LogError::Plan(error));
        }
        let standing = self.standing.len();
        let splices = record.plan.splices().iter().enumerate();
        let swaps = splices.map(|(number, splice)| {
            let source = Maker::Compaction { standing, splice: number };
            Swap { at: splice.at.clone(), comes: self.made(splice, source) }
        });
        let swaps = carry_out(swaps.collect(), &mut self.thread);
        self.enter(record.id, seq, Fate::Stands);
        let (id, after) = (record.id, self.thread.len());
        self.standing.push(Standing { id, seq, after, swaps, cut: None });
    }

    /// The messages that come in a splice, each with its source.
    fn made(&self, splice: &Splice, new: Maker) -> Vec<Entry> {
        let messages = splice.build(|index| self.message(index));
        let sources = splice.insert.iter().map(|insert| match insert {
            Insert::Message { .. } => new,
            Insert::Part { message, .. } => self.thread.get(*message).map_or(new, |it| it.source),
        });
        messages.zip(sources).map(|(message, source)| Entry { message, source }).collect()
    }

    /// Takes the latest compaction back.
    fn undo(&mut self) {
        let Some(top) = self.standing.pop() else { return };
        let marked = self.marked(&top);
        let swaps = top.swaps.into_iter().chain(marked).collect();
        carry_out(swaps, &mut self.thread);
        if let Some((_, fate)) = self.compactions.get_mut(&top.id) {
            *fate = Fate::Undone;
        }
    }

    /// The swaps that mark the messages appended since a compaction whose reasoning was signed for what
    /// it left: undoing it rewrites what stands before them. One that changed nothing rewrites nothing.
    pub(super) fn marked(&self, top: &Standing) -> Vec<Swap> {
        let since = if top.swaps.is_empty() { self.thread.len() } else { top.after };
        let signed = self.thread.iter().enumerate().skip(since);
        let signed = signed.filter(|(_, entry)| entry.message.is_signed());
        let swaps = signed.map(|(at, entry)| {
            let message = entry.message.clone().rewritten();
            Swap { at: at..at + 1, comes: vec![Entry { message, ..*entry }] }
        });
        swaps.collect()
    }

    fn take_malformed(&mut self, seq: u64, unread: &UnreadEvent) {
        match unread.kind.as_str() {
            form::MESSAGE_APPENDED => self.unreadable = self.unreadable.or(Some(seq)),
            kind => {
                // A number that was lent once is never lent again, if it can be read at all.
                let failed = kind == form::COMPACTION_FAILED;
                let fate = if failed { Fate::Failed } else { Fate::Skipped };
                let id = unread_id(unread).filter(|id| self.check_new(*id).is_ok());
                id.into_iter().for_each(|id| self.enter(id, seq, fate));
                self.skip(seq, LogError::Malformed);
            }
        }
    }

    fn enter(&mut self, id: CompactionId, seq: u64, fate: Fate) {
        self.highest = self.highest.max(Some(id));
        self.compactions.insert(id, (seq, fate));
    }

    fn skip(&mut self, seq: u64, reason: LogError) {
        self.skipped.push(Skipped { seq, reason });
    }
}

/// Checks the messages that a compaction brings.
fn check_inserts(record: &CompactionRecord) -> Result<(), InvalidValue> {
    let mut inserts = record.plan.splices().iter().flat_map(|splice| splice.insert.iter());
    inserts.try_for_each(|insert| match insert {
        Insert::Message { message } => check_nesting(&message.content),
        Insert::Part { .. } => Ok(()),
    })
}

/// Carries swaps out, which are in order and in range. Returns those that take them back.
fn carry_out(swaps: Vec<Swap>, thread: &mut Vec<Entry>) -> Vec<Swap> {
    // Taken apart from the back and put together again: splicing in place would move the rest of the
    // thread once a swap.
    let mut parts = Vec::with_capacity(swaps.len());
    for Swap { at, comes } in swaps.into_iter().rev() {
        let kept = thread.split_off(at.end);
        parts.push((comes, thread.split_off(at.start), kept));
    }
    let mut back = Vec::with_capacity(parts.len());
    for (comes, went, mut kept) in parts.into_iter().rev() {
        let start = thread.len();
        thread.extend(comes);
        back.push(Swap { at: start..thread.len(), comes: went });
        thread.append(&mut kept);
    }
    back
}

/// The number in a record that cannot be read.
fn unread_id(unread: &UnreadEvent) -> Option<CompactionId> {
    #[derive(Deserialize)]
    struct Form {
        #[serde(alias = "compaction_failed")]
        compacted: Numbered,
    }
    #[derive(Deserialize)]
    struct Numbered {
        id: CompactionId,
    }
    let form: Form = serde_json::from_str(unread.data.as_str()).ok()?;
    Some(form.compacted.id)
}
