//! The batches of a thread: what the records of its compactions say about the messages that they
//! removed.

use std::{cmp::Reverse, collections::HashSet};

use super::{error::Result, event_log::EventLog};
use crate::message::{Batch, BatchId};

/// The maximum number of words of a query that count.
const MAX_WORDS: usize = 64;

impl EventLog {
    /// Returns the batches of the standing compactions without those that another one of them
    /// replaces, ordered by the time of their first message and then by id.
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::{EventLog, Plan, message::*};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let name = |number| BatchId { compaction: CompactionId(number), index: 0 };
    /// let detail = Batch::new(name(0), "We read a.txt.");
    /// let gist = Batch { replaces: vec![detail.id], ..Batch::new(name(1), "We read.") };
    /// for (number, batch) in [(0, &detail), (1, &gist)] {
    ///     let (id, plan) = (CompactionId(number), Plan::from_splices(0, vec![]));
    ///     let mut record = CompactionRecord::new(id, CompactionReason::Threshold, "by-hand", plan);
    ///     record.batches = vec![batch.clone()];
    ///     log.append(Timestamp(number), Event::Compacted(Box::new(record)))?;
    /// }
    /// assert_eq!(log.batches()?, [&gist]);
    /// let _ = log.undo(Timestamp(2), CompactionId(1))?;
    /// assert_eq!(log.batches()?, [&detail]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError::NotHeld`](super::LogError::NotHeld) if the log begins at a
    /// [`base`](Self::base).
    pub fn batches(&self) -> Result<Vec<&Batch>> {
        let mut batches = self.all_batches()?;
        // No batch replaces itself.
        let replaced = batches
            .iter()
            .flat_map(|batch| batch.replaces.iter().copied().filter(|id| *id != batch.id));
        let replaced: HashSet<BatchId> = replaced.collect();
        batches.retain(|batch| !replaced.contains(&batch.id));
        batches.sort_by_key(|batch| (batch.start, batch.id));
        Ok(batches)
    }

    /// Returns at most `limit` batches of the standing compactions that contain words of the query:
    /// those with the most different words first, and the latest first among equals. Batches that
    /// others replace are included, so that no detail is lost.
    ///
    /// Words are separated by white space; punctuation at their ends and case do not count. A word
    /// also matches as part of a longer one. Only the first 64 different words count. The messages
    /// themselves are searched by [`recall`](crate::recall).
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::{EventLog, Plan, message::*};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let (id, plan) = (CompactionId(0), Plan::from_splices(0, vec![]));
    /// let mut record = CompactionRecord::new(id, CompactionReason::Threshold, "by-hand", plan);
    /// let texts = [(0, "We read a.txt."), (1, "We read b.txt and wrote it.")];
    /// record.batches = texts.map(|(index, text)| Batch::new(BatchId { compaction: id, index }, text)).into();
    /// log.append(Timestamp(1), Event::Compacted(Box::new(record)))?;
    /// let found = log.search_batches("Who WROTE b.txt?", 5)?;
    /// assert_eq!(found[0].text, "We read b.txt and wrote it.");
    /// assert_eq!(found.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError::NotHeld`](super::LogError::NotHeld) if the log begins at a
    /// [`base`](Self::base).
    pub fn search_batches(&self, query: &str, limit: usize) -> Result<Vec<&Batch>> {
        let words = words(query);
        let mut found: Vec<(usize, &Batch)> = Vec::new();
        for batch in self.all_batches()? {
            let text = fold_case(&batch.text);
            let count = words.iter().filter(|word| text.contains(word.as_str())).count();
            if count > 0 {
                found.push((count, batch));
            }
        }
        found.sort_by_key(|(words, batch)| Reverse((*words, batch.end, batch.id)));
        Ok(found.into_iter().take(limit).map(|(_, batch)| batch).collect())
    }

    fn all_batches(&self) -> Result<Vec<&Batch>> {
        self.state().check_whole()?;
        Ok(self.standing().flat_map(|record| &record.batches).collect())
    }
}

