//! One log in one file: reading it, and appending to it so that a crash at any byte leaves the
//! beginning of a log.
//!
//! Readers hold a shared lock on the file and writers an exclusive one, so a reader sees a
//! half-written line only if its writer died. The next write removes such a line, or the rest of a
//! failed write.
//!
//! No link is followed, and new files are accessible to their owner only. The metadata of a path
//! are read before it is opened, without following a link, and compared with those of the open
//! file. A file that was exchanged in between has another inode, and is closed before anything is
//! read or written. `O_NOFOLLOW` would do this in one step, but the standard library does not
//! define it, and its value differs between systems. A missing file is created with `create_new`,
//! which never follows a link.
//!
//! `File::lock` needs Rust 1.89, the minimum version of this crate.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};

use super::{
    store_error::{Result, StoreError},
    thread_store::check_size,
};
use crate::{
    log::{
        EventLog, Loaded, LogError, LogId, LoggedEvent, read_event, write_event, write_named_header,
    },
    message::ThreadId,
};

/// The number of bytes before the end of a prefix that are compared to recognise it.
const END_BYTES: usize = 40;

/// The range of bytes near the start of a file that is compared to recognise a log. It contains the
/// log's id.
const ID: Range<usize> = 20..44;

/// The maximum bytes of a first line that [`LogFile::owner`] reads.
const MAX_HEADER_BYTES: u64 = 4_096;

/// The part of a file that was read or written before, and need not be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPrefix {
    /// The number of its events.
    pub(super) events: u64,
    /// Its length in bytes; 0 if there is no header yet.
    bytes: u64,
    /// The id in the header.
    pub(super) id: Option<LogId>,
    /// The bytes at [`ID`]. Other bytes mean that the file holds another log now.
    head: Vec<u8>,
    /// The last [`END_BYTES`] bytes. Other bytes mean that the file holds another log now.
    end: Vec<u8>,
}

/// The path of a thread's log, and the counter of the bytes that are read from it.
pub(super) struct LogPath<'a> {
    pub(super) thread: &'a ThreadId,
    pub(super) path: PathBuf,
    pub(super) bytes_read: &'a AtomicU64,
}

/// The open and locked file of a thread. Dropping it releases the lock.
pub(super) struct LogFile<'a> {
    at: LogPath<'a>,
    file: File,
}

impl<'a> LogFile<'a> {
    /// Opens and locks a file to read it; `None` if there is no file.
    pub(super) fn to_read(at: LogPath<'a>) -> Result<Option<Self>> {
        let file = open(&at.path, false);
        Self::locked(at, file, File::lock_shared)
    }

    /// Opens and locks a file to write it; `None` if there is no file and `create` is false.
    pub(super) fn to_write(at: LogPath<'a>, create: bool) -> Result<Option<Self>> {
        let file = if create { open_or_create(&at.path).map(Some) } else { open(&at.path, true) };
        Self::locked(at, file, File::lock)
    }

