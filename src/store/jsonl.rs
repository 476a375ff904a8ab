//! A store of files: one file for each thread, one line for each event.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;

use super::{
    file::{self, LogFile, LogPath, LogPrefix, OpenError, failed},
    store_error::Result,
    thread_store::{Expected, ThreadStore, check_order},
};
use crate::{
    log::{EventLog, Loaded, LogId, LoggedEvent},
    message::ThreadId,
    sync::{Lock, MutexGuard},
};

/// The maximum number of threads whose prefix a store remembers.
const MAX_PREFIXES: usize = 4_096;

/// A store that keeps each thread as `ID.jsonl` in a folder: a header, then one line for each
/// event.
///
/// - An append is one write and one sync, whatever the length of the log: the store remembers the
///   length of each file, and reads only what others have written since.
/// - Writers lock the file, also across processes, so their events never mix.
/// - A crash at any byte leaves the beginning of the log. [`load`](ThreadStore::load) reports a
///   torn line after it, and the next append cuts it off.
/// - On Unix, new files have mode 600 and a new folder has mode 700. Existing ones keep their
///   permissions. The content is not encrypted.
/// - Symbolic links in the folder are never followed: for the thread of that name, every call
///   returns [`StoreError::Link`](super::StoreError::Link), and [`list`](ThreadStore::list) skips
///   links and everything else that is not a regular file. The path of the folder itself may
///   contain links.
/// - The base of a long thread is kept as `ID.base`, so that the thread opens fast. It can be
///   removed at any time: the whole log is then read.
/// - A deleted thread leaves an empty file, because another writer may be waiting for its lock.
///
/// The folder must be on a file system with locks. If the file system ignores case, a thread whose
/// id differs from another's only in case is refused
/// ([`StoreError::OtherThread`](super::StoreError::OtherThread)).
///
/// # Blocking
///
/// The futures call the file system, wait for locks, and finish at the first poll, so they block
/// the thread that polls them. In a runtime, run them where blocking is allowed:
/// `spawn_blocking(move || block_on(store.append(&thread, id, len, &events)))` with the `block_on`
/// of `futures`. A future that is dropped before its first poll has no effect.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
/// use threadfold::store::{JsonlStore, ThreadStore};
///
/// let folder = std::env::temp_dir().join(format!("threadfold-{}", std::process::id()));
/// let (store, mut log) = (JsonlStore::open(&folder)?, EventLog::new("t1".parse()?));
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// block_on(store.append(log.thread_id(), None, 0, log.events()))?;
///
/// let elsewhere = JsonlStore::open(&folder)?;
/// assert_eq!(block_on(elsewhere.load(log.thread_id()))?.log, log);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JsonlStore {
    folder: PathBuf,
    /// Whether each append is on the disk before it returns.
    syncs: bool,
    prefixes: Lock<HashMap<ThreadId, LogPrefix>>,
    bytes_read: AtomicU64,
}

impl JsonlStore {
    /// Opens a store in this folder, which is created if it is missing.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::store::{JsonlStore, ThreadStore};
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-{}-n", std::process::id()));
    /// let store = JsonlStore::open(&folder)?;
    /// assert!(folder.is_dir());
    /// assert_eq!(block_on(store.list())?, []);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`](super::StoreError::Medium) if it cannot be created, for example
    /// because the path is that of a file.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        file::create_folder(&folder).map_err(|error| failed(&folder, error))?;
        let (prefixes, bytes_read) = (Lock::default(), AtomicU64::default());
        Ok(Self { folder, syncs: true, prefixes, bytes_read })
    }

    /// Returns the store without a sync after each append: the operating system decides when events
    /// are written to disk. A crash of the process loses no event, but a crash of the machine may
    /// lose the last appends. By default each append is on disk before it returns.
    ///
    /// ```
    /// use threadfold::store::JsonlStore;
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-{}-o", std::process::id()));
    /// let store = JsonlStore::open(&folder)?.without_sync();
    /// assert_eq!(store.folder(), folder);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without_sync(self) -> Self {
        Self { syncs: false, ..self }
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of bytes that the store has read from its files so far, as a measure of
    /// the cost of appends.
    #[doc(hidden)]
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn at<'a>(&'a self, thread: &'a ThreadId) -> LogPath<'a> {
        let path = self.folder.join(format!("{thread}.jsonl"));
        LogPath { thread, path, bytes_read: &self.bytes_read }
    }

    fn base_path(&self, thread: &ThreadId) -> PathBuf {
        self.folder.join(format!("{thread}.base"))
    }

    /// Reads a base, the prefix of its log file, and a reader at its facts, which follow in the
    /// same file and are not read here. `None` if there is no readable base.
    fn read_base(&self, thread: &ThreadId) -> Option<(LogPrefix, String, BufReader<File>)> {
        let file = file::open(&self.base_path(thread), false).ok()??;
        let (mut file, mut prefix, mut base) = (BufReader::new(file), String::new(), String::new());
        let read = file.read_line(&mut prefix).ok()? + file.read_line(&mut base).ok()?;
        self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Some((serde_json::from_str(&prefix).ok()?, base.trim_end().to_owned(), file))
    }

    fn write_base(&self, thread: &ThreadId, lines: [&str; 3]) -> io::Result<()> {
        // Without a sync: a base is compared with its log when it is read.
        match file::replace(&self.base_path(thread), lines.join("\n").as_bytes(), false) {
            // Links are never followed, so no base is written.
            Ok(()) | Err(OpenError::Link) => Ok(()),
            Err(OpenError::Io(error)) => Err(error),
        }
    }

    /// Appends to the expected log. A new log gets its id.
    fn write(&self, thread: &ThreadId, expected: Expected, events: &[LoggedEvent]) -> Result<()> {
        check_order(expected.len, events)?;
        // An append that cannot be the first one does not create a file.
        let create = events.first().is_some_and(|event| event.seq == 0);
        let Some(mut file) = LogFile::to_write(self.at(thread), create)? else {
            return expected.check(thread, None, 0);
        };
        // Look it up under the file lock, after other threads of this process have updated it.
        let before = self.prefixes().remove(thread);
        let mut prefix = file.prefix(before)?;
        let mut appended = expected.check(thread, prefix.id, prefix.events);
        if appended.is_ok() {
            appended = file.append(&mut prefix, expected.id, events, self.syncs);
        }
        self.remember(thread, prefix);
        appended
    }

    fn prefixes(&self) -> MutexGuard<'_, HashMap<ThreadId, LogPrefix>> {
        // A prefix is compared with the file before it is used, so one from before a panic is
        // harmless.
        self.prefixes.lock()
    }

    fn remember(&self, thread: &ThreadId, prefix: LogPrefix) {
        let mut all = self.prefixes();
        // Bound the memory: a forgotten prefix costs one read of the whole file.
        if all.len() >= MAX_PREFIXES && !all.contains_key(thread) {
            all.clear();
        }
        all.insert(thread.clone(), prefix);
    }
}

