//! The conformance suite for archives.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use threadfold::{
    message::{Batch, BatchId, CompactionId, Timestamp},
    store::{Archive, StoreError},
    strategy::ArchiveEntry,
};

use super::{
    cases::{Step, cases, outcome},
    law::Result,
};

/// Tests an archive: a write replaces the earlier entries of its compaction; only entries of
/// visible compactions are returned; entries that a visible entry replaces are found by searches
/// but not listed; threads are independent; lists and searches are ordered and limited.
///
/// `make` is called once for each case and must return an empty archive.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::store::memory_archive;
/// use threadfold_testing::conformance;
///
/// block_on(conformance::archive(|| Box::new(memory_archive())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn archive(mut make: impl FnMut() -> Box<dyn Archive>) -> Result<()> {
    for case in cases(CASES)? {
        let (archive, mut written) = (make(), Vec::new());
        for step in case {
            let found = run(&*archive, &step, &mut written).await;
            step.check(found)?;
        }
    }
    Ok(())
}

const CASES: &str = include_str!("../../testdata/conformance/archive.jsonl");

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// Writes these entries under this compaction.
    Write(CompactionId, Vec<Entry>),
    /// Lists the entries of these compactions.
    List(BTreeSet<CompactionId>),
    /// Searches for a query, with a limit, in the entries of these compactions.
    Search(String, u64, BTreeSet<CompactionId>),
    /// Deletes the entries of this compaction.
    Delete(CompactionId),
    DeleteThread,
}

/// An entry of a case: the numbers of its id, its time and its text, or all its fields.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Short(CompactionId, u32, u64, String),
    Whole(ArchiveEntry),
}

async fn run(
    archive: &dyn Archive,
    Step { thread, operation, .. }: &Step<Operation>,
    written: &mut Vec<ArchiveEntry>,
) -> Value {
    match operation {
        Operation::Write(compaction, entries) => {
            let entries: Vec<ArchiveEntry> = entries.iter().map(entry).collect();
            let outcome = outcome(archive.write(thread, *compaction, &entries).await);
            written.extend(entries);
            outcome
        }
        Operation::List(visible) => names(archive.list(thread, visible).await, written),
        Operation::Search(query, limit, visible) => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            names(archive.search(thread, query, limit, visible).await, written)
        }
        Operation::Delete(compaction) => outcome(archive.delete(thread, *compaction).await),
        Operation::DeleteThread => outcome(archive.delete_thread(thread).await),
    }
}

/// Returns the ids of the entries that were found. One that differs from the written one is shown
/// whole.
fn names(found: Result<Vec<ArchiveEntry>, StoreError>, written: &[ArchiveEntry]) -> Value {
    let name = |entry: &ArchiveEntry| match written.contains(entry) {
        true => entry.batch.id.to_string(),
        false => format!("{entry:?}"),
    };
    outcome(found.map(|entries| entries.iter().map(name).collect::<Vec<_>>()))
}

fn entry(entry: &Entry) -> ArchiveEntry {
    match entry {
        Entry::Whole(entry) => entry.clone(),
        Entry::Short(compaction, index, time, text) => {
            let id = BatchId { compaction: *compaction, index: *index };
            let (start, end) = (Timestamp(*time), Timestamp(time + 1));
            ArchiveEntry::new(Batch { start, end, ..Batch::new(id, text.as_str()) })
        }
    }
}