    fn locked(
        at: LogPath<'a>,
        file: Result<Option<File>, OpenError>,
        lock: fn(&File) -> io::Result<()>,
    ) -> Result<Option<Self>> {
        let file = match file {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(None),
            Err(OpenError::Link) => return Err(StoreError::Link { place: path_text(&at.path) }),
            Err(OpenError::Io(error)) => return Err(failed(&at.path, error)),
        };
        let locked = loop {
            match lock(&file) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        locked.map_err(|error| failed(&at.path, error))?;
        Ok(Some(Self { at, file }))
    }

    /// Adds the path of the file to an error.
    fn io<T>(&self, outcome: io::Result<T>) -> Result<T> {
        outcome.map_err(|error| failed(&self.at.path, error))
    }

    /// Reads the whole log.
    pub(super) fn load(&self) -> Result<(Loaded, LogPrefix)> {
        let read = self.reader(0).map_err(LogError::from).and_then(EventLog::read);
        let (loaded, bytes) = match read {
            // The header and the first events are one write, so its writer died, or the file was
            // cut. A log begins with its first event: the next append writes a header with its own
            // id.
            Ok(read) if read.log.is_empty() => {
                (Loaded { torn: read.torn, ..Loaded::new(read.log) }, 0)
            }
            Ok(read) => {
                let end = read.end;
                (read, end)
            }
            // The file is empty, or its writer died within the header.
            Err(LogError::NoHeader { bytes }) => {
                let torn = (bytes > 0).then_some(bytes);
                (Loaded { torn, ..Loaded::new(EventLog::new(self.at.thread.clone())) }, 0)
            }
            Err(source) => {
                return Err(StoreError::unreadable(path_text(&self.at.path), source));
            }
        };
        self.check_owner(loaded.log.thread_id())?;
        let (head, end) = (self.io(self.head(bytes))?, self.io(self.end(bytes))?);
        let prefix = LogPrefix { events: loaded.log.len(), bytes, id: loaded.id, head, end };
        Ok((loaded, prefix))
    }

    /// Returns the part of the file that is a log. It reads only what follows an earlier prefix.
    pub(super) fn prefix(&self, before: Option<LogPrefix>) -> Result<LogPrefix> {
        let extended = before.map_or(Ok(None), |before| self.read_on(before, &mut drop));
        match self.io(extended)? {
            Some(prefix) => Ok(prefix),
            // The file was changed: read all of it, which returns either the new log or the exact
            // error.
            None => Ok(self.load()?.1),
        }
    }

    /// Returns the events after an earlier prefix, and the prefix with them; `None` if the file
    /// does not begin with that prefix, or the lines after it are not the next events.
    pub(super) fn events_after(
        &self,
        before: LogPrefix,
    ) -> Result<Option<(Vec<LoggedEvent>, LogPrefix)>> {
        let mut events = Vec::new();
        let prefix = self.io(self.read_on(before, &mut |event| events.push(event)))?;
        Ok(prefix.map(|prefix| (events, prefix)))
    }

    /// Whether the file begins with an earlier prefix.
    pub(super) fn begins_with(&self, prefix: &LogPrefix) -> Result<bool> {
        self.io(self.has_prefix(prefix))
    }

    fn has_prefix(&self, prefix: &LogPrefix) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() >= prefix.bytes
            && self.head(prefix.bytes)? == prefix.head
            && self.end(prefix.bytes)? == prefix.end)
    }

    /// Reads on after an earlier prefix, up to an incomplete last line; `None` if the file does not
    /// begin with that prefix, or the lines after it are not the next events.
    fn read_on(
        &self,
        before: LogPrefix,
        take: &mut dyn FnMut(LoggedEvent),
    ) -> io::Result<Option<LogPrefix>> {
        let size = self.file.metadata()?.len();
        if !self.has_prefix(&before)? {
            return Ok(None);
        }
        if size == before.bytes {
            return Ok(Some(before));
        }
        if before.bytes == 0 {
            return Ok(None);
        }
        let (mut reader, mut line) = (self.reader(before.bytes)?, Vec::new());
        let (mut events, mut bytes) = (before.events, before.bytes);
        while bytes < size {
            line.clear();
            let read =
                reader.by_ref().take(EventLog::MAX_LINE_BYTES).read_until(b'\n', &mut line)? as u64;
            if line.last() != Some(&b'\n') {
                if bytes + read == size { break } else { return Ok(None) }
            }
            match std::str::from_utf8(&line).map(|line| read_event(line, events + 2)) {
                Ok(Ok(event)) if event.seq == events => take(event),
                Ok(_) | Err(_) => return Ok(None),
            }
            (events, bytes) = (events + 1, bytes + read);
        }
        let end = self.end(bytes)?;
        Ok(Some(LogPrefix { events, bytes, end, ..before }))
    }

    /// Appends events after the prefix in one write, and extends the prefix; a new log gets this
    /// id. On failure the prefix is unchanged, and the next write removes what was partly written.
    pub(super) fn append(
        &mut self,
        prefix: &mut LogPrefix,
        id: Option<LogId>,
        events: &[LoggedEvent],
        sync: bool,
    ) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let lines = self.lines(prefix, id, events)?;
        if let Err(error) = self.write(prefix, &lines, sync) {
            // Ignore a failure of `set_len`: the next write removes the rest, and the first error
            // is the one to report.
            let _ = self.file.set_len(prefix.bytes);
            return Err(failed(&self.at.path, error));
        }
        if prefix.bytes == 0 {
            (prefix.id, prefix.head) = (id, lines.get(ID).unwrap_or_default().to_vec());
        }
        prefix.events += events.len() as u64;
        prefix.bytes += lines.len() as u64;
        prefix.end.extend_from_slice(last(&lines));
        prefix.end = last(&prefix.end).to_vec();
        Ok(())
    }

    fn lines(
        &self,
        prefix: &LogPrefix,
        id: Option<LogId>,
        events: &[LoggedEvent],
    ) -> Result<Vec<u8>> {
        let mut lines = Vec::new();
        if prefix.bytes == 0 {
            self.io(write_named_header(&mut lines, id, self.at.thread))?;
        }
        for event in events {
            let before = lines.len();
            self.io(write_event(&mut lines, event))?;
            let bytes = (lines.len() - before) as u64;
            check_size(event.seq, bytes)?;
        }
        Ok(lines)
    }

    fn write(&mut self, prefix: &LogPrefix, lines: &[u8], sync: bool) -> io::Result<()> {
        if self.file.metadata()?.len() > prefix.bytes {
            self.file.set_len(prefix.bytes)?;
        }
        self.file.seek(SeekFrom::Start(prefix.bytes))?;
        self.file.write_all(lines)?;
        if !sync {
            return Ok(());
        }
        self.file.sync_data()?;
        // The folder stores the name of a new file, so sync the folder too.
        if prefix.bytes == 0 { sync_folder(&self.at.path) } else { Ok(()) }
    }

    /// Empties the file. It is not removed, because a writer that waits for its lock would then
    /// write to an unlinked file.
    pub(super) fn clear(&self, sync: bool) -> Result<()> {
        if let Some(owner) = self.io(self.owner())? {
            self.check_owner(&owner)?;
        }
        self.io(self.file.set_len(0))?;
        if sync { self.io(self.file.sync_data()) } else { Ok(()) }
    }

    /// Returns the thread in the header, if the first line is a header.
    pub(super) fn owner(&self) -> io::Result<Option<ThreadId>> {
        let mut line = Vec::new();
        self.reader(0)?.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
        Ok(EventLog::read(line.as_slice()).ok().map(|read| read.log.thread_id().clone()))
    }

    fn check_owner(&self, found: &ThreadId) -> Result<()> {
        if found == self.at.thread {
            return Ok(());
        }
        let (expected, found) = (self.at.thread.clone(), found.clone());
        Err(StoreError::OtherThread { place: path_text(&self.at.path), expected, found })
    }

    /// Returns the bytes at [`ID`], or none if the log is shorter.
    fn head(&self, bytes: u64) -> io::Result<Vec<u8>> {
        let (from, to) = (ID.start as u64, ID.end as u64);
        if bytes < to { Ok(Vec::new()) } else { self.bytes(from..to) }
    }

    /// Returns the last [`END_BYTES`] bytes of a log of this length.
    fn end(&self, bytes: u64) -> io::Result<Vec<u8>> {
        self.bytes(bytes.saturating_sub(END_BYTES as u64)..bytes)
    }

    fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = Counted { file: &self.file, bytes_read: self.at.bytes_read };
        file.file.seek(SeekFrom::Start(range.start))?;
        file.by_ref().take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn reader(&self, from: u64) -> io::Result<BufReader<Counted<'_>>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(from))?;
        Ok(BufReader::new(Counted { file, bytes_read: self.at.bytes_read }))
    }
}

