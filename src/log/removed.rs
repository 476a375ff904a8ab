//! The messages that compactions removed from the thread, as they were appended, and those that the
//! summaries of one compaction replace.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::{error::Result, event::Event, event_log::EventLog, state::EntrySource};
use crate::{
    compact::{Insert, Splice},
    message::{CompactionId, ContentBlock, Message, Timestamp},
};

/// A message that compactions removed from the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Its number among all messages ever appended, from 0.
    pub(crate) number: u64,
    /// When it was appended.
    pub(crate) at: Timestamp,
    /// The message as appended, without the blocks that are still in the thread.
    pub(crate) message: Message,
}

impl Removed {
    /// Whether a block is more than a checkpoint, a reminder or reasoning.
    pub(crate) fn is_content(block: &ContentBlock) -> bool {
        let is_mark =
            matches!(block, ContentBlock::Checkpoint(_) | ContentBlock::SystemReminder(_));
        !is_mark && !block.is_reasoning()
    }
}

impl EventLog {
    /// Returns the messages that standing compactions removed from the thread, as they were
    /// appended and in that order: through any number of summaries of summaries, and also messages
    /// that no summary replaces.
    ///
    /// Not included are messages that an undo restored, truncated messages, and messages whose
    /// summary was truncated. A message that is partly in the thread comes without that part, and
    /// is omitted if only checkpoints, reminders and reasoning of it were removed. If its rest was
    /// truncated after a part was summarised, it comes with the truncated rest.
    ///
    /// The time is linear in the thread and the removed messages. No text is copied.
    ///
    /// # Errors
    ///
    /// [`LogError::NotHeld`] if the log is not whole.
    pub(crate) fn removed(&self) -> Result<Vec<Removed>> {
        self.state().check_whole()?;
        let numbers = to_ranges(self.removed_numbers()).into_iter().flatten();
        let parts = self.kept_parts();
        Ok(numbers.filter_map(|number| self.removed_at(number, &parts)).collect())
    }

    /// Returns how many messages were appended before this event.
    pub(crate) fn arrivals_before(&self, seq: u64) -> u64 {
        self.state().arrivals.partition_point(|arrival| *arrival < seq) as u64
    }

    /// Returns the numbers of the messages that were removed, wholly or in part, in no order.
    pub(super) fn removed_numbers(&self) -> Vec<usize> {
        let mut numbers = Vec::new();
        // The length to which the thread after the compaction was truncated later, if it was.
        let mut limit: Option<usize> = None;
        for standing in self.state().standing.iter().rev() {
            limit = limit.into_iter().chain(standing.cut).min();
            let record = self.record(standing.seq);
            let splices = record.map_or(&[][..], |record| record.plan.splices());
            for (splice, swap) in splices.iter().zip(&standing.swaps) {
                let positions = SplicePositions::of(splice, swap.at.start);
                // Undoing a splice inserts the messages that it removed.
                for (entry, index) in swap.inserted.iter().zip(splice.at.start..) {
                    if limit.is_none_or(|limit| positions.after(index) < limit) {
                        numbers.extend(entry.arrival());
                    }
                }
            }
            limit = limit.map(|limit| position_before(splices, limit));
        }
        numbers
    }

    /// Returns the parts of each appended message that are in the thread, by message number.
    fn kept_parts(&self) -> HashMap<usize, Vec<&Message>> {
        let mut parts: HashMap<usize, Vec<&Message>> = HashMap::new();
        for entry in &self.state().thread {
            if let Some(number) = entry.arrival() {
                parts.entry(number).or_default().push(&entry.message);
            }
        }
        parts
    }

    fn removed_at(&self, number: usize, parts: &HashMap<usize, Vec<&Message>>) -> Option<Removed> {
        let seq = self.state().arrival(number)?;
        let event = self.event(seq)?;
        let Event::MessageAppended(message) = &event.event else { return None };
        let message = match parts.get(&number) {
            None => message.clone(),
            Some(parts) => without_kept_blocks(message, parts)?,
        };
        Some(Removed { number: number as u64, at: event.at, message })
    }
}

/// Returns numbers, which may repeat, as ascending ranges with gaps between them.
pub(super) fn to_ranges(mut numbers: Vec<usize>) -> Vec<Range<usize>> {
    numbers.sort_unstable();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if number < last.end => {}
            Some(last) if number == last.end => last.end += 1,
            Some(_) | None => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// Returns a removed message without the blocks that are still in the thread; `None` if no content
/// is left.
fn without_kept_blocks(message: &Message, parts: &[&Message]) -> Option<Message> {
    // One pass is enough, because parts keep the order of the blocks.
    let mut kept = parts.iter().flat_map(|part| &part.content).peekable();
    let removed = message.content.iter().filter(|block| kept.next_if_eq(block).is_none());
    let content: Vec<ContentBlock> = removed.cloned().collect();
    content.iter().any(Removed::is_content).then(|| message.with_content(content))
}

/// The positions of removed messages in the thread after a splice.
///
/// A removed message has the position of the summary that replaces it, so a truncation drops the
/// two together. Without a summary, it has the position of its last kept part, or else of the next
/// message.
struct SplicePositions {
    start: usize,
    /// The number of inserted messages and kept parts.
    inserts: usize,
    /// The kept parts: the index of the message, and the index among the inserts.
    parts: Vec<(usize, usize)>,
}

impl SplicePositions {
    fn of(splice: &Splice, start: usize) -> Self {
        let inserts = splice.insert.iter().enumerate();
        let parts = inserts.filter_map(|(index, insert)| Some((insert.part_of()?, index)));
        Self { start, inserts: splice.insert.len(), parts: parts.collect() }
    }

    /// Returns the position of a removed message in the thread after the splice. A later message
    /// never has an earlier position, because parts are in order.
    fn after(&self, removed: usize) -> usize {
        let (before, rest) =
            self.parts.split_at(self.parts.partition_point(|(message, _)| *message < removed));
        let (own, later) = rest.split_at(rest.partition_point(|(message, _)| *message == removed));
        // The first insert that is neither a part of an earlier message nor of this one.
        let mut next = before.last().map_or(0, |(_, index)| index + 1);
        next += own.iter().zip(next..).take_while(|((_, index), free)| index == free).count();
        let is_summary =
            next < self.inserts && later.first().is_none_or(|(_, index)| next < *index);
        match own.last() {
            Some((_, last)) if !is_summary => self.start + last,
            Some(_) | None => self.start + next,
        }
    }
}

/// Returns the first position of the thread before a plan from which on every message has a
/// position of at least `limit` in the thread after it.
fn position_before(splices: &[Splice], limit: usize) -> usize {
    let (mut removed, mut inserted, mut end) = (0, 0, 0);
    for splice in splices {
        let start = (splice.at.start + inserted).saturating_sub(removed);
        if limit <= start {
            break;
        }
        let positions = SplicePositions::of(splice, start);
        if let Some(index) = splice.at.clone().find(|index| positions.after(*index) >= limit) {
            return index;
        }
        removed += splice.at.len();
        inserted += splice.insert.len();
        end = splice.at.end;
    }
    end.max((limit + removed).saturating_sub(inserted))
}

impl EventLog {
    /// Returns the `seq`s of the messages that the new messages of a compaction replace, directly
    /// or through earlier compactions, as ascending ranges with gaps between them. `None` if no
    /// such compaction is standing, or the log is not whole.
    ///
    /// A new message replaces the messages that its own splice removed, and those that the splices
    /// since the previous new message removed. Messages that partly stay are not covered, and
    /// neither are those removed after the last new message.
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

    /// Follows the messages that a splice removed, except those that it kept in part.
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
