//! What a log comes to, kept up with every event: the thread as pieces, and what stands.
//!
//! One event is taken at a time, in constant time or in that of its plan. What does not fit is
//! left out and noted, because a stored log may be anything; what may be appended is asked
//! beforehand and is strict.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
};

use serde::Deserialize;

use super::{
    event::{CompactionRecord, Event, LoggedEvent, PromptAuthor, Truncated, UnreadEvent},
    form,
    pieces::{Made, Maker, Piece, Pieces, Swap},
    refusal::{AppendError, SkipReason, Skipped, UndoError},
};
use crate::{
    compact::{Insert, Splice, StalePlan},
    message::{CompactionId, Message, NestingError, check_nesting},
};

/// What a log comes to.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The places in the log of all messages that ever came.
    pub(super) arrivals: Vec<u64>,
    /// The messages that are there now.
    pub(super) thread: Pieces,
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
    /// What it put where, in places of the thread that it left, and what had been there.
    pub(super) swaps: Vec<Swap>,
    /// Messages that came since with reasoning, as places of the thread while this stands on top.
    signed: VecDeque<usize>,
    /// How few of the messages that it left stayed, where some were dropped from the end.
    pub(super) cut: Option<usize>,
}

impl State {
    /// Returns whether an event may be appended.
    pub(super) fn check(&self, log: &[LoggedEvent], event: &Event) -> Result<(), AppendError> {
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
                if fits { Ok(()) } else { Err(AppendError::Truncated { from, len, found }) }
            }
            Event::Compacted(record) => {
                self.check_readable()?;
                self.check_new(record.id)?;
                check_inserts(record)?;
                Ok(self.check_plan(log, record)?)
            }
            Event::CompactionUndone(undone) => {
                self.check_undo(undone.id)?;
                Ok(())
            }
            Event::Unknown(unread) | Event::Malformed(unread) => {
                Err(AppendError::Unread { kind: unread.kind.clone() })
            }
        }
    }

    /// Returns the compaction if it can be undone.
    pub(super) fn check_undo(&self, id: CompactionId) -> Result<&Standing, UndoError> {
        if let Some(seq) = self.unreadable {
            return Err(UndoError::Unreadable { seq });
        }
        match self.compactions.get(&id) {
            None => return Err(UndoError::Unknown { id }),
            Some((_, Fate::Failed)) => return Err(UndoError::Failed { id }),
            Some((_, Fate::Undone)) => return Err(UndoError::Undone { id }),
            Some((_, Fate::Skipped)) => return Err(UndoError::Skipped { id }),
            Some((_, Fate::Stands)) => {}
        }
        let Some(top) = self.standing.last() else { return Err(UndoError::Unknown { id }) };
        if top.id != id {
            return Err(UndoError::Covered { id, by: top.id });
        }
        if top.cut.is_some() { Err(UndoError::Truncated { id }) } else { Ok(top) }
    }

    /// The number that the next compaction has.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let next = self.highest.map_or(Some(0), |highest| highest.0.checked_add(1));
        // Only a log that was not written by us counts so far; then a number between is free.
        let free = || (0..).find(|id| !self.compactions.contains_key(&CompactionId(*id)));
        CompactionId(next.or_else(free).unwrap_or_default())
    }

    /// Where the latest system prompt of this author is in the log.
    pub(super) fn prompt(&self, by: PromptAuthor) -> Option<u64> {
        match by {
            PromptAuthor::Host => self.host_prompt,
            PromptAuthor::User => self.user_prompt,
        }
    }

    /// Takes the next event. What does not fit is noted and changes nothing else.
    pub(super) fn take(&mut self, log: &[LoggedEvent], next: &LoggedEvent) {
        let seq = next.seq;
        match &next.event {
            Event::MessageAppended(message) => self.arrive(seq, message),
            Event::SystemPromptSet(prompt) => match prompt.by {
                PromptAuthor::Host => self.host_prompt = Some(seq),
                PromptAuthor::User => self.user_prompt = Some(seq),
            },
            Event::Truncated(truncated) => self.truncate(*truncated),
            Event::Compacted(record) => self.compact(log, seq, record),
            Event::CompactionFailed(failure) => {
                if self.check_new(failure.id).is_ok() {
                    self.enter(failure.id, seq, Fate::Failed);
                }
            }
            Event::CompactionUndone(undone) => match self.check_undo(undone.id) {
                Ok(_) => self.undo(log),
                Err(error) => self.skip(seq, SkipReason::Undo(error)),
            },
            Event::Malformed(unread) => self.take_malformed(seq, unread),
            Event::LocalNotice(_) | Event::RuleChanged(_) | Event::Host(_) | Event::Unknown(_) => {}
        }
    }

    fn check_readable(&self) -> Result<(), AppendError> {
        self.unreadable.map_or(Ok(()), |seq| Err(AppendError::Unreadable { seq }))
    }

    fn check_new(&self, id: CompactionId) -> Result<(), AppendError> {
        if self.compactions.contains_key(&id) { Err(AppendError::IdUsed { id }) } else { Ok(()) }
    }

    fn check_plan(&self, log: &[LoggedEvent], record: &CompactionRecord) -> Result<(), StalePlan> {
        record.plan.check_with(self.thread.len(), |index| self.message(log, index))
    }

    /// A message that is there now.
    pub(super) fn message<'a>(&'a self, log: &'a [LoggedEvent], at: usize) -> Option<&'a Message> {
        match self.thread.get(at)? {
            (Piece::Made(made), _) => Some(&made.message),
            (Piece::Run(run), offset) => self.arrival(log, run.start + offset),
        }
    }

    /// One of the messages that came.
    pub(super) fn arrival<'a>(&self, log: &'a [LoggedEvent], number: usize) -> Option<&'a Message> {
        let seq = usize::try_from(*self.arrivals.get(number)?).ok()?;
        if let Event::MessageAppended(message) = &log.get(seq)?.event {
            Some(message)
        } else {
            None
        }
    }

    fn maker(&self, at: usize) -> Option<Maker> {
        match self.thread.get(at)? {
            (Piece::Made(made), _) => Some(made.source),
            (Piece::Run(run), offset) => Some(Maker::Arrival(run.start + offset)),
        }
    }

    fn arrive(&mut self, seq: u64, message: &Message) {
        let signed = message.is_signed();
        let place = self.thread.len();
        if let Some(top) = self.standing.last_mut().filter(|_| signed) {
            top.signed.push_back(place);
        }
        let number = self.arrivals.len();
        self.arrivals.push(seq);
        self.thread.push(Piece::Run(number..number + 1));
    }

    /// Drops messages from the end: as many as went then, where the thread was another one.
    fn truncate(&mut self, truncated: Truncated) {
        let gone = truncated.from.saturating_sub(truncated.len);
        let len = self.thread.len().saturating_sub(gone);
        self.thread.truncate(len);
        if let Some(top) = self.standing.last_mut() {
            if len < top.after {
                top.cut = Some(top.cut.map_or(len, |cut| cut.min(len)));
            }
            let stay = top.signed.partition_point(|place| *place < len);
            top.signed.truncate(stay);
        }
    }

    fn compact(&mut self, log: &[LoggedEvent], seq: u64, record: &CompactionRecord) {
        if self.check_new(record.id).is_err() {
            return self.skip(seq, SkipReason::IdUsed { id: record.id });
        }
        if let Err(error) = self.check_plan(log, record) {
            self.enter(record.id, seq, Fate::Skipped);
            return self.skip(seq, SkipReason::Plan(error));
        }
        let there = self.swaps(log, record);
        let (mut gone, mut come) = (0, 0);
        let places = there.iter().map(|swap| {
            let start = swap.at.start.saturating_sub(gone).saturating_add(come);
            (gone, come) = (gone + swap.at.len(), come + swap.comes.len());
            start..start + swap.comes.len()
        });
        let places: Vec<Range<usize>> = places.collect();
        let went = self.thread.swap(there);
        let back = places.into_iter().zip(went).map(|(at, comes)| Swap { at, comes }).collect();
        let (id, after) = (record.id, self.thread.len());
        self.enter(id, seq, Fate::Stands);
        let standing = Standing { id, seq, after, swaps: back, signed: VecDeque::new(), cut: None };
        self.standing.push(standing);
    }

    /// What a plan that fits puts in place of what, as pieces.
    fn swaps(&self, log: &[LoggedEvent], record: &CompactionRecord) -> Vec<Swap> {
        let standing = self.standing.len();
        let splices = record.plan.splices().iter().enumerate();
        let swap = |(number, splice): (usize, &Splice)| {
            let source = Maker::Compaction { standing, splice: number };
            Swap { at: splice.at.clone(), comes: self.made(log, splice, source) }
        };
        splices.map(swap).collect()
    }

    /// The messages that come in a splice, each with its source.
    fn made(&self, log: &[LoggedEvent], splice: &Splice, new: Maker) -> Pieces {
        let messages = splice.build(|index| self.message(log, index));
        let sources = splice.insert.iter().map(|insert| match insert {
            Insert::Message { .. } => new,
            Insert::Part { message, .. } => self.maker(*message).unwrap_or(new),
        });
        let made = messages.zip(sources);
        made.map(|(message, source)| Piece::Made(Made { message, source })).collect()
    }

    /// Takes the latest compaction back.
    fn undo(&mut self, log: &[LoggedEvent]) {
        let Some(top) = self.standing.pop() else { return };
        let marked = self.marked(log, &top);
        if let Some(below) = self.standing.last_mut().filter(|_| top.swaps.is_empty()) {
            // Nothing moved, and what would be marked is left to the next one that is undone.
            hand_down(top.signed, &mut below.signed);
        }
        let mut swaps = top.swaps;
        for (at, made) in marked {
            let comes = Pieces::from_iter([Piece::Made(made)]);
            swaps.push(Swap { at: at..at + 1, comes });
        }
        self.thread.swap(swaps);
        if let Some((_, fate)) = self.compactions.get_mut(&top.id) {
            *fate = Fate::Undone;
        }
    }

    /// The messages that came since a compaction and whose reasoning was signed for what it left,
    /// marked, with their places: what stands before them is rewritten when it is undone.
    pub(super) fn marked(&self, log: &[LoggedEvent], top: &Standing) -> Vec<(usize, Made)> {
        let signed = Some(&top.signed).filter(|_| !top.swaps.is_empty());
        let mark = |place: &usize| {
            let message = self.message(log, *place)?.clone().rewritten();
            Some((*place, Made { message, source: self.maker(*place)? }))
        };
        signed.into_iter().flatten().filter_map(mark).collect()
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
                self.skip(seq, SkipReason::Malformed);
            }
        }
    }

    fn enter(&mut self, id: CompactionId, seq: u64, fate: Fate) {
        self.highest = self.highest.max(Some(id));
        self.compactions.insert(id, (seq, fate));
    }

    fn skip(&mut self, seq: u64, reason: SkipReason) {
        self.skipped.push(Skipped { seq, reason });
    }
}

/// Checks the messages that a compaction brings.
fn check_inserts(record: &CompactionRecord) -> Result<(), NestingError> {
    let mut inserts = record.plan.splices().iter().flat_map(|splice| splice.insert.iter());
    inserts.try_for_each(|insert| match insert {
        Insert::Message { message } => check_nesting(&message.content),
        Insert::Part { .. } => Ok(()),
    })
}

/// Puts places behind the others, in the time of the fewer: they may be handed down often.
fn hand_down(mut places: VecDeque<usize>, below: &mut VecDeque<usize>) {
    if places.len() <= below.len() {
        below.append(&mut places);
        return;
    }
    for place in below.drain(..).rev() {
        places.push_front(place);
    }
    *below = places;
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
