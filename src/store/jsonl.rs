//! A store of files: one a thread, one line an event.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    file::{Known, LogFile, failed},
    plain_file,
    thread_store::{Loaded, StoreError, ThreadStore, check_length, check_log, check_places},
};
use crate::{
    log::{EventLog, LogId, LoggedEvent},
    message::ThreadId,
};

/// How many threads a store remembers the lengths of.
const MAX_KNOWN: usize = 4_096;

/// A store that keeps each thread as `ID.jsonl` in a folder: a header, then one line an event.
///
/// - An append is one write and one sync, whatever the length of the log: the store remembers how
///   far it knows a file, and looks only at what others have written since.
/// - Writers lock the file, those of other processes too, so their events never mix.
/// - A crash at any byte leaves the beginning of the log. What is torn behind it is reported by
///   [`load`](ThreadStore::load) and cut off by the next append.
/// - On Unix the files it makes are for their owner alone (600), and so is the folder, if the store
///   makes it (700). What is there already keeps its permissions. What is in the files is not
///   encrypted.
/// - A symbolic link in the folder is never followed: the thread of its name is an error
///   ([`StoreError::Link`]), and [`list`](ThreadStore::list) passes over it, as over everything else
///   that is no plain file. The path of the folder itself may lead over links.
/// - A deleted thread leaves an empty file, because another writer may be waiting for its lock.
///
/// The folder must be on a file system with locks. Where it does not tell upper case from lower, a
/// thread whose id differs from another's in nothing else is refused
/// ([`StoreError::OtherThread`]).
///
/// # Blocking
///
/// The futures call the file system, wait for locks, and are done when they are first asked: they
/// block the thread that asks. In a runtime, hand them to where it blocks, such as
/// `spawn_blocking(move || block_on(store.append(&thread, len, &events)))` with the `block_on` of
/// `futures`. A future that was dropped before it was asked has done nothing.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
/// use threadfold::store::{JsonlStore, ThreadStore};
///
/// let folder = std::env::temp_dir().join(format!("threadfold-{}", std::process::id()));
/// let (store, mut log) = (JsonlStore::open(&folder)?, EventLog::new("t1".parse()?));
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// block_on(store.append(log.thread_id(), 0, log.events()))?;
///
/// let elsewhere = JsonlStore::open(&folder)?;
/// assert_eq!(block_on(elsewhere.load(log.thread_id()))?.log, log);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JsonlStore {
    folder: PathBuf,
    options: JsonlOptions,
    known: Mutex<HashMap<ThreadId, Known>>,
    bytes_read: AtomicU64,
}

/// How a [`JsonlStore`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonlOptions {
    /// When what was written is forced to the disk.
    pub fsync: Fsync,
}

/// When what was written is forced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fsync {
    /// Once an append, before it is done. Nothing is lost that was appended.
    #[default]
    Always,
    /// When the system gets to it. A crash of the process loses nothing, one of the machine may
    /// lose the last appends.
    Never,
}

impl JsonlStore {
    /// Opens a store in this folder, which is made if it is not there.
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
    /// [`StoreError::Medium`] if it cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::with_options(folder, JsonlOptions::default())
    }

    /// As [`open`](Self::open), with these options.
    ///
    /// ```
    /// use threadfold::store::{Fsync, JsonlOptions, JsonlStore};
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-{}-o", std::process::id()));
    /// let store = JsonlStore::with_options(&folder, JsonlOptions { fsync: Fsync::Never })?;
    /// assert_eq!(store.folder(), folder);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn with_options(
        folder: impl Into<PathBuf>,
        options: JsonlOptions,
    ) -> Result<Self, StoreError> {
        let folder = folder.into();
        plain_file::create_folder(&folder).map_err(|error| failed(&folder, error))?;
        Ok(Self { folder, options, known: Mutex::default(), bytes_read: AtomicU64::default() })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many bytes the store has read from its files so far, for whoever wants to see what
    /// appending costs.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn path(&self, thread: &ThreadId) -> PathBuf {
        self.folder.join(format!("{thread}.jsonl"))
    }

    fn syncs(&self) -> bool {
        match self.options.fsync {
            Fsync::Always => true,
            Fsync::Never => false,
        }
    }

    /// Appends, if what is known of the log passes the check. A new log gets this id.
    fn write(
        &self,
        thread: &ThreadId,
        id: Option<LogId>,
        events: &[LoggedEvent],
        check: impl FnOnce(&Known) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let path = self.path(thread);
        // An append that will store nothing makes no file.
        let create = events.first().is_some_and(|event| event.seq == 0);
        let file = LogFile::to_write(thread, &path, &self.bytes_read, create)?;
        let Some(mut file) = file else {
            return check(&Known::default());
        };
        // Looked up under the lock: what another thread of this process appended is known, too.
        let before = self.known().remove(thread);
        let mut known = file.known(before)?;
        let appended =
            check(&known).and_then(|()| file.append(&mut known, id, events, self.syncs()));
        self.remember(thread, known);
        appended
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ThreadId, Known>> {
        // What is remembered is compared with the file, so nothing that a holder left can harm.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, thread: &ThreadId, known: Known) {
        let mut all = self.known();
        // What is forgotten costs one reading of the file.
        if all.len() >= MAX_KNOWN && !all.contains_key(thread) {
            all.clear();
        }
        all.insert(thread.clone(), known);
    }
}

#[async_trait]
impl ThreadStore for JsonlStore {
    async fn append(
        &self,
        thread: &ThreadId,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        check_places(expected_len, events)?;
        self.write(thread, None, events, |known| check_length(expected_len, known.events))
    }

    async fn append_to(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        check_places(expected_len, events)?;
        self.write(thread, log, events, |known| {
            check_log(thread, (log, expected_len), (known.id, known.events))
        })
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let path = self.path(thread);
        let Some(file) = LogFile::to_read(thread, &path, &self.bytes_read)? else {
            return Ok(Loaded::new(EventLog::new(thread.clone())));
        };
        let (loaded, known) = file.load()?;
        self.remember(thread, known);
        Ok(loaded)
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        let failed = |error| failed(&self.folder, error);
        let mut threads = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.parse().ok());
            let Some(id) = id else { continue };
            // Of the entry itself, not of what a link leads to.
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() && metadata.len() > 0 => threads.push(id),
                Ok(_) => {}
                // Gone since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        threads.sort();
        Ok(threads)
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let path = self.path(thread);
        if let Some(file) = LogFile::to_write(thread, &path, &self.bytes_read, false)? {
            self.known().remove(thread);
            file.clear(self.syncs())?;
        }
        Ok(())
    }
}
