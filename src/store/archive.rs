//! `Archive`: storage for the batches of summaries. The functions here decide which entries are
//! visible, in which order, and which match a query.

use std::{cmp::Reverse, collections::BTreeSet, fmt};

use async_trait::async_trait;

use super::store_error::{Result, StoreError};
use crate::{
    message::{BatchId, CompactionId, ThreadId},
    model::for_pointers,
    strategy::ArchiveEntry,
};

/// Stores what compactions archive: in memory, files or a database.
///
/// Entries are written before their compaction is in the log, and are visible only while that
/// compaction is standing ([`EventLog::archived`]). A compaction that failed or was undone leaves
/// invisible entries.
///
/// [`EventLog::archived`]: crate::log::EventLog::archived
///
/// Call [`write`](Self::write) for every compaction, even without entries. After a crash its id may
/// be used again, and the entries of the first compaction with that id must be removed.
///
/// Futures may be dropped at any point. Whether they had an effect is then unknown, but harmless,
/// because entries of a compaction that is not in the log are invisible.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::store::{Archive, memory_archive};
/// use threadfold::strategy::ArchiveEntry;
///
/// let (archive, thread, id) = (memory_archive(), "t1".parse()?, CompactionId(1));
/// let batch = Batch::new(BatchId { compaction: id, index: 0 }, "We read a.txt.");
/// let entry = ArchiveEntry::new(batch);
/// block_on(archive.write(&thread, id, &[entry.clone()]))?;
///
/// let committed = [id].into();
/// assert_eq!(block_on(archive.list(&thread, &[].into()))?, []);
/// assert_eq!(block_on(archive.list(&thread, &committed))?, [entry.clone()]);
/// assert_eq!(block_on(archive.search(&thread, "A.TXT", 10, &committed))?, [entry]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait Archive: fmt::Debug + Send + Sync {
    /// Replaces all entries of this compaction of this thread. Implementations call
    /// [`check_entries`] first.
    ///
    /// # Errors
    ///
    /// - [`StoreError::OtherCompaction`] if the id of an entry names another compaction.
    /// - [`StoreError::Repeated`] if two entries have the same id.
    /// - [`StoreError::Medium`] if they could not be stored.
    async fn write(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        entries: &[ArchiveEntry],
    ) -> Result<()>;

    /// Returns the visible entries of a thread without those that a visible one replaces, ordered
    /// by start time and then by id: the result of [`list_entries`](super::list_entries) for all
    /// entries of the thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if they could not be read.
    async fn list(
        &self,
        thread: &ThreadId,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>>;

    /// Returns at most `limit` visible entries of a thread that contain words of the query, best
    /// first. Entries that [`list`](Self::list) omits because others replace them are included.
    /// This is the result of [`search_entries`](super::search_entries) for all entries of the
    /// thread; an archive with its own search may rank differently.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if they could not be read.
    async fn search(
        &self,
        thread: &ThreadId,
        query: &str,
        limit: usize,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>>;

    /// Removes all entries of this compaction of this thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it could not be removed.
    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<()>;

    /// Removes all entries of this thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it could not be removed.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<()>;
}

/// Checks entries before they are written: each id must name this compaction, and no two ids may be
/// equal.
///
/// ```
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::{store::check_entries, strategy::ArchiveEntry};
///
/// let entry = ArchiveEntry::new(Batch::new(BatchId::default(), "We read a.txt."));
/// let error = check_entries(CompactionId(7), &[entry]).unwrap_err();
/// assert_eq!(error.to_string(), "batch 0.0 is written under compaction 7");
/// ```
///
/// # Errors
///
/// [`StoreError::OtherCompaction`] and [`StoreError::Repeated`].
pub fn check_entries(compaction: CompactionId, entries: &[ArchiveEntry]) -> Result<()> {
    let mut ids: Vec<BatchId> = entries.iter().map(|entry| entry.batch.id).collect();
    if let Some(batch) = ids.iter().copied().find(|id| id.compaction != compaction) {
        return Err(StoreError::OtherCompaction { batch, compaction });
    }
    ids.sort_unstable();
    let mut neighbours = ids.iter().zip(ids.iter().skip(1));
    match neighbours.find(|(one, next)| one == next) {
        Some((&batch, _)) => Err(StoreError::Repeated { batch }),
        None => Ok(()),
    }
}

for_pointers! { Archive {
    async fn write(&self, thread: &ThreadId, compaction: CompactionId, entries: &[ArchiveEntry])
        -> Result<()>;
    async fn list(&self, thread: &ThreadId, visible: &BTreeSet<CompactionId>)
        -> Result<Vec<ArchiveEntry>>;
    async fn search(&self, thread: &ThreadId, query: &str, limit: usize, visible: &BTreeSet<CompactionId>)
        -> Result<Vec<ArchiveEntry>>;
    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<()>;
    async fn delete_thread(&self, thread: &ThreadId) -> Result<()>;
} }

/// The maximum number of words of a query that count.
const MAX_WORDS: usize = 64;

/// Returns the visible entries of a thread, without those that a visible entry replaces, ordered by
/// start time and then by id. An entry is visible if its compaction is among the given ones, which
/// come from [`EventLog::archived`](crate::log::EventLog::archived).
///
/// ```
/// use std::collections::BTreeSet;
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::{store::list_entries, strategy::ArchiveEntry};
///
/// let name = |compaction| BatchId { compaction: CompactionId(compaction), index: 0 };
/// let detail = ArchiveEntry::new(Batch::new(name(1), "We read a.txt."));
/// let mut gist = ArchiveEntry::new(Batch::new(name(2), "We read."));
/// gist.replaces.push(detail.batch.id);
///
/// let entries = [detail.clone(), gist.clone()];
/// let before = BTreeSet::from([CompactionId(1)]);
/// assert_eq!(list_entries(&entries, &before), [detail]);
/// let after = BTreeSet::from([CompactionId(1), CompactionId(2)]);
/// assert_eq!(list_entries(&entries, &after), [gist]);
/// ```
#[must_use]
pub fn list_entries<'a>(
    entries: impl IntoIterator<Item = &'a ArchiveEntry>,
    compactions: &BTreeSet<CompactionId>,
) -> Vec<ArchiveEntry> {
    let mut listed = visible(entries, compactions);
    // No entry replaces itself.
    let replaced = listed
        .iter()
        .flat_map(|entry| entry.replaces.iter().copied().filter(|id| *id != entry.batch.id));
    let replaced: BTreeSet<BatchId> = replaced.collect();
    listed.retain(|entry| !replaced.contains(&entry.batch.id));
    listed.sort_by_key(|entry| (entry.batch.start, entry.batch.id));
    listed.into_iter().cloned().collect()
}

