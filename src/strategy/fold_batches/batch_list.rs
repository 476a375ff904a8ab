//! The batches so far, and the archive entries of the new ones.

use crate::{
    message::{Batch, BatchId, ContentBlock, Timestamp},
    strategy::{brief::Brief, contract::ArchiveEntry, snapshot::Snapshot},
};

/// The batches so far, in order, and the archive entries of the new ones.
#[derive(Debug, Default)]
pub(super) struct BatchList {
    next: BatchId,
    batches: Vec<Batch>,
    archive: Vec<ArchiveEntry>,
}

impl BatchList {
    /// Returns the empty list of an attempt. Its ids follow those of the batches in the thread:
    /// without a log, all compactions have the same number.
    pub(super) fn new(thread: &Snapshot, brief: &Brief) -> Self {
        let compaction = brief.compaction.unwrap_or_default();
        let blocks = thread.messages().iter().flat_map(|message| &message.content);
        let batches = blocks.filter_map(|block| {
            if let ContentBlock::Summary(summary) = block { Some(&summary.batches) } else { None }
        });
        let ids = batches.flatten().map(|batch| batch.id);
        let ids = ids.filter(|id| id.compaction == compaction);
        let index = ids.map(|id| id.index.saturating_add(1)).max().unwrap_or_default();
        Self { next: BatchId { compaction, index }, ..Self::default() }
    }

    /// All batches, in order.
    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Adds a batch of an earlier compaction.
    pub(super) fn keep(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    /// Returns a new batch with the next id and without text.
    pub(super) fn batch(
        &mut self,
        depth: u32,
        (start, end): (Timestamp, Timestamp),
        messages: usize,
    ) -> Batch {
        let id = self.next;
        self.next.index = id.index.saturating_add(1);
        Batch { depth, start, end, messages, ..Batch::new(id, "") }
    }

    /// Adds a new batch at the end, or replaces the first `replaces` batches by it.
    pub(super) fn add(&mut self, batch: Batch, replaces: usize) {
        let replaced: Vec<Batch> = self.batches.drain(..replaces.min(self.batches.len())).collect();
        let ids = replaced.iter().map(|source| source.id).collect();
        self.archive.push(ArchiveEntry { replaces: ids, ..ArchiveEntry::new(batch.clone()) });
        let at = if replaces > 0 { 0 } else { self.batches.len() };
        self.batches.insert(at, batch);
    }

    /// Returns the batches and the archive entries.
    pub(super) fn close(self) -> (Vec<Batch>, Vec<ArchiveEntry>) {
        (self.batches, self.archive)
    }
}
