//! Everything that was said in a thread and was not taken back.

use std::ops::Range;

use super::{event_log::EventLog, state::Entry, taken::joined};
use crate::message::Message;

impl EventLog {
    /// Returns the messages that came, in order, each with its number among all that ever came:
    /// those that stand, and those that compactions took away. What was dropped from the end is
    /// not among them, nor is what a compaction wrote.
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
        let numbers = self.said().into_iter().flatten();
        numbers.filter_map(|number| Some((number, self.arrival(number)?)))
    }

    /// The numbers of these messages, as ascending ranges that do not adjoin.
    pub(crate) fn said(&self) -> Vec<Range<usize>> {
        let stands = self.state().thread.iter().filter_map(Entry::arrival);
        joined(stands.chain(self.gone()).collect())
    }
}
