//! The appended messages that the summaries of a compaction replace.

use std::{collections::HashSet, ops::Range};

use super::{event_log::EventLog, state::EntrySource, taken::to_ranges};
use crate::{
    compact::{Insert, Splice},
    message::CompactionId,
};

impl EventLog {
    /// Returns the `seq`s of the messages that the new messages of a compaction replace, directly
    /// or through earlier compactions, as ascending ranges with gaps between them. `None` if no
    /// such compaction is standing, or the log is not whole.
    ///
    /// A new message replaces what its own splice removed, and what the splices between the
    /// previous new message and this one removed. Not covered are messages of which a part stays,
    /// and those that were removed after the last new message.
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
        let number = self.state().standing.iter().position(|standing| standing.id == id)?;
        let mut walk =
            Walk { log: self, seen: HashSet::new(), queue: Vec::new(), numbers: Vec::new() };
        // The splices after the last new message only remove.
        let last = walk.splices(number).iter().rposition(inserts_new);
        (0..last.map_or(0, |last| last + 1)).for_each(|splice| walk.queue(number, splice));
        while let Some((number, splice)) = walk.queue.pop() {
            walk.read(number, splice);
        }
        let arrivals = &self.state().arrivals;
        let seqs = walk.numbers.iter().filter_map(|number| arrivals.get(*number));
        let ranges = to_ranges(seqs.map(|seq| *seq as usize).collect());
        Some(ranges.into_iter().map(|range| range.start as u64..range.end as u64).collect())
    }
}

/// A walk from the new messages of a compaction to the appended messages that they replace, through
/// the new messages of earlier compactions. A splice is named by the index of its compaction in
/// `State::standing` and its own index.
struct Walk<'a> {
    log: &'a EventLog,
    /// The splices that were queued.
    seen: HashSet<(usize, usize)>,
    /// The splices to read.
    queue: Vec<(usize, usize)>,
    /// The numbers of the appended messages that were found.
    numbers: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn splices(&self, number: usize) -> &'a [Splice] {
        let standing = self.log.state().standing.get(number);
        let record = standing.and_then(|standing| self.log.record(standing.seq));
        record.map_or(&[], |record| record.plan.splices())
    }

    /// Queues a splice, and those before it back to the previous one that inserts a new message. If
    /// one of them was queued before, so were those before it.
    fn queue(&mut self, number: usize, splice: usize) {
        let splices = self.splices(number);
        for at in (0..=splice).rev() {
            let begins_another = at < splice && splices.get(at).is_some_and(inserts_new);
            if begins_another || !self.seen.insert((number, at)) {
                return;
            }
            self.queue.push((number, at));
        }
    }

    /// Follows the messages that a splice removed, except those of which it kept a part.
    fn read(&mut self, number: usize, splice: usize) {
        let standing = self.log.state().standing.get(number);
        let swap = standing.and_then(|standing| standing.swaps.get(splice));
        let (Some(swap), Some(planned)) = (swap, self.splices(number).get(splice)) else { return };
        let kept: HashSet<usize> = planned.insert.iter().filter_map(Insert::part_of).collect();
        // Undoing a splice inserts the messages that it removed.
        for (entry, index) in swap.inserted.iter().zip(planned.at.start..) {
            match entry.source {
                _ if kept.contains(&index) => {}
                EntrySource::Arrival(number) => self.numbers.push(number),
                EntrySource::Compaction { standing, splice } => self.queue(standing, splice),
                // The walk runs only on whole logs.
                EntrySource::Dropped(_) => {}
            }
        }
    }
}

fn inserts_new(splice: &Splice) -> bool {
    splice.insert.iter().any(|insert| matches!(insert, Insert::Message { .. }))
}