/// Returns at most `limit` visible entries of a thread that contain words of the query: those with
/// the most different words first, and the latest first among equals. Entries are visible as for
/// [`list_entries`], and those that others replace are included.
///
/// Words are separated by white space; punctuation at their ends and case do not count. A word also
/// matches as part of a longer one. Only the first 64 different words count.
///
/// ```
/// use std::collections::BTreeSet;
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::{store::search_entries, strategy::ArchiveEntry};
///
/// let name = |index| BatchId { compaction: CompactionId(1), index };
/// let entries = [
///     ArchiveEntry::new(Batch::new(name(0), "We read a.txt.")),
///     ArchiveEntry::new(Batch::new(name(1), "We read b.txt and wrote it.")),
/// ];
/// let visible = BTreeSet::from([CompactionId(1)]);
/// let found = search_entries(&entries, "Who WROTE b.txt?", 5, &visible);
/// assert_eq!(found, entries[1..]);
/// ```
#[must_use]
pub fn search_entries<'a>(
    entries: impl IntoIterator<Item = &'a ArchiveEntry>,
    query: &str,
    limit: usize,
    compactions: &BTreeSet<CompactionId>,
) -> Vec<ArchiveEntry> {
    let words = search_words(query);
    let mut found: Vec<(usize, &ArchiveEntry)> = Vec::new();
    for entry in visible(entries, compactions) {
        let text = fold_case(&entry.batch.text);
        let count = words.iter().filter(|word| text.contains(word.as_str())).count();
        if count > 0 {
            found.push((count, entry));
        }
    }
    found.sort_by_key(|(words, entry)| Reverse((*words, entry.batch.end, entry.batch.id)));
    found.into_iter().take(limit).map(|(_, entry)| entry.clone()).collect()
}

fn visible<'a>(
    entries: impl IntoIterator<Item = &'a ArchiveEntry>,
    compactions: &BTreeSet<CompactionId>,
) -> Vec<&'a ArchiveEntry> {
    entries.into_iter().filter(|entry| compactions.contains(&entry.batch.id.compaction)).collect()
}

