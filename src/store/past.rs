//! Searching the past of a thread by the word index of its store.

use std::collections::BTreeSet;

use super::{
    journal::Journal, store_error::Result, thread_store::ThreadStore, word_index::WordIndex,
};
use crate::{
    log::{Event, Taken},
    recall,
};

/// The number of messages that are indexed in one transaction, during which other writers of the
/// database wait.
const BATCH: usize = 256;

impl Journal {
    /// Returns the removed messages that may contain words of a query, and their neighbours, whose
    /// words count for the rank too. `None` if the whole log must be read instead: memory holds all
    /// of it, the store has no index, or a redactor changes what can be found.
    pub(crate) async fn candidates(&self, query: &str) -> Result<Option<Vec<Taken>>> {
        let Some(store) = self.store.as_deref().filter(|_| self.log.base() > 0) else {
            return Ok(None);
        };
        let Some(index) = store.word_index().filter(|_| self.redactor().is_none()) else {
            return Ok(None);
        };
        let Ok(words) = recall::query_words(query) else { return Ok(None) };
        if !self.index_past(store, index).await? {
            return Ok(None);
        }
        let thread = self.log.thread_id();
        let found = index.find(thread, &words).await?.into_iter();
        let beside = found.flat_map(|number| number.saturating_sub(1)..=number.saturating_add(1));
        let numbers: Vec<u64> = beside.collect::<BTreeSet<_>>().into_iter().collect();
        Ok(Some(self.log.taken_among(index.read(thread, &numbers).await?)))
    }

    /// Indexes the events that are not in memory. Returns whether the index then has all of them.
    async fn index_past(&self, store: &dyn ThreadStore, index: &dyn WordIndex) -> Result<bool> {
        let (thread, log, base) = (self.log.thread_id(), self.id, self.log.base());
        let Some((mut from, mut number)) = index.indexed(thread, log).await? else {
            return Ok(false);
        };
        if from >= base {
            return Ok(true);
        }
        let mut messages = Vec::new();
        for logged in store.load_from(thread, from).await? {
            if logged.seq >= base {
                break;
            }
            if let Event::MessageAppended(message) = &logged.event {
                messages.push((logged.seq, recall::message_words(message)));
            }
            let to = logged.seq + 1;
            if messages.len() == BATCH || to == base {
                if !index.add(thread, log, from..to, number, &messages).await? {
                    return Ok(false);
                }
                number += messages.len() as u64;
                messages.clear();
                from = to;
            }
        }
        Ok(from == base)
    }
}

#[cfg(test)]
mod tests {
    // `threadfold-sqlite` and `threadfold-postgres` test it on an index.
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn without_a_store_the_log_is_read_whole() {
        let journal = Journal::new(crate::EventLog::new("main".parse().unwrap()));
        assert_eq!(block_on(journal.candidates("lamp")).unwrap(), None);
    }
}
