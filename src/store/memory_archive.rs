//! An archive in memory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    archive::{Archive, check_entries},
    archive_search::{list_entries, search_entries},
    store_error::StoreError,
};
use crate::{
    message::{CompactionId, ThreadId},
    strategy::ArchiveEntry,
};

/// Returns an archive in memory, for tests and for threads that need not outlive the process.
///
/// Its futures are ready at the first poll. Texts are shared with the caller.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::store::{Archive, memory_archive};
/// use threadfold::{ModelAgent, Session, strategy::FoldBatches, testing::ScriptedModel};
///
/// let told = "The parser is in src/parse.rs, I read. ".repeat(20);
/// let model = ScriptedModel::new([told.as_str(), "A hundred lines.", "They looked for the parser."]);
/// let archive = Arc::new(memory_archive());
/// let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
///     .strategy(Arc::new(FoldBatches { keep_recent: 1, ..FoldBatches::default() }))
///     .archive(archive.clone())
///     .build()?;
/// for text in ["Where is the parser?", "How long is it?", "/compact"] {
///     block_on(async { session.send(text).await })?;
/// }
/// let batches = block_on(archive.list(session.thread_id(), &session.log().archived()))?;
/// assert!(batches[0].batch.text.contains("They looked for the parser."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn memory_archive() -> impl Archive + use<> {
    MemoryArchive::default()
}

#[derive(Debug, Default)]
struct MemoryArchive {
    threads: Mutex<HashMap<ThreadId, Compactions>>,
}

type Compactions = BTreeMap<CompactionId, Vec<ArchiveEntry>>;

impl MemoryArchive {
    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadId, Compactions>> {
        // Every change is a single call of a map, so a panic leaves consistent data.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Archive for MemoryArchive {
    async fn write(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        entries: &[ArchiveEntry],
    ) -> Result<(), StoreError> {
        check_entries(compaction, entries)?;
        if entries.is_empty() {
            return self.delete(thread, compaction).await;
        }
        let mut threads = self.threads();
        threads.entry(thread.clone()).or_default().insert(compaction, entries.to_vec());
        Ok(())
    }

    async fn list(
        &self,
        thread: &ThreadId,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        let threads = self.threads();
        Ok(list_entries(
            threads.get(thread).into_iter().flat_map(BTreeMap::values).flatten(),
            visible,
        ))
    }

    async fn search(
        &self,
        thread: &ThreadId,
        query: &str,
        limit: usize,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        let threads = self.threads();
        let entries = threads.get(thread).into_iter().flat_map(BTreeMap::values).flatten();
        Ok(search_entries(entries, query, limit, visible))
    }

    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<(), StoreError> {
        if let Some(compactions) = self.threads().get_mut(thread) {
            compactions.remove(&compaction);
        }
        Ok(())
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.threads().remove(thread);
        Ok(())
    }
}