/// Returns the text of an entry in which a database searches for the [words](search_words) of a
/// query. `None` if a text column cannot hold this text; every search must then read the entry.
///
/// ```
/// use threadfold::message::{Batch, BatchId};
/// use threadfold::{store::search_text, strategy::ArchiveEntry};
///
/// let entry = ArchiveEntry::new(Batch::new(BatchId::default(), "We read A.txt."));
/// assert_eq!(search_text(&entry).as_deref(), Some("we read a.txt."));
/// ```
#[must_use]
pub fn search_text(entry: &ArchiveEntry) -> Option<String> {
    let text = &entry.batch.text;
    (!text.contains('\0')).then(|| fold_case(text))
}

/// Returns the words of a query as they are in a [`search_text`]: an entry is found if its text
/// contains any of them.
///
/// ```
/// assert_eq!(threadfold::store::search_words("Who WROTE b.txt?"), ["who", "wrote", "b.txt"]);
/// ```
#[must_use]
pub fn search_words(query: &str) -> Vec<String> {
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
    use crate::message::{Batch, Timestamp};

    fn entry(compaction: u64, index: u32, time: u64, text: &str) -> ArchiveEntry {
        let id = BatchId { compaction: CompactionId(compaction), index };
        let (start, end) = (Timestamp(time), Timestamp(time + 1));
        ArchiveEntry::new(Batch { start, end, ..Batch::new(id, text) })
    }

    fn standing(standing: &[u64]) -> BTreeSet<CompactionId> {
        standing.iter().copied().map(CompactionId).collect()
    }

    fn names(found: &[ArchiveEntry]) -> Vec<(u64, u32)> {
        found.iter().map(|entry| (entry.batch.id.compaction.0, entry.batch.id.index)).collect()
    }

    #[test]
    fn entries_are_listed_by_time_and_then_by_name() {
        let entries =
            [entry(2, 0, 5, ""), entry(1, 1, 5, ""), entry(1, 0, 9, ""), entry(3, 0, 1, "")];
        let listed = list_entries(&entries, &standing(&[1, 2]));
        let [two, one, late, _] = entries;
        assert_eq!(listed, [one, two, late]);
    }

    #[test]
    fn an_entry_is_replaced_only_by_a_visible_one_that_is_not_itself() {
        let detail = entry(1, 0, 0, "detail");
        let mut gist = entry(2, 0, 0, "gist");
        gist.replaces = vec![detail.batch.id, gist.batch.id];
        let entries = [detail.clone(), gist.clone()];
        assert_eq!(list_entries(&entries, &standing(&[1])), entries[..1]);
        assert_eq!(list_entries(&entries, &standing(&[1, 2])), [gist]);
        assert_eq!(search_entries(&entries, "detail", 9, &standing(&[1, 2])), [detail]);
    }

    #[test]
    fn more_words_come_first_and_then_the_latest() {
        let entries = [
            entry(1, 0, 1, "Auth and a test"),
            entry(1, 1, 2, "the AUTH module"),
            entry(1, 2, 3, "authority, authored"),
            entry(1, 3, 4, "nothing of it"),
            entry(2, 0, 9, "auth test, not committed"),
        ];
        let hits = search_entries(&entries, "auth? (Test) AUTH!", 9, &standing(&[1]));
        assert_eq!(names(&hits), [(1, 0), (1, 2), (1, 1)]);
        assert_eq!(names(&search_entries(&entries, "auth test", 1, &standing(&[1]))), [(1, 0)]);
        for blank in ["", " \n "] {
            assert_eq!(search_entries(&entries, blank, 9, &standing(&[1])), []);
        }
    }

    #[test]
    fn case_is_folded_in_any_script_and_signs_can_be_looked_for() {
        let entries =
            [entry(1, 0, 0, "\u{39f}\u{394}\u{39f}\u{3a3} \u{3c3}"), entry(1, 1, 0, "x -> y")];
        let search = |query: &str| names(&search_entries(&entries, query, 9, &standing(&[1])));
        assert_eq!(search("\u{3bf}\u{3b4}\u{3bf}\u{3c3}"), [(1, 0)]);
        assert_eq!(search("->"), [(1, 1)]);
    }

    #[test]
    fn only_so_many_words_are_looked_for() {
        let query: String = (0..100_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(search_words(&query).len(), MAX_WORDS);
    }
}
