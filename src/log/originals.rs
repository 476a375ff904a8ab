//! The messages that were appended to a thread and not truncated.

use std::ops::Range;

use super::{event_log::EventLog, state::Entry, taken::to_ranges};
use crate::message::{ContentBlock, Message, Role};

impl EventLog {
    /// Returns the appended messages in order, each with its number among all messages ever
    /// appended: those in the thread, and those that compactions removed. Truncated messages and
    /// summaries are not among them, nor those before the log's [`base`](Self::base).
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
    /// let said: Vec<Message> = log.originals().map(|(_, message)| message.clone()).collect();
    /// assert_eq!(said, ["one", "two", "three"].map(Message::user));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn originals(&self) -> impl Iterator<Item = (usize, &Message)> {
        let numbers = self.original_numbers().into_iter().flatten();
        numbers.filter_map(|number| Some((number, self.arrival(number)?)))
    }

    /// Returns the answers in which the provider compacted the thread itself, each with its number
    /// as in [`originals`](Self::originals). The messages before such an answer stay: the provider
    /// ignores them, and another provider reads them.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, Role, log::Event};
    /// use threadfold::message::{Json, Opaque, Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let block = Json::parse(r#"{"type":"compaction","content":"They talked."}"#)?;
    /// let answer = Message::new(Role::Assistant, vec![Opaque::new("anthropic-messages", block).into()]);
    /// for message in [Message::user("hi"), answer] {
    ///     log.append(Timestamp(1), Event::MessageAppended(message))?;
    /// }
    /// assert_eq!(log.provider_compactions().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn provider_compactions(&self) -> impl Iterator<Item = (usize, &Message)> {
        let answers = self.originals().filter(|(_, message)| message.role == Role::Assistant);
        answers.filter(|(_, message)| {
            let mut blocks = message.content.iter();
            blocks.any(|block| matches!(block, ContentBlock::Opaque(it) if it.is_compaction()))
        })
    }

    /// Returns the numbers of these messages as ascending ranges with gaps between them.
    pub(crate) fn original_numbers(&self) -> Vec<Range<usize>> {
        let dropped = &self.state().dropped;
        let live = self.state().thread.iter().filter_map(Entry::arrival);
        let numbers = live.chain(self.removed_numbers());
        // Messages before a base can no longer be truncated.
        let held = to_ranges(numbers.filter(|number| *number >= dropped.messages).collect());
        let mut all = dropped.originals.clone();
        for range in held {
            match all.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => all.push(range),
            }
        }
        all
    }
}
