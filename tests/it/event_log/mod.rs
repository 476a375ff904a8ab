//! The log: replay, storage, undo and hostile lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::single_range_in_vec_init,
    reason = "a test may panic, and compares lists of ranges"
)]

mod files;
mod hostile;
mod live;
mod stored;
mod undone;

use threadfold::{
    Message, Plan,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event, EventLog},
    message::{CompactionReason, Timestamp},
};

/// A log of user messages with these texts.
fn log_of(texts: &[&str]) -> EventLog {
    let mut log = EventLog::new("main".parse().unwrap());
    texts.iter().for_each(|text| say(&mut log, text));
    log
}

fn say(log: &mut EventLog, text: &str) {
    append(log, Event::MessageAppended(Message::user(text)));
}

fn append(log: &mut EventLog, event: Event) {
    let at = Timestamp(1_000 + log.len());
    log.append(at, event).unwrap();
}

fn splice(at: std::ops::Range<usize>, insert: &[&str]) -> Splice {
    let message = |text: &&str| Insert::Message { message: Message::user(*text) };
    Splice { at, insert: insert.iter().map(message).collect() }
}

/// A compaction of these splices under the next number.
fn compacted(log: &EventLog, splices: Vec<Splice>) -> Event {
    let plan = Plan::from_splices(log.replay().len(), splices);
    let id = log.next_compaction();
    let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    Event::Compacted(Box::new(record))
}

fn compact(log: &mut EventLog, splices: Vec<Splice>) {
    let event = compacted(log, splices);
    append(log, event);
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.content[0].as_text().unwrap().as_str()).collect()
}
