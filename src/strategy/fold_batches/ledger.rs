//! The batches so far, and what goes to the archive.

use crate::{
    message::{Batch, BatchId, ContentBlock, Timestamp},
    strategy::{brief::Brief, contract::ArchiveEntry, snapshot::Snapshot},
};

/// The batches so far, in order, and those of them that are new.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    next: BatchId,
    batches: Vec<Batch>,
    archive: Vec<ArchiveEntry>,
}

impl Ledger {
    /// Returns the ledger of an attempt. Its first id is one that no batch in the thread has: where
    /// no log numbers compactions, all of them have the same number.
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

    /// Takes over a batch that an earlier compaction made.
    pub(super) fn keep(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    /// Returns a new batch without text, under the next id.
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

    /// Adds a new batch behind the others, or in the place of the first so many.
    pub(super) fn add(&mut self, batch: Batch, replaces: usize) {
        let replaced: Vec<Batch> = self.batches.drain(..replaces.min(self.batches.len())).collect();
        let ids = replaced.iter().map(|source| source.id).collect();
        self.archive.push(ArchiveEntry { replaces: ids, ..ArchiveEntry::new(batch.clone()) });
        let at = if replaces > 0 { 0 } else { self.batches.len() };
        self.batches.insert(at, batch);
    }

    /// The batches and the archive's.
    pub(super) fn close(self) -> (Vec<Batch>, Vec<ArchiveEntry>) {
        (self.batches, self.archive)
    }
}