#[async_trait]
impl ThreadStore for JsonlStore {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        self.write(thread, Expected { id: log, len: expected_len }, events)
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded> {
        let Some(file) = LogFile::to_read(self.at(thread))? else {
            return Ok(Loaded::new(EventLog::new(thread.clone())));
        };
        let (loaded, prefix) = file.load()?;
        self.remember(thread, prefix);
        Ok(loaded)
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>> {
        let before = self.prefixes().remove(thread).filter(|prefix| prefix.events <= seq);
        let file = LogFile::to_read(self.at(thread))?;
        if let (Some(file), Some(before)) = (file, before)
            && let Some((events, prefix)) = file.events_after(before)?
        {
            self.remember(thread, prefix);
            return Ok(events.into_iter().filter(|event| event.seq >= seq).collect());
        }
        Ok(self.load(thread).await?.log.since(seq).to_vec())
    }

    async fn save_base(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
        base: &str,
        facts: &str,
    ) -> Result<()> {
        let Some(file) = LogFile::to_write(self.at(thread), false)? else { return Ok(()) };
        let prefix = file.prefix(self.prefixes().remove(thread))?;
        // The stored base begins with the length of the log file, so only a base of the whole file
        // can be kept.
        if prefix.events == seq && prefix.id == Some(log) {
            serde_json::to_string(&prefix)
                .map_err(io::Error::from)
                .and_then(|prefix| self.write_base(thread, [&prefix, base, facts]))
                .map_err(|error| failed(&self.base_path(thread), error))?;
        }
        self.remember(thread, prefix);
        Ok(())
    }

    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>> {
        // The lock of the log file also protects the base.
        let Some(file) = LogFile::to_read(self.at(thread))? else { return Ok(None) };
        let Some((prefix, base, _)) = self.read_base(thread) else { return Ok(None) };
        if !file.begins_with(&prefix)? {
            return Ok(None);
        }
        // The events after the base are read from here.
        self.remember(thread, prefix);
        Ok(Some(base))
    }

    async fn load_facts(&self, thread: &ThreadId, log: LogId, seq: u64) -> Result<Option<String>> {
        // The lock of the log file also protects the base.
        let Some(_file) = LogFile::to_read(self.at(thread))? else { return Ok(None) };
        let Some((prefix, _, mut file)) = self.read_base(thread) else { return Ok(None) };
        if prefix.id != Some(log) || prefix.events != seq {
            return Ok(None);
        }
        let mut facts = String::new();
        Ok(file.read_to_string(&mut facts).is_ok().then_some(facts))
    }

    async fn list(&self) -> Result<Vec<ThreadId>> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| failed(&self.folder, error))? {
            let entry = entry.map_err(|error| failed(&self.folder, error))?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.parse().ok());
            let Some(id) = id else { continue };
            // `DirEntry::metadata` does not follow links.
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() && metadata.len() > 0 => threads.push(id),
                Ok(_) => {}
                // The file was removed after the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&self.folder, error)),
            }
        }
        threads.sort();
        Ok(threads)
    }

    async fn delete(&self, thread: &ThreadId) -> Result<()> {
        if let Some(file) = LogFile::to_write(self.at(thread), false)? {
            self.prefixes().remove(thread);
            let base = self.base_path(thread);
            if let Err(error) = fs::remove_file(&base)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(failed(&base, error));
            }
            file.clear(self.syncs)?;
        }
        Ok(())
    }
}
