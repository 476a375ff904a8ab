//! Opening a database: a private file, the pragmas, the tables.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use threadfold::store::{create_file, create_folder};

use crate::schema::{self, Content, VERSION};

/// How long a transaction waits for those of other processes.
const BUSY: Duration = Duration::from_secs(30);

/// Lets this process open one database at a time. The file is created without SQLite, and closing
/// it would release the locks that another connection of the process has on it.
static OPENING: Mutex<()> = Mutex::new(());

/// Why a database cannot be opened. The file is unchanged in every case but
/// [`Sqlite`](Self::Sqlite) and [`Io`](Self::Io).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is not a database, or belongs to another program.
    #[error("{} is not a database of threadfold", .path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// A newer build wrote the database.
    #[error("{} has version {found}; this build reads up to {newest}", .path.display())]
    Newer {
        /// The path.
        path: PathBuf,
        /// The version of the database.
        found: u32,
        /// The newest version that this build reads.
        newest: u32,
    },
    /// An older build wrote the database, or it is empty. Only a store that writes can prepare it.
    #[error("{} has version {found}; expected {expected} to read it without writing", .path.display())]
    Older {
        /// The path.
        path: PathBuf,
        /// The version of the database; 0 if it is empty.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
    /// The file is a symbolic link. Links are not followed, because they may lead out of the
    /// folder.
    #[error("{} is a symbolic link; links are not followed", .path.display())]
    Link {
        /// The path.
        path: PathBuf,
    },
    /// The file system does not support a write-ahead log, for example because it is a network file
    /// system.
    #[error("{}: the file system does not support a write-ahead log (journal mode {mode})", .path.display())]
    NoWriteAheadLog {
        /// The path.
        path: PathBuf,
        /// The journal mode that SQLite uses instead.
        mode: String,
    },
    /// The file or its folder cannot be created, or the thread of the database cannot be started.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// SQLite failed, for example because the file is damaged.
    #[error("{}: {source}", .path.display())]
    Sqlite {
        /// The path.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}

/// Opens the database in this file, which is created if it is missing, with its folder.
pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if names_no_file(path) {
        let why = "a store is a file; `MemoryStore` of threadfold keeps threads in memory";
        return Err(io(io::Error::new(io::ErrorKind::InvalidFilename, why)));
    }
    let file = create(path).map_err(io)?;
    if fs::symlink_metadata(&file).map_err(io)?.is_symlink() {
        return Err(OpenError::Link { path: path.to_owned() });
    }
    let since = Instant::now();
    loop {
        match prepared(path, &file) {
            // SQLite's own timeout does not apply to the lock that a change of the journal mode
            // needs.
            Err(OpenError::Sqlite { source, .. }) if is_busy(&source) && since.elapsed() < BUSY => {
                thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Opens the database in this file, without the permission to write in it.
pub(crate) fn open_read_only(path: &Path) -> Result<Connection, OpenError> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename.into()).map_err(io)?;
    let file = folder_of(path).canonicalize().map_err(io)?.join(name);
    if fs::symlink_metadata(&file).map_err(io)?.is_symlink() {
        return Err(OpenError::Link { path: path.to_owned() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let failed = |source| failed(path, source);
    let connection = Connection::open_with_flags(&file, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let content = schema::content(&connection).map_err(failed)?;
    check(path, content)?;
    match content {
        Content::Ours(found) if found < VERSION => {
            Err(OpenError::Older { path: path.to_owned(), found, expected: VERSION })
        }
        Content::Ours(_) | Content::Foreign => Ok(connection),
    }
}

/// Whether SQLite would read the path as a database in memory or as a URI, and not as a file name.
fn names_no_file(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path == ":memory:" || path.starts_with("file:"))
}

/// Creates the file, accessible to its owner only, if it is missing. SQLite creates its other files
/// with the same permissions. Returns the path with the links of its folder resolved.
fn create(path: &Path) -> io::Result<PathBuf> {
    let folder = folder_of(path);
    create_folder(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let file = folder.canonicalize()?.join(name);
    match create_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(file),
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The error of SQLite for this file.
fn failed(path: &Path, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Foreign { path: path.to_owned() },
        _ => OpenError::Sqlite { path: path.to_owned(), source },
    }
}

fn prepared(path: &Path, file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let failed = |source| failed(path, source);
    let mut connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    // The content is checked before anything is written.
    check(path, schema::content(&connection).map_err(failed)?)?;
    let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
    let mode: String = mode.map_err(failed)?;
    if mode != "wal" {
        return Err(OpenError::NoWriteAheadLog { path: path.to_owned(), mode });
    }
    // With these settings a commit is on the disk when it returns. On macOS the disk must be asked
    // to flush its cache.
    let pragmas = [("synchronous", "FULL"), ("fullfsync", "ON"), ("secure_delete", "ON")];
    for (name, value) in pragmas {
        connection.pragma_update(None, name, value).map_err(failed)?;
    }
    check(path, schema::migrate(&mut connection).map_err(failed)?)?;
    Ok(connection)
}

fn check(path: &Path, content: Content) -> Result<(), OpenError> {
    match content {
        Content::Ours(found) if found > VERSION => {
            Err(OpenError::Newer { path: path.to_owned(), found, newest: VERSION })
        }
        Content::Ours(_) => Ok(()),
        Content::Foreign => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_durable_and_deleted_bytes_are_overwritten() {
        let folder = std::env::temp_dir().join(format!("threadfold-open-{}", std::process::id()));
        let connection = open(&folder.join("threads.db")).unwrap();
        let pragma = |name: &str| -> i64 {
            connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
        };
        let found = ["synchronous", "fullfsync", "secure_delete"].map(pragma);
        assert_eq!(found, [2, 1, 1]);
        let mode: String =
            connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        drop(connection);
        fs::remove_dir_all(folder).unwrap();
    }
}
