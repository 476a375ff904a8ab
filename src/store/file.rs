//! One log in one file: reading it, and appending to it so that a crash at any byte leaves the
//! beginning of a log.
//!
//! Whoever reads or writes holds a lock on the file, shared or alone, so a half-written line is
//! seen only if its writer died. It is cut off before the next write, and so is what a failed write
//! left.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    plain_file::{self, OpenError},
    thread_store::{Loaded, StoreError},
};
use crate::{
    log::{
        EventLog, LogError, LogId, LogReadOptions, LoggedEvent, TornTail, write_event,
        write_named_header,
    },
    message::ThreadId,
};

/// How many bytes in front of its end a log is known by.
const END_BYTES: usize = 40;

/// Where the id of a log stands in its first line, and as many bytes of another line: what a log is
/// known by at its beginning.
const ID: Range<usize> = 20..44;

/// The most bytes of a first line that [`LogFile::owner`] reads.
const MAX_HEADER_BYTES: u64 = 4_096;

/// How much of a file is known to be a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// How many events.
    pub(super) events: u64,
    /// How many bytes; 0 if there is no header yet.
    bytes: u64,
    /// Which log it is, if it says so.
    pub(super) id: Option<LogId>,
    /// The bytes at [`ID`], and the last ones. If they are others now, somebody has written another
    /// log.
    head: Vec<u8>,
    end: Vec<u8>,
}

/// The open and locked file of a thread. Closing it gives the lock back.
pub(super) struct LogFile<'a> {
    thread: &'a ThreadId,
    path: &'a Path,
    file: File,
    bytes_read: &'a AtomicU64,
}

impl<'a> LogFile<'a> {
    /// Opens and locks a file to read it; `None` if there is none.
    pub(super) fn to_read(
        thread: &'a ThreadId,
        path: &'a Path,
        bytes_read: &'a AtomicU64,
    ) -> Result<Option<Self>, StoreError> {
        let file = plain_file::open(path, false);
        Self::locked(thread, path, bytes_read, file, File::lock_shared)
    }

    /// Opens and locks a file to write it; `None` if there is none and none is to be made.
    pub(super) fn to_write(
        thread: &'a ThreadId,
        path: &'a Path,
        bytes_read: &'a AtomicU64,
        create: bool,
    ) -> Result<Option<Self>, StoreError> {
        let file = if create {
            plain_file::open_or_create(path).map(Some)
        } else {
            plain_file::open(path, true)
        };
        Self::locked(thread, path, bytes_read, file, File::lock)
    }

