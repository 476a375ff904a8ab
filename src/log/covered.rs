//! The messages that a compaction's summaries replace.

use std::{collections::HashSet, ops::Range};

use super::{
    event_log::EventLog,
    state::{Entry, EntrySource, Standing},
    taken::to_ranges,
};
use crate::{
    compact::{Insert, Splice},
    message::CompactionId,
};

impl EventLog {
    /// Returns the `seq`s of the messages that the new messages of a compaction replace, directly
    /// or through earlier compactions, as ascending ranges with gaps between them. `None` if no
    /// such compaction is standing, or the log is not whole.
    ///
    /// A new message replaces the messages that its splice removed, and those removed by the
    /// splices before it back to the previous new message. A message of which any part stays is not
    /// covered, and neither is one that was removed with no new message after it.
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
        self.state().check_whole().ok()?;
        let standing = &self.state().standing;
        let number = standing.iter().position(|standing| standing.id == id)?;
        let mut walk = Walk {
            log: self,
            entered: HashSet::new(),
            expanded: HashSet::new(),
            open: Vec::new(),
            numbers: Vec::new(),
        };
        walk.open_all(number, standing.get(number)?);
        while let Some(splice) = walk.open.pop() {
            walk.enter(splice);
        }
        let arrivals = &self.state().arrivals;
        let seqs = walk.numbers.iter().filter_map(|number| arrivals.get(*number));
        let ranges = to_ranges(seqs.map(|seq| *seq as usize).collect());
        Some(ranges.into_iter().map(|range| range.start as u64..range.end as u64).collect())
    }
}

/// The index of a compaction in `State::standing`, and that of one of its splices.
type SpliceIndex = (usize, usize);

/// A walk from the new messages of a compaction to the appended messages that they replace.
struct Walk<'a> {
    log: &'a EventLog,
    entered: HashSet<SpliceIndex>,
    /// The splices for which [`Walk::open_group`] has run.
    expanded: HashSet<SpliceIndex>,
    /// The splices to enter.
    open: Vec<SpliceIndex>,
    /// The numbers of the appended messages that were found.
    numbers: Vec<usize>,
}

impl Walk<'_> {
    fn splices(&self, standing: &Standing) -> &[Splice] {
        self.log.record(standing.seq).map_or(&[], |record| record.plan.splices())
    }

    /// Opens every splice up to the last that inserts a new message.
    fn open_all(&mut self, number: usize, standing: &Standing) {
        let last = self.splices(standing).iter().rposition(inserts_new);
        let splices = 0..last.map_or(0, |last| last + 1);
        self.open.extend(splices.map(|splice| (number, splice)));
    }

    fn enter(&mut self, (number, splice): SpliceIndex) {
        if !self.entered.insert((number, splice)) {
            return;
        }
        let Some(standing) = self.log.state().standing.get(number) else { return };
        let Some(planned) = self.splices(standing).get(splice) else { return };
        let kept: HashSet<usize> = planned.insert.iter().filter_map(Insert::part_of).collect();
        let Some(swap) = standing.swaps.get(splice) else { return };
        // Undoing a splice inserts the messages that it removed. One with a kept part is not
        // covered.
        let removed = swap.inserted.iter().zip(planned.at.start..);
        for (entry, _) in removed.filter(|(_, index)| !kept.contains(index)) {
            self.cover(entry);
        }
    }

    fn cover(&mut self, entry: &Entry) {
        match entry.source {
            EntrySource::Arrival(number) => self.numbers.push(number),
            EntrySource::Compaction { standing, splice } => self.open_group(standing, splice),
            // The walk runs only on whole logs.
            EntrySource::Dropped(_) => {}
        }
    }

    /// Opens the splice of a new message, and the splices just before it that insert no new
    /// message.
    fn open_group(&mut self, number: usize, splice: usize) {
        if !self.expanded.insert((number, splice)) {
            return;
        }
        let Some(standing) = self.log.state().standing.get(number) else { return };
        let splices = self.splices(standing).iter().take(splice);
        let before = splices.rev().take_while(|splice| !inserts_new(splice)).count();
        self.open.extend((splice - before..=splice).map(|splice| (number, splice)));
    }
}

fn inserts_new(splice: &Splice) -> bool {
    splice.insert.iter().any(|insert| matches!(insert, Insert::Message { .. }))
}
