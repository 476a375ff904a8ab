//! The batches of a thread: what the records of its compactions say about the messages that they
//! removed.

use std::collections::HashSet;

use super::{error::Result, event_log::EventLog};
use crate::message::{Batch, BatchId};

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
        self.state().check_whole()?;
        let mut batches: Vec<&Batch> = self.standing().flat_map(|record| &record.batches).collect();
        // No batch replaces itself.
        let replaced = batches
            .iter()
            .flat_map(|batch| batch.replaces.iter().copied().filter(|id| *id != batch.id));
        let replaced: HashSet<BatchId> = replaced.collect();
        batches.retain(|batch| !replaced.contains(&batch.id));
        batches.sort_by_key(|batch| (batch.start, batch.id));
        Ok(batches)
    }
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
        let _ = log.undo(Timestamp(2), CompactionId(1)).unwrap();
        assert_eq!(log.batches().unwrap(), [&detail]);
    }
}
