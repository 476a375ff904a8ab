//! What a compaction stands for.

use std::{collections::HashSet, ops::Range};

use super::{
    event_log::EventLog,
    state::{Entry, Maker, Standing},
};
use crate::{
    compact::{Insert, Splice},
    message::CompactionId,
};

impl EventLog {
    /// Returns the places in the log of the messages that the new messages of a compaction stand
    /// for, through earlier compactions, as ascending ranges that do not adjoin. `None` if no such
    /// compaction stands.
    ///
    /// A new message stands for what went where it came, and for what went before it since the new
    /// message before. What stays is not covered, not even if only a part of it stays there; nor is
    /// what was dropped with nothing to stand for it.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::{Insert, Splice}};
    /// use threadfold::log::{CompactionRecord, Event, EventLog};
    /// use threadfold::message::{CompactionReason, Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// for text in ["one", "two", "three"] {
    ///     log.append(Timestamp(1), Event::MessageAppended(Message::user(text)))?;
    /// }
    /// let insert = vec![Insert::Message { message: Message::user("one and two") }];
    /// let plan = Plan::from_splices(3, vec![Splice { at: 0..2, insert }]);
    /// let id = log.next_compaction();
    /// let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    /// assert_eq!(log.covered(id), Some(vec![0..2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn covered(&self, id: CompactionId) -> Option<Vec<Range<u64>>> {
        let standing = &self.state().standing;
        let top = standing.iter().position(|standing| standing.id == id)?;
        let mut walk = Walk {
            log: self,
            seen: HashSet::new(),
            asked: HashSet::new(),
            open: Vec::new(),
            numbers: Vec::new(),
        };
        walk.open_all(top, standing.get(top)?);
        while let Some(splice) = walk.open.pop() {
            walk.enter(splice);
        }
        Some(self.places(walk.numbers))
    }

    /// The events of messages, by their numbers.
    fn places(&self, mut numbers: Vec<usize>) -> Vec<Range<u64>> {
        numbers.sort_unstable();
        let arrivals = &self.state().arrivals;
        let mut places: Vec<Range<u64>> = Vec::new();
        for seq in numbers.into_iter().filter_map(|number| arrivals.get(number)) {
            match places.last_mut() {
                Some(last) if last.end == *seq => last.end += 1,
                // A message that was divided may have gone twice.
                Some(last) if last.end > *seq => {}
                Some(_) | None => places.push(*seq..*seq + 1),
            }
        }
        places
    }
}

/// A splice: which of the compactions that stand, and which of its splices.
type At = (usize, usize);

/// A walk from the new messages of a compaction down to what came.
struct Walk<'a> {
    log: &'a EventLog,
    seen: HashSet<At>,
    /// The splices of which a new message was met, so that those before are looked for once.
    asked: HashSet<At>,
    open: Vec<At>,
    /// The appended messages that were met, by number.
    numbers: Vec<usize>,
}

impl Walk<'_> {
    fn splices(&self, standing: &Standing) -> &[Splice] {
        self.log.record(standing.seq).map_or(&[], |record| record.plan.splices())
    }

    /// Opens every splice up to the last that puts a new message in.
    fn open_all(&mut self, number: usize, standing: &Standing) {
        let last = self.splices(standing).iter().rposition(brings_new);
        let splices = 0..last.map_or(0, |last| last + 1);
        self.open.extend(splices.map(|splice| (number, splice)));
    }

    fn enter(&mut self, (number, splice): At) {
        if !self.seen.insert((number, splice)) {
            return;
        }
        let Some(standing) = self.log.state().standing.get(number) else { return };
        let Some(planned) = self.splices(standing).get(splice) else { return };
        let kept: HashSet<usize> = planned.insert.iter().filter_map(Insert::part_of).collect();
        let Some(swap) = standing.swaps.get(splice) else { return };
        // A message of which a part stays is not covered.
        let went = swap.comes.iter().zip(planned.at.start..);
        for (entry, _) in went.filter(|(_, place)| !kept.contains(place)) {
            self.cover(entry);
        }
    }

    fn cover(&mut self, entry: &Entry) {
        match entry.source {
            Maker::Arrival(number) => self.numbers.push(number),
            Maker::Compaction { standing, splice } => self.open_group(standing, splice),
        }
    }

    /// Opens the splice that a message came in, and those before it that bring no new message.
    fn open_group(&mut self, number: usize, splice: usize) {
        if !self.asked.insert((number, splice)) {
            return;
        }
        let Some(standing) = self.log.state().standing.get(number) else { return };
        let splices = self.splices(standing).iter().take(splice);
        let before = splices.rev().take_while(|splice| !brings_new(splice)).count();
        self.open.extend((splice - before..=splice).map(|splice| (number, splice)));
    }
}

fn brings_new(splice: &Splice) -> bool {
    splice.insert.iter().any(|insert| matches!(insert, Insert::Message { .. }))
}
