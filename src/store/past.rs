//! Searching the past of a thread by the word index of its store.

use std::{collections::BTreeSet, error::Error, iter};

use super::{
    journal::Journal, store_error::Result, thread_store::ThreadStore, word_index::WordIndex,
};
use crate::{
    log::{Event, EventLog, Taken},
    recall::{self, Recall, RecallError, RecallRequest},
};

/// The number of messages that are indexed in one transaction, during which other writers of the
/// database wait.
const BATCH: usize = 256;

type Found<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

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

    /// The numbers of the messages that a search by the index finds; `None` if it reads the whole log.
    /// For the conformance suite.
    ///
    /// # Errors
    ///
    /// An error of the store or of the search.
    #[doc(hidden)]
    pub async fn found_by_index(&self, query: &str) -> Found<Option<BTreeSet<u64>>> {
        let Some(taken) = self.candidates(query).await? else { return Ok(None) };
        Ok(Some(found(&*self.whole().await?, &taken, query)?))
    }

    /// The numbers of the messages that a search of the whole log finds. For the conformance suite.
    ///
    /// # Errors
    ///
    /// An error of the store or of the search.
    #[doc(hidden)]
    pub async fn found_in_log(&self, query: &str) -> Found<BTreeSet<u64>> {
        let log = self.whole().await?;
        Ok(found(&log, &log.taken()?, query)?)
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

/// The numbers of all messages that a search finds, page after page.
fn found(
    log: &EventLog,
    taken: &[Taken],
    query: &str,
) -> std::result::Result<BTreeSet<u64>, RecallError> {
    let (mut numbers, mut next) = (BTreeSet::new(), Some(0));
    while let Some(offset) = next {
        let request = RecallRequest::Search { query: query.into(), offset };
        let mut step = Recall::of(log).begin_from(taken.to_vec(), &request)?;
        if let Some(page) = iter::repeat_with(&mut step).flatten().next() {
            numbers.extend(page.passages.iter().map(|passage| passage.number));
            next = page.next;
        }
    }
    Ok(numbers)
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