/// A file that counts the bytes read from it.
struct Counted<'a> {
    file: &'a File,
    bytes_read: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

fn last(bytes: &[u8]) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(END_BYTES)..).unwrap_or_default()
}

/// Returns the error of a file.
pub(super) fn failed(path: &Path, error: io::Error) -> StoreError {
    StoreError::medium(path.display().to_string(), error)
}

fn path_text(path: &Path) -> crate::message::Text {
    path.display().to_string().into()
}

/// Syncs the folder of a file. Only Unix can do this.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Why a path could not be opened.
pub(super) enum OpenError {
    /// It is a symbolic link, or was replaced while it was opened.
    Link,
    /// Opening failed, or the path is not a plain file.
    Io(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a file to read it, and to write it if `write`; `None` if there is no file.
pub(super) fn open(path: &Path, write: bool) -> Result<Option<File>, OpenError> {
    let seen = match fs::symlink_metadata(path) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if seen.is_symlink() {
        return Err(OpenError::Link);
    }
    // Check before opening: opening a pipe would block until its other end is opened.
    if !seen.is_file() {
        return Err(io::Error::other("not a plain file").into());
    }
    let file = match OpenOptions::new().read(true).write(write).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if is_same(&seen, &file.metadata()?) { Ok(Some(file)) } else { Err(OpenError::Link) }
}

/// Opens a file to read and write it, and creates it if it is missing: accessible to its owner
/// only, where the system has such permissions.
pub(super) fn open_or_create(path: &Path) -> Result<File, OpenError> {
    loop {
        match create_file(path) {
            // Another process created it. If it is removed before it is opened here, try again.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(file) = open(path, true)? {
                    return Ok(file);
                }
            }
            made => return Ok(made?),
        }
    }
}

