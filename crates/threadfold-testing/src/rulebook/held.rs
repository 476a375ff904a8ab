//! Threads that the server holds.

use std::collections::HashMap;

use serde_json::Value;

/// The requests and answers that later requests can continue, by the id of the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    threads: HashMap<String, Thread>,
    /// Items of stored answers, by their ids.
    items: HashMap<String, Value>,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The fields of the request, with the answer after its messages.
    pub(super) body: Value,
    /// When it is deleted, in milliseconds.
    pub(super) until: u64,
    /// A later request continued it.
    pub(super) is_continued: bool,
}

impl Held {
    /// The thread after an answer, if the server still has it.
    pub(super) fn find(&mut self, id: &str, now: u64) -> Option<&mut Thread> {
        self.threads.retain(|_, thread| thread.until > now);
        self.threads.get_mut(id)
    }

    pub(super) fn keep(&mut self, id: &str, body: Value, until: u64) {
        self.threads.insert(id.to_owned(), Thread { body, until, is_continued: false });
    }

    pub(super) fn item(&self, id: &str) -> Option<&Value> {
        self.items.get(id)
    }

    pub(super) fn keep_item(&mut self, id: &str, item: Value) {
        self.items.insert(id.to_owned(), item);
    }
}
