//! The table of views: what is sent for which beginning of a thread.

use std::{
    collections::HashMap,
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use threadfold::message::{ThreadId, Timestamp};

use crate::relay::{Chain, Link, View};

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS views (
        link TEXT PRIMARY KEY,
        thread TEXT NOT NULL,
        covers INTEGER NOT NULL,
        messages TEXT NOT NULL,
        events INTEGER NOT NULL,
        at INTEGER NOT NULL,
        dialect TEXT NOT NULL,
        model TEXT NOT NULL,
        before INTEGER NOT NULL,
        after INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;";

/// A view, and the log that it comes from.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) link: Link,
    pub(super) view: View,
    pub(super) about: About,
}

/// What is known of a view beside its messages.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) thread: ThreadId,
    /// The events of the log after the compaction.
    pub(super) events: u64,
    pub(super) at: Timestamp,
    pub(super) dialect: String,
    pub(super) model: String,
    /// Tokens of the thread before and after the compaction.
    pub(super) before: u64,
    pub(super) after: u64,
}

/// The views of a proxy, in memory and in a database.
#[derive(Debug)]
pub struct Views {
    connection: Mutex<Connection>,
    /// All links. The newest view of a thread is kept; of others the messages are read again.
    known: Mutex<HashMap<Link, Option<Arc<Row>>>>,
}

/// Why the views cannot be opened.
#[derive(Debug)]
pub struct ViewsError(String);

impl std::fmt::Display for ViewsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ViewsError {}

impl Views {
    /// Opens the database in this file. On Unix a new one can be read by its owner alone.
    ///
    /// # Errors
    ///
    /// [`ViewsError`] if the file is no database that can be written.
    pub fn open(path: &Path) -> Result<Self, ViewsError> {
        let name = path.display();
        create(path).map_err(|error| ViewsError(format!("{name}: {error}")))?;
        let opened = || -> rusqlite::Result<Self> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(std::time::Duration::from_secs(10))?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.execute_batch(SCHEMA)?;
            let known = links(&connection)?;
            Ok(Self { connection: Mutex::new(connection), known: Mutex::new(known) })
        };
        let remedy = "move it away, or name another folder with --folder";
        opened().map_err(|error| ViewsError(format!("{name}: {error} ({remedy})")))
    }

    /// Whether there is no view at all.
    pub(super) fn is_empty(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The view of the longest beginning of this chain. One that cannot be read is passed over.
    pub(super) fn find(&self, chain: &Chain) -> Option<Arc<Row>> {
        chain.longest_first().find_map(|(count, link)| {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let row = known.get(&link)?.clone();
            drop(known);
            let row = row.or_else(|| self.read(link))?;
            (row.view.covers == count).then_some(row)
        })
    }

    /// Keeps a view, in memory at least. `parent` is the one that it was made from.
    pub(super) fn insert(&self, row: Row, parent: Option<Link>) -> Result<(), ViewsError> {
        let row = Arc::new(row);
        let written = self.write(&row);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A view that is in no database is all that there is of it.
        if written.is_ok()
            && let Some(parent) = parent.and_then(|parent| known.get_mut(&parent))
        {
            *parent = None;
        }
        known.insert(row.link, Some(row));
        written.map_err(|error| ViewsError(error.to_string()))
    }

    /// All views that are stored, the latest first, without their messages.
    pub(super) fn list(&self) -> Result<Vec<About>, ViewsError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = || -> rusqlite::Result<Vec<About>> {
            let mut statement = connection.prepare_cached(
                "SELECT thread, events, at, dialect, model, before, after FROM views
                 ORDER BY at DESC LIMIT 500",
            )?;
            let rows = statement.query_map([], |row| about(row, 0))?;
            rows.filter_map(Result::transpose).collect()
        };
        listed().map_err(|error| ViewsError(error.to_string()))
    }

    fn write(&self, row: &Row) -> Result<(), Box<dyn std::error::Error>> {
        let Row { link, view, about } = row;
        let messages = serde_json::to_string(&view.messages)?;
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut insert = connection
            .prepare_cached("INSERT OR REPLACE INTO views VALUES (?,?,?,?,?,?,?,?,?,?)")?;
        insert.execute(params![
            link.to_string(),
            about.thread.as_str(),
            i64::try_from(view.covers)?,
            messages,
            i64::try_from(about.events)?,
            i64::try_from(about.at.0)?,
            about.dialect,
            about.model,
            i64::try_from(about.before)?,
            i64::try_from(about.after)?,
        ])?;
        Ok(())
    }

    fn read(&self, link: Link) -> Option<Arc<Row>> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || -> rusqlite::Result<Option<Row>> {
            let mut statement = connection.prepare_cached(
                "SELECT thread, events, at, dialect, model, before, after, covers, messages
                 FROM views WHERE link = ?",
            )?;
            let row = statement.query_row([link.to_string()], |row| {
                let (covers, messages): (i64, String) = (row.get(7)?, row.get(8)?);
                Ok((about(row, 0)?, covers, messages))
            });
            let Some((Some(about), covers, messages)) = row.optional()? else { return Ok(None) };
            let messages = serde_json::from_str(&messages).ok();
            let view = messages.and_then(|messages| {
                Some(View { covers: usize::try_from(covers).ok()?, messages })
            });
            Ok(view.map(|view| Row { link, view, about }))
        };
        let row = Arc::new(read().ok().flatten()?);
        drop(connection);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(link, Some(Arc::clone(&row)));
        Some(row)
    }
}

/// The threads that a proxy compacted, the latest first, from the database in this file. It is only
/// read, so a proxy may be at work; none if there is no such database.
pub(crate) fn latest_threads(path: &Path) -> Vec<ThreadId> {
    let listed = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement =
            connection.prepare("SELECT thread FROM views GROUP BY thread ORDER BY max(at) DESC")?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let threads = listed().unwrap_or_default();
    threads.iter().filter_map(|thread| thread.parse().ok()).collect()
}

fn about(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Option<About>> {
    let number = |at: usize| -> rusqlite::Result<u64> {
        let number: i64 = row.get(from + at)?;
        Ok(u64::try_from(number).unwrap_or(0))
    };
    let thread: String = row.get(from)?;
    let Ok(thread) = thread.parse() else { return Ok(None) };
    Ok(Some(About {
        thread,
        events: number(1)?,
        at: Timestamp(number(2)?),
        dialect: row.get(from + 3)?,
        model: row.get(from + 4)?,
        before: number(5)?,
        after: number(6)?,
    }))
}

fn links(connection: &Connection) -> rusqlite::Result<HashMap<Link, Option<Arc<Row>>>> {
    let mut statement = connection.prepare("SELECT link FROM views")?;
    let mut rows = statement.query([])?;
    let mut known = HashMap::new();
    while let Some(row) = rows.next()? {
        let link: String = row.get(0)?;
        if let Ok(link) = link.parse() {
            known.insert(link, None);
        }
    }
    Ok(known)
}

/// Creates the file and its folder for the owner alone, if they are missing.
fn create(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    let mut file = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folder.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        folder.recursive(true).create(parent)?;
    }
    file.create(true).append(true).open(path).map(drop)
}