/// Creates a file that does not exist, accessible to its owner only.
///
/// # Errors
///
/// Those of the system.
pub fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a whole file, so that it holds either its old content or all of the new one: the bytes go
/// to a new file in the same folder, which is synced and then renamed. The file is accessible to its
/// owner only, also if it replaces one that others could read. Devices and pipes are written as they
/// are.
///
/// ```
/// use threadfold::store::replace_file;
///
/// let file = std::env::temp_dir().join(format!("threadfold-{}-r", std::process::id()));
/// replace_file(&file, b"one")?;
/// replace_file(&file, b"two")?;
/// assert_eq!(std::fs::read(&file)?, b"two");
/// # std::fs::remove_file(file)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Those of the system, and one for a symbolic link; links are not followed. The old file is then
/// unchanged, and no other file is left.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, true).map_err(|error| match error {
        OpenError::Link => io::Error::other("a symbolic link; links are not followed"),
        OpenError::Io(error) => error,
    })
}

/// Same as [`replace_file`], with or without syncs.
pub(super) fn replace(path: &Path, bytes: &[u8], sync: bool) -> Result<(), OpenError> {
    match fs::symlink_metadata(path) {
        Ok(seen) if seen.is_symlink() => return Err(OpenError::Link),
        Ok(seen) if seen.is_dir() => return Err(io::Error::other("a folder, not a file").into()),
        Ok(seen) if !seen.is_file() => {
            let mut device = OpenOptions::new().write(true).open(path)?;
            if !is_same(&seen, &device.metadata()?) {
                return Err(OpenError::Link);
            }
            return Ok(device.write_all(bytes)?);
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let (beside, mut file) = create_beside(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| if sync { file.sync_all() } else { Ok(()) })
        .and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        // If this fails too, a hidden file stays; the first error is the one to report.
        let _ = fs::remove_file(&beside);
        return Err(error.into());
    }
    if sync { Ok(sync_folder(path)?) } else { Ok(()) }
}

/// Creates a file in the folder of this path, under a name that no file has.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    const MAX_NAMES: u32 = 1_000;
    let mut number = 0;
    loop {
        let name = format!(".threadfold-{}-{number}.new", std::process::id());
        let beside = path.with_file_name(name);
        match create_file(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_NAMES => {
                number += 1;
            }
            made => return Ok((beside, made?)),
        }
    }
}

/// Creates a folder and its missing parents, accessible to their owner only. Existing folders keep
/// their permissions.
///
/// # Errors
///
/// Those of the system, and one that names the file if the path, or a parent, is a file.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| {
        let Some(file) = path.ancestors().find(|path| path.exists() && !path.is_dir()) else {
            return error;
        };
        let file = file.display();
        io::Error::new(io::ErrorKind::NotADirectory, format!("{file} is a file, not a folder"))
    })
}

/// Whether both are metadata of the same file. Only on Unix does the standard library have a number
/// that identifies a file.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        true
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{log::Event, message::Timestamp};

    /// Renaming the folder of an open file makes the last step of a first append fail: the sync of
    /// the folder.
    #[test]
    fn a_write_that_fails_late_is_rolled_back() {
        let home = std::env::temp_dir().join(format!("threadfold-file-{}", std::process::id()));
        let (folder, moved) = (home.join("before"), home.join("after"));
        fs::create_dir_all(&folder).unwrap();
        let (thread, path, bytes_read) =
            ("t".parse().unwrap(), folder.join("t.jsonl"), &AtomicU64::default());
        let at = LogPath { thread: &thread, path, bytes_read };
        let mut file = LogFile::to_write(at, true).unwrap().unwrap();
        file.file.write_all(b"{\"log\":\"thr").unwrap();
        let mut prefix = file.prefix(None).unwrap();
        fs::rename(&folder, &moved).unwrap();

        let event = Event::LocalNotice { text: "hi".into() };
        let events = [LoggedEvent { seq: 0, at: Timestamp(0), event }];
        let error = file.append(&mut prefix, None, &events, true).unwrap_err();
        assert!(matches!(error, StoreError::Medium { .. }), "{error:?}");
        assert_eq!(fs::read(moved.join("t.jsonl")).unwrap(), b"");
        assert_eq!(prefix, LogPrefix::default());

        fs::rename(&moved, &folder).unwrap();
        file.append(&mut prefix, None, &events, true).unwrap();
        assert_eq!(prefix, file.load().unwrap().1);
        fs::remove_dir_all(home).unwrap();
    }
}