    fn locked(
        thread: &'a ThreadId,
        path: &'a Path,
        bytes_read: &'a AtomicU64,
        file: Result<Option<File>, OpenError>,
        lock: fn(&File) -> io::Result<()>,
    ) -> Result<Option<Self>, StoreError> {
        let file = match file {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(None),
            Err(OpenError::Link) => return Err(StoreError::Link { place: place(path) }),
            Err(OpenError::Io(error)) => return Err(failed(path, error)),
        };
        let locked = loop {
            match lock(&file) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        locked.map_err(|error| failed(path, error))?;
        Ok(Some(Self { thread, path, file, bytes_read }))
    }

    /// Reads the whole log.
    pub(super) fn load(&self) -> Result<(Loaded, Known), StoreError> {
        let read = self.reader(0).map_err(LogError::from).and_then(EventLog::read);
        let (loaded, bytes) = match read {
            Ok(read) => (Loaded { log: read.log, id: read.id, torn: read.torn }, read.end),
            // Nothing was stored yet, or its writer died within the first line.
            Err(LogError::NoHeader { bytes }) => {
                let torn = (bytes > 0).then_some(TornTail { offset: 0, bytes });
                (Loaded { torn, ..Loaded::new(EventLog::new(self.thread.clone())) }, 0)
            }
            Err(error) => return Err(self.unreadable(error)),
        };
        self.check_owner(loaded.log.thread_id())?;
        let ends = self.head(bytes).and_then(|head| Ok((head, self.end(bytes)?)));
        let (head, end) = ends.map_err(|error| failed(self.path, error))?;
        let known = Known { events: loaded.log.len(), bytes, id: loaded.id, head, end };
        Ok((loaded, known))
    }

    /// Returns how much of the file is a log, reading no more than what came since it was known.
    pub(super) fn known(&self, before: Option<Known>) -> Result<Known, StoreError> {
        let on = before.map_or(Ok(None), |before| self.read_on(before));
        match on.map_err(|error| failed(self.path, error))? {
            Some(known) => Ok(known),
            // What is odd about the file, the whole of it tells.
            None => Ok(self.load()?.1),
        }
    }

    /// Reads on from where the file is known, up to a last line that is not complete; `None` if the
    /// file is not as it was, or what came since is not all in order.
    fn read_on(&self, before: Known) -> io::Result<Option<Known>> {
        let size = self.file.metadata()?.len();
        if size < before.bytes
            || self.head(before.bytes)? != before.head
            || self.end(before.bytes)? != before.end
        {
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
            let read = reader.by_ref().take(line_limit()).read_until(b'\n', &mut line)? as u64;
            if line.last() != Some(&b'\n') {
                if bytes + read == size { break } else { return Ok(None) }
            }
            let event = serde_json::from_slice::<LoggedEvent>(&line);
            if !event.is_ok_and(|event| event.seq == events) {
                return Ok(None);
            }
            (events, bytes) = (events + 1, bytes + read);
        }
        let end = self.end(bytes)?;
        Ok(Some(Known { events, bytes, end, ..before }))
    }

    /// Writes events after what is known, in one write; a new log gets this id. If it fails, the file is as long as before
    /// or has a tail that will be seen, and no more is known than before.
    pub(super) fn append(
        &mut self,
        known: &mut Known,
        id: Option<LogId>,
        events: &[LoggedEvent],
        sync: bool,
    ) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let lines = self.lines(known, id, events)?;
        if let Err(error) = self.write(known, &lines, sync) {
            // Whether this fails too makes no difference: the first error is the one to tell of.
            let _ = self.file.set_len(known.bytes);
            return Err(failed(self.path, error));
        }
        if known.bytes == 0 {
            (known.id, known.head) = (id, lines.get(ID).unwrap_or_default().to_vec());
        }
        known.events += events.len() as u64;
        known.bytes += lines.len() as u64;
        known.end.extend_from_slice(last(&lines));
        known.end = last(&known.end).to_vec();
        Ok(())
    }

    fn lines(
        &self,
        known: &Known,
        id: Option<LogId>,
        events: &[LoggedEvent],
    ) -> Result<Vec<u8>, StoreError> {
        let mut lines = Vec::new();
        if known.bytes == 0 {
            let written = write_named_header(&mut lines, id, self.thread);
            written.map_err(|error| failed(self.path, error))?;
        }
        for event in events {
            let before = lines.len();
            write_event(&mut lines, event).map_err(|error| failed(self.path, error))?;
            let (bytes, limit) = ((lines.len() - before) as u64, line_limit());
            if bytes > limit {
                return Err(StoreError::TooLong { seq: event.seq, bytes, limit });
            }
        }
        Ok(lines)
    }

    fn write(&mut self, known: &Known, lines: &[u8], sync: bool) -> io::Result<()> {
        if self.file.metadata()?.len() > known.bytes {
            self.file.set_len(known.bytes)?;
        }
        self.file.seek(SeekFrom::Start(known.bytes))?;
        self.file.write_all(lines)?;
        if !sync {
            return Ok(());
        }
        self.file.sync_data()?;
        // The name of a new file is kept by its folder.
        if known.bytes == 0 { sync_folder(self.path) } else { Ok(()) }
    }

