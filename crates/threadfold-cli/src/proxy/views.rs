//! The table of views, which replace the beginnings of threads.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use threadfold::message::{ThreadId, Timestamp};

use crate::relay::{Chain, Link, View};

/// The table. A table of an earlier version is dropped, because its views can be made again from
/// the logs.
const SCHEMA: &str = "
    DROP TABLE IF EXISTS views;
    CREATE TABLE views (
        link TEXT PRIMARY KEY,
        covers INTEGER NOT NULL,
        messages TEXT NOT NULL,
        at INTEGER NOT NULL,
        about TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 1;";

/// A view, and the link of the messages that it replaces.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) link: Link,
    pub(super) view: View,
    pub(super) about: About,
}

/// The metadata of a view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) thread: ThreadId,
    /// The number of events in the log of the thread.
    pub(super) events: u64,
    pub(super) at: Timestamp,
    pub(super) dialect: String,
    pub(super) model: String,
    /// The tokens of the thread before and after the compaction.
    pub(super) before: u64,
    pub(super) after: u64,
}

/// The views of a proxy, in memory and in a database.
#[derive(Debug)]
pub struct Views {
    connection: Mutex<Connection>,
    /// All links. The newest view of each thread is in memory; `None` marks a view that must be
    /// read from the database.
    known: Mutex<HashMap<Link, Option<Arc<Row>>>>,
}

impl Views {
    /// Opens the database in this file. On Unix only the owner can read a new one.
    ///
    /// # Errors
    ///
    /// A message that names the file, if it is no database or cannot be written.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = path.display();
        create(path).map_err(|error| format!("{name}: {error}"))?;
        let remedy = "move it away, or name another folder with --folder";
        Self::open_database(path).map_err(|error| format!("{name}: {error} ({remedy})"))
    }

    fn open_database(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        if connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == 0 {
            connection.execute_batch(SCHEMA)?;
        }
        let links = column(&connection, "SELECT link FROM views")?;
        let known = links.iter().filter_map(|link| Some((link.parse().ok()?, None))).collect();
        Ok(Self { connection: Mutex::new(connection), known: Mutex::new(known) })
    }

    /// Whether there are no views.
    pub(super) fn is_empty(&self) -> bool {
        locked(&self.known).is_empty()
    }

    /// The view of the longest beginning of this chain. Views that cannot be read are skipped.
    pub(super) fn find(&self, chain: &Chain) -> Option<Arc<Row>> {
        chain.longest_first().find_map(|(count, link)| {
            let known = locked(&self.known).get(&link)?.clone();
            let row = known.or_else(|| self.read(link))?;
            (row.view.covers == count).then_some(row)
        })
    }

    /// Keeps a view, at least in memory. `parent` is the view that it replaces.
    pub(super) fn insert(&self, row: Row, parent: Option<Link>) -> Result<(), String> {
        let row = Arc::new(row);
        let written = self.write(&row);
        let mut known = locked(&self.known);
        // A view that could not be stored must stay in memory.
        if written.is_ok()
            && let Some(parent) = parent.and_then(|parent| known.get_mut(&parent))
        {
            *parent = None;
        }
        known.insert(row.link, Some(row));
        written.map_err(|error| error.to_string())
    }

    /// The metadata of the newest views.
    pub(super) fn list(&self) -> Result<Vec<About>, String> {
        /// The maximum number of views on the page.
        const SHOWN: i64 = 500;
        let views = latest(&locked(&self.connection), SHOWN);
        views.map_err(|error| error.to_string())
    }

    fn write(&self, row: &Row) -> Result<(), Box<dyn Error>> {
        let Row { link, view, about } = row;
        locked(&self.connection).execute(
            "INSERT OR REPLACE INTO views VALUES (?, ?, ?, ?, ?)",
            params![
                link.to_string(),
                i64::try_from(view.covers)?,
                serde_json::to_string(&view.messages)?,
                i64::try_from(about.at.0)?,
                serde_json::to_string(about)?,
            ],
        )?;
        Ok(())
    }

    /// Reads a view, and keeps it in memory.
    fn read(&self, link: Link) -> Option<Arc<Row>> {
        let select = "SELECT covers, messages, about FROM views WHERE link = ?";
        let row = locked(&self.connection).query_row(select, [link.to_string()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        });
        let (covers, messages, about) = row.optional().ok().flatten()?;
        let messages = serde_json::from_str(&messages).ok()?;
        let view = View { covers: usize::try_from(covers).ok()?, messages };
        let row = Arc::new(Row { link, view, about: serde_json::from_str(&about).ok()? });
        locked(&self.known).insert(link, Some(Arc::clone(&row)));
        Some(row)
    }
}

/// The threads of the views in this file, the thread with the newest view first. Empty if there is
/// no such file, or if it cannot be read.
pub(crate) fn latest_threads(path: &Path) -> Vec<ThreadId> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let views = connection.and_then(|connection| latest(&connection, -1)).unwrap_or_default();
    let mut seen = HashSet::new();
    let threads = views.into_iter().map(|about| about.thread);
    threads.filter(|thread| seen.insert(thread.clone())).collect()
}

/// The metadata of the newest views, the newest first; a negative limit returns all. Unreadable
/// metadata are skipped.
fn latest(connection: &Connection, limit: i64) -> rusqlite::Result<Vec<About>> {
    let select = format!("SELECT about FROM views ORDER BY at DESC LIMIT {limit}");
    let views = column(connection, &select)?;
    Ok(views.iter().filter_map(|about| serde_json::from_str(about).ok()).collect())
}

fn column(connection: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare(select)?.query_map([], |row| row.get(0))?.collect()
}

/// Locks the value, even after a panic with the lock held: every change is a single step, so the
/// value is consistent.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the file and its folder, accessible only to their owner.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_an_earlier_version_is_made_anew_and_one_of_this_version_stays() {
        let folder = std::env::temp_dir().join(format!("threadfold-views-{}", std::process::id()));
        let path = folder.join("views.db");
        std::fs::create_dir_all(&folder).unwrap();
        let earlier =
            "CREATE TABLE views (link TEXT PRIMARY KEY, thread TEXT) STRICT, WITHOUT ROWID";
        Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
        let row = Row {
            link: "00".repeat(32).parse().unwrap(),
            view: View { covers: 1, messages: Vec::new() },
            about: About {
                thread: ThreadId::random(),
                events: 1,
                at: Timestamp(7),
                dialect: String::new(),
                model: String::new(),
                before: 9,
                after: 3,
            },
        };
        let thread = row.about.thread.clone();
        Views::open(&path).unwrap().insert(row, None).unwrap();
        let again = Views::open(&path).unwrap().list().unwrap();
        assert_eq!(again.len(), 1);
        assert_eq!(latest_threads(&path), [thread]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