fn words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split_whitespace() {
        let bare = word.trim_matches(|character: char| !character.is_alphanumeric());
        let word = fold_case(if bare.is_empty() { word } else { bare });
        if !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MAX_WORDS {
            break;
        }
    }
    words
}

/// Lower-cases each character on its own: with `str::to_lowercase`, a Greek sigma depends on its
/// position, so a part of a word might not match.
fn fold_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::Plan,
        log::{CompactionRecord, Event},
        message::{CompactionId, CompactionReason, Timestamp},
    };

    fn batch(compaction: u64, index: u32, time: u64, text: &str) -> Batch {
        let id = BatchId { compaction: CompactionId(compaction), index };
        let (start, end) = (Timestamp(time), Timestamp(time + 1));
        Batch { start, end, ..Batch::new(id, text) }
    }

    /// A log with one compaction for each list of batches.
    fn log(compactions: &[&[Batch]]) -> EventLog {
        let mut log = EventLog::new("t".parse().unwrap());
        for batches in compactions {
            let (id, plan) = (log.next_compaction(), Plan::from_splices(0, vec![]));
            let mut record = CompactionRecord::new(id, CompactionReason::Threshold, "t", plan);
            record.batches = batches.to_vec();
            log.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
        }
        log
    }

    fn names(found: &[&Batch]) -> Vec<(u64, u32)> {
        found.iter().map(|batch| (batch.id.compaction.0, batch.id.index)).collect()
    }

    #[test]
    fn batches_are_listed_by_time_and_then_by_name() {
        let log = log(&[
            &[batch(0, 0, 9, ""), batch(0, 1, 5, "")],
            &[batch(1, 0, 5, "")],
            &[batch(2, 0, 100, ""), batch(2, 1, 1, "")],
        ]);
        let listed = names(&log.batches().unwrap());
        assert_eq!(listed, [(2, 1), (0, 1), (1, 0), (0, 0), (2, 0)]);
    }

    #[test]
    fn a_batch_is_replaced_only_by_a_standing_one_that_is_not_itself() {
        let detail = batch(0, 0, 0, "detail");
        let mut gist = batch(1, 0, 0, "gist");
        gist.replaces = vec![detail.id, gist.id];
        let mut log = log(&[std::slice::from_ref(&detail), &[gist.clone()]]);
        assert_eq!(log.batches().unwrap(), [&gist]);
        assert_eq!(log.search_batches("detail", 9).unwrap(), [&detail], "it is found all the same");
        let _ = log.undo(Timestamp(2), CompactionId(1)).unwrap();
        assert_eq!(log.batches().unwrap(), [&detail]);
        assert_eq!(log.search_batches("gist", 9).unwrap(), [] as [&Batch; 0]);
    }

    #[test]
    fn more_words_come_first_and_then_the_latest() {
        let log = log(&[&[
            batch(0, 0, 1, "Auth and a test"),
            batch(0, 1, 2, "the AUTH module"),
            batch(0, 2, 3, "authority, authored"),
            batch(0, 3, 4, "nothing of it"),
        ]]);
        let search = |query: &str, limit| names(&log.search_batches(query, limit).unwrap());
        assert_eq!(search("auth? (Test) AUTH!", 9), [(0, 0), (0, 2), (0, 1)]);
        assert_eq!(search("auth test", 1), [(0, 0)]);
        for blank in ["", " \n "] {
            assert_eq!(search(blank, 9), []);
        }
    }

    #[test]
    fn case_is_folded_in_any_script_and_signs_can_be_looked_for() {
        let log = log(&[&[
            batch(0, 0, 0, "\u{39f}\u{394}\u{39f}\u{3a3} \u{3c3}"),
            batch(0, 1, 0, "x -> y"),
        ]]);
        let search = |query: &str| names(&log.search_batches(query, 9).unwrap());
        assert_eq!(search("\u{3bf}\u{3b4}\u{3bf}\u{3c3}"), [(0, 0)]);
        assert_eq!(search("->"), [(0, 1)]);
    }

    #[test]
    fn only_so_many_words_are_looked_for() {
        let query: String = (0..100_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(words(&query).len(), MAX_WORDS);
    }
}