    /// Empties the file. It stays, because a writer may wait for its lock, and what that one writes
    /// into a file without a name would be lost.
    pub(super) fn clear(&self, sync: bool) -> Result<(), StoreError> {
        if let Some(owner) = self.owner().map_err(|error| failed(self.path, error))? {
            self.check_owner(&owner)?;
        }
        let cleared = self.file.set_len(0);
        let cleared = cleared.and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        cleared.map_err(|error| failed(self.path, error))
    }

    /// The thread that the first line names, if it is the first line of a log.
    pub(super) fn owner(&self) -> io::Result<Option<ThreadId>> {
        let mut line = Vec::new();
        self.reader(0)?.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
        Ok(EventLog::read(line.as_slice()).ok().map(|read| read.log.thread_id().clone()))
    }

    fn check_owner(&self, found: &ThreadId) -> Result<(), StoreError> {
        if found == self.thread {
            return Ok(());
        }
        let (expected, found) = (self.thread.clone(), found.clone());
        Err(StoreError::OtherThread { place: place(self.path), expected, found })
    }

    /// The bytes by which a log of this length is known at its beginning.
    fn head(&self, bytes: u64) -> io::Result<Vec<u8>> {
        let (from, to) = (ID.start as u64, ID.end as u64);
        if bytes < to { Ok(Vec::new()) } else { self.bytes(from..to) }
    }

    /// The bytes in front of this place by which a log is known.
    fn end(&self, bytes: u64) -> io::Result<Vec<u8>> {
        self.bytes(bytes.saturating_sub(END_BYTES as u64)..bytes)
    }

    fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = Counted { file: &self.file, bytes_read: self.bytes_read };
        file.file.seek(SeekFrom::Start(range.start))?;
        file.by_ref().take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn reader(&self, from: u64) -> io::Result<BufReader<Counted<'_>>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(from))?;
        Ok(BufReader::new(Counted { file, bytes_read: self.bytes_read }))
    }

    fn unreadable(&self, error: LogError) -> StoreError {
        StoreError::Unreadable { place: place(self.path), source: error }
    }
}

/// A file that counts what is read of it.
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

/// The most bytes of a line that are read again.
fn line_limit() -> u64 {
    LogReadOptions::default().max_line_bytes
}

fn last(bytes: &[u8]) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(END_BYTES)..).unwrap_or_default()
}

/// Returns the error of a file.
pub(super) fn failed(path: &Path, error: io::Error) -> StoreError {
    StoreError::medium(path.display().to_string(), error)
}

fn place(path: &Path) -> crate::message::Text {
    path.display().to_string().into()
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Elsewhere a folder is no file that could be synced.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        log::{Event, LocalNotice},
        message::Timestamp,
    };

    /// Renaming the folder under an open file makes the last step of a first append fail: the sync
    /// of the folder.
    #[test]
    fn a_write_that_fails_late_is_taken_back() {
        let home = std::env::temp_dir().join(format!("threadfold-file-{}", std::process::id()));
        let (folder, moved) = (home.join("before"), home.join("after"));
        fs::create_dir_all(&folder).unwrap();
        let (thread, path, count) =
            ("t".parse().unwrap(), folder.join("t.jsonl"), AtomicU64::default());
        let mut file = LogFile::to_write(&thread, &path, &count, true).unwrap().unwrap();
        file.file.write_all(b"{\"log\":\"thr").unwrap();
        let mut known = file.known(None).unwrap();
        fs::rename(&folder, &moved).unwrap();

        let event = Event::LocalNotice(LocalNotice { text: "hi".into() });
        let events = [LoggedEvent { seq: 0, at: Timestamp(0), event }];
        let error = file.append(&mut known, None, &events, true).unwrap_err();
        assert!(matches!(error, StoreError::Medium { .. }), "{error:?}");
        assert_eq!(fs::read(moved.join("t.jsonl")).unwrap(), b"");
        assert_eq!(known, Known::default());

        fs::rename(&moved, &folder).unwrap();
        file.append(&mut known, None, &events, true).unwrap();
        assert_eq!(known, file.load().unwrap().1);
        fs::remove_dir_all(home).unwrap();
    }
}
