//! What compactions took out of the thread, as it came.

use std::{collections::HashMap, ops::Range};

use super::{error::LogError, event::Event, event_log::EventLog};
use crate::{
    compact::Splice,
    message::{ContentBlock, Message, Timestamp},
};

/// A message that compactions took out of the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// Its number among all messages that ever came, from 0.
    pub number: u64,
    /// The place in the log of the event that it came with.
    pub seq: u64,
    /// When it came.
    pub at: Timestamp,
    /// The message as it came, without the blocks that still stand.
    pub message: Message,
}

impl EventLog {
    /// Returns the messages that the standing compactions took out of the thread and that do not
    /// stand in it, as they came and in that order: through any number of summaries of summaries,
    /// and those too that went with nothing to stand for them.
    ///
    /// Not among them: what a compaction took that was undone, because it is in the thread again, and
    /// what was dropped from the end, with what summaries there stood for. A message of which a part
    /// stands comes without that part, and is left out where only checkpoints, reminders and reasoning
    /// went.
    ///
    /// The time is that of the thread and of what went. No text is copied.
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
    /// let insert = vec![Insert::Message { message: Message::user("two more") }];
    /// let plan = Plan::from_splices(3, vec![Splice { at: 1..3, insert }]);
    /// let id = log.next_compaction();
    /// let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    /// let numbers: Vec<u64> = log.taken()?.iter().map(|taken| taken.number).collect();
    /// assert_eq!(numbers, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError::Unreadable`] for a message that cannot be read.
    pub fn taken(&self) -> Result<Vec<Taken>, LogError> {
        if let Some(seq) = self.state().unreadable {
            return Err(LogError::Unreadable { seq });
        }
        let gone = joined(self.gone()).into_iter().flatten();
        let parts = self.standing_parts();
        Ok(gone.filter_map(|number| self.taken_at(number, &parts)).collect())
    }

    /// The number among all messages that ever came of the one that came with this event.
    pub(crate) fn arrival_number(&self, seq: u64) -> Option<u64> {
        self.state().arrivals.binary_search(&seq).ok().map(|number| number as u64)
    }

    /// The numbers of the messages that went, wholly or in part, in no order.
    pub(super) fn gone(&self) -> Vec<usize> {
        let mut gone = Vec::new();
        // The first place of the thread that was dropped from the end since.
        let mut limit: Option<usize> = None;
        for standing in self.state().standing.iter().rev() {
            limit = limit.into_iter().chain(standing.cut).min();
            let record = self.record(standing.seq);
            let splices = record.map_or(&[][..], |record| record.plan.splices());
            for (splice, swap) in splices.iter().zip(&standing.swaps) {
                let places = Places::of(splice, swap.at.start);
                for (entry, place) in swap.comes.iter().zip(splice.at.start..) {
                    if limit.is_none_or(|limit| places.after(place) < limit) {
                        gone.extend(entry.arrival());
                    }
                }
            }
            limit = limit.map(|limit| before(splices, limit));
        }
        gone
    }

    /// What stands of each appended message, by its number.
    fn standing_parts(&self) -> HashMap<usize, Vec<&Message>> {
        let mut parts: HashMap<usize, Vec<&Message>> = HashMap::new();
        for entry in &self.state().thread {
            if let Some(number) = entry.arrival() {
                parts.entry(number).or_default().push(&entry.message);
            }
        }
        parts
    }

    fn taken_at(&self, number: usize, parts: &HashMap<usize, Vec<&Message>>) -> Option<Taken> {
        let seq = *self.state().arrivals.get(number)?;
        let event = self.event(seq)?;
        let Event::MessageAppended(message) = &event.event else { return None };
        let message = match parts.get(&number) {
            None => message.clone(),
            Some(parts) => without(message, parts)?,
        };
        Some(Taken { number: number as u64, seq, at: event.at, message })
    }
}

/// Numbers as ascending ranges that do not adjoin.
pub(super) fn joined(mut numbers: Vec<usize>) -> Vec<Range<usize>> {
    numbers.sort_unstable();
    let mut joined: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match joined.last_mut() {
            Some(last) if number < last.end => {}
            Some(last) if number == last.end => last.end += 1,
            Some(_) | None => joined.push(number..number + 1),
        }
    }
    joined
}

/// The message without the blocks that stand, if what is left says anything.
fn without(message: &Message, parts: &[&Message]) -> Option<Message> {
    let mut standing = parts.iter().flat_map(|part| &part.content).peekable();
    // Parts keep the order of the blocks.
    let went = message.content.iter().filter(|block| standing.next_if_eq(block).is_none());
    let content: Vec<ContentBlock> = went.cloned().collect();
    content.iter().any(says).then(|| message.with_content(content))
}

/// Whether a block says something of its own.
fn says(block: &ContentBlock) -> bool {
    let is_mark = matches!(block, ContentBlock::Checkpoint(_) | ContentBlock::SystemReminder(_));
    !is_mark && !block.is_reasoning()
}

/// Maps removed messages to positions of the thread after a splice.
///
/// A removed message counts as part of the next message that stayed or came, so truncation drops the
/// two together.
struct Places {
    start: usize,
    /// The parts that stay: of which message, and how many messages come before it.
    parts: Vec<(usize, usize)>,
}

impl Places {
    fn of(splice: &Splice, start: usize) -> Self {
        let inserts = splice.insert.iter().enumerate();
        let parts = inserts.filter_map(|(index, insert)| Some((insert.part_of()?, index)));
        Self { start, parts: parts.collect() }
    }

    /// The place of a message that went. It does not fall where places rise: parts are in order.
    fn after(&self, place: usize) -> usize {
        let behind = self.parts.partition_point(|(message, _)| *message <= place);
        let last = behind.checked_sub(1).and_then(|last| self.parts.get(last));
        self.start
            + match last {
                None => 0,
                Some((message, index)) if *message == place => *index,
                Some((_, index)) => index + 1,
            }
    }
}

/// Maps a position of the thread after a plan to one before it: the first from which on everything
/// is at or after that position.
fn before(splices: &[Splice], limit: usize) -> usize {
    let (mut went, mut came, mut end) = (0, 0, 0);
    for splice in splices {
        let start = (splice.at.start + came).saturating_sub(went);
        if limit <= start {
            break;
        }
        let places = Places::of(splice, start);
        if let Some(place) = splice.at.clone().find(|place| places.after(*place) >= limit) {
            return place;
        }
        (went, came, end) = (went + splice.at.len(), came + splice.insert.len(), splice.at.end);
    }
    end.max((limit + went).saturating_sub(came))
}
