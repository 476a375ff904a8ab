//! The table of views, which replace the beginnings of threads. It is in the database of the logs.

use std::{
    collections::HashMap,
    error::Error,
    ops::AddAssign,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use threadfold::message::{Message, ThreadId, Timestamp};
use threadfold_sqlite::SqliteStore;

use super::{lock::locked, prices, running::Running};
use crate::relay::{Chain, Link, View, compaction::Found};

/// The table, in the database of the logs.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS proxy_views (
        link TEXT PRIMARY KEY,
        thread TEXT NOT NULL,
        covers INTEGER NOT NULL,
        messages TEXT NOT NULL,
        at INTEGER NOT NULL,
        about TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS proxy_views_by_thread ON proxy_views (thread, at);
    CREATE TABLE IF NOT EXISTS proxy_logs (
        thread TEXT PRIMARY KEY,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS proxy_windows (
        upstream TEXT NOT NULL,
        model TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        PRIMARY KEY (upstream, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS proxy_savings (
        thread TEXT PRIMARY KEY,
        requests INTEGER NOT NULL,
        tokens INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS proxy_running (
        address TEXT PRIMARY KEY,
        running TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;";

/// The maximum number of windows. Further ones are not learnt, because a client names the models.
const MAX_WINDOWS: usize = 10_000;

/// A log that is younger than these milliseconds may be of a proxy that is about to store its view.
const YOUNG: u64 = 60_000;

/// How much a folder holds at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) threads: usize,
    /// Bytes of the database.
    pub(super) bytes: u64,
    pub(super) now: Timestamp,
}

/// What a refusal stated, or that an answer contradicted it.
type Windows = HashMap<(String, String), Option<u64>>;

/// A view, and the link of the messages that it replaces.
#[derive(Debug)]
pub(crate) struct Row {
    pub(super) link: Link,
    pub(crate) view: View,
    pub(crate) about: About,
}

impl Row {
    /// Reads what is stored of a view.
    fn read(link: Link, covers: i64, messages: &str, about: &str) -> Option<Self> {
        let messages = serde_json::from_str(messages).ok()?;
        let Kept { about, read, has_newest } = serde_json::from_str(about).ok()?;
        let view = View { covers: usize::try_from(covers).ok()?, messages, read, has_newest };
        Some(Self { link, view, about })
    }

    /// The view with its log.
    pub(super) fn found(&self) -> Found<'_> {
        Found { view: &self.view, thread: &self.about.thread, events: self.about.events }
    }
}

/// The metadata of a view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) thread: ThreadId,
    /// The number of events in the log of the thread.
    pub(crate) events: u64,
    pub(crate) at: Timestamp,
    /// The client of the request, by its own name.
    pub(crate) client: String,
    pub(crate) model: String,
    /// The window of the model in tokens, if it was known.
    pub(crate) window: Option<u64>,
    /// The first words that a person typed into the thread.
    pub(crate) words: String,
    /// The tokens of the thread before and after the compaction.
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// What is stored as the metadata of a view.
#[derive(Serialize, Deserialize)]
struct Kept<A> {
    #[serde(flatten)]
    about: A,
    read: usize,
    has_newest: bool,
}

/// A thread, for the list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The metadata of its newest view.
    pub(crate) about: About,
    /// How many times it was compacted.
    pub(crate) times: u64,
    pub(crate) saved: Saved,
}

/// What the requests of a thread were spared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Saved {
    /// The number of requests that were sent smaller than they came.
    pub(crate) requests: u64,
    /// The tokens that these did not send.
    pub(crate) tokens: u64,
}

impl AddAssign for Saved {
    fn add_assign(&mut self, more: Self) {
        self.requests = self.requests.saturating_add(more.requests);
        self.tokens = self.tokens.saturating_add(more.tokens);
    }
}

impl Listed {
    /// What the tokens that were not sent cost at least, in dollars: their price in the provider's
    /// cache. `None` if there are none, or if the price of the model is not known.
    pub(crate) fn dollars(&self) -> Option<f64> {
        let price = prices::cached(&self.about.model).filter(|_| self.saved.tokens > 0)?;
        Some(price * self.saved.tokens as f64 / 1e6)
    }
}

/// The views of a proxy, in memory and in a database.
#[derive(Debug)]
pub struct Views {
    /// The connection of requests, which only reads. It is closed before the other one, because the
    /// last one puts the files of the database in order.
    reading: Mutex<Connection>,
    /// The connection that writes, which may wait for another process.
    connection: Mutex<Connection>,
    /// All links. The newest view of each thread is in memory; `None` marks a view that must be
    /// read from the database.
    known: Mutex<HashMap<Link, Option<Arc<Row>>>>,
    /// The windows that refusals stated, by upstream and model.
    windows: Mutex<HashMap<(String, String), u64>>,
    /// The savings and windows that are not in the database yet. They are written with the next view,
    /// with each beat, and at the end: a request must not wait for a disk.
    savings: Mutex<HashMap<ThreadId, Saved>>,
    unwritten: Mutex<Windows>,
    /// The address under which this proxy wrote that it runs.
    address: Mutex<Option<String>>,
}

impl Views {
    /// Opens the table in the database of the logs, which is created if it is missing. On Unix only
    /// the owner can read a new one.
    ///
    /// # Errors
    ///
    /// A message that names the file, if it is a symbolic link, belongs to another program, or
    /// cannot be written. Such a file is unchanged.
    pub fn open(path: &Path) -> Result<Self, String> {
        let remedy = "move it away, or name another folder with --folder";
        // The store checks whose database it is, and creates it.
        let checked = SqliteStore::open(path).map_err(|error| format!("{error} ({remedy})"))?;
        drop(checked);
        let name = path.display();
        let file = resolved(path).map_err(|error| format!("{name}: {error}"))?;
        Self::open_database(&file).map_err(|error| format!("{name}: {error} ({remedy})"))
    }

    fn open_database(file: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "secure_delete", "on")?;
        connection.execute_batch(SCHEMA)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        Self::of(connection, Connection::open_with_flags(file, flags)?)
    }

    /// Opens the table without changing anything. `None` if no proxy has used this folder.
    ///
    /// # Errors
    ///
    /// A message that names the file, if it cannot be read.
    pub(crate) fn open_read_only(path: &Path) -> Result<Option<Self>, String> {
        if !path.exists() {
            return Ok(None);
        }
        let opened = || -> Result<Option<Self>, Box<dyn Error>> {
            let connection = read_only(path)?;
            connection.busy_timeout(std::time::Duration::from_secs(10))?;
            let reading = read_only(path)?;
            let select = "SELECT name FROM sqlite_master WHERE name = 'proxy_running'";
            if column(&connection, select)?.is_empty() {
                return Ok(None);
            }
            Ok(Some(Self::of(connection, reading)?))
        };
        opened().map_err(|error| format!("{}: {error}", path.display()))
    }

    fn of(connection: Connection, reading: Connection) -> rusqlite::Result<Self> {
        reading.busy_timeout(std::time::Duration::from_secs(1))?;
        let links = column(&connection, "SELECT link FROM proxy_views")?;
        let known = links.iter().filter_map(|link| Some((link.parse().ok()?, None))).collect();
        let windows = windows(&connection)?;
        Ok(Self {
            connection: Mutex::new(connection),
            reading: Mutex::new(reading),
            known: Mutex::new(known),
            windows: Mutex::new(windows),
            savings: Mutex::default(),
            unwritten: Mutex::default(),
            address: Mutex::default(),
        })
    }

    /// Writes that this proxy runs, what it did, and what it saved. A failure is repeated by the next
    /// call. Rows of proxies that are gone are deleted.
    pub(super) fn runs(&self, running: &Running) {
        self.write_learnt();
        let gone: Vec<String> = match self.running(running.at) {
            Ok((_, gone)) => gone,
            Err(_) => Vec::new(),
        };
        let Ok(text) = serde_json::to_string(running) else { return };
        let connection = locked(&self.connection);
        for address in gone {
            let _ = connection.execute("DELETE FROM proxy_running WHERE address = ?", [address]);
        }
        let insert = "INSERT OR REPLACE INTO proxy_running VALUES (?, ?)";
        if connection.execute(insert, [&running.address, &text]).is_ok() {
            *locked(&self.address) = Some(running.address.clone());
        }
    }

    /// The proxies that run in this folder, and the addresses of those that are gone.
    pub(crate) fn running(&self, now: Timestamp) -> Result<(Vec<Running>, Vec<String>), String> {
        let rows = {
            let connection = locked(&self.reading);
            column(&connection, "SELECT running FROM proxy_running ORDER BY address")
        };
        let rows = rows.map_err(|error| error.to_string())?;
        let rows = rows.iter().filter_map(|row| serde_json::from_str::<Running>(row).ok());
        let (gone, running): (Vec<Running>, Vec<Running>) = rows.partition(|row| row.is_gone(now));
        Ok((running, gone.into_iter().map(|row| row.address).collect()))
    }

    /// The windows that refusals stated: upstream, model and tokens, in this order.
    pub(crate) fn windows(&self) -> Vec<(String, String, u64)> {
        let windows = locked(&self.windows);
        let mut all: Vec<_> = windows
            .iter()
            .map(|((upstream, model), tokens)| (upstream.clone(), model.clone(), *tokens))
            .collect();
        all.sort();
        all
    }

    /// The window of a model, in tokens, as a refusal of this upstream stated it.
    pub(crate) fn window(&self, upstream: &str, model: &str) -> Option<u64> {
        locked(&self.windows).get(&(upstream.to_owned(), model.to_owned())).copied()
    }

    /// Keeps the window that a refusal stated.
    pub(super) fn learn_window(&self, upstream: &str, model: &str, tokens: u64) {
        let key = (upstream.to_owned(), model.to_owned());
        let mut windows = locked(&self.windows);
        if windows.len() >= MAX_WINDOWS && !windows.contains_key(&key) {
            return;
        }
        windows.insert(key.clone(), tokens);
        locked(&self.unwritten).insert(key, Some(tokens));
    }

    /// Forgets the window of a model if the provider counted more tokens in a prompt that it
    /// answered.
    pub(super) fn answered(&self, upstream: &str, model: &str, tokens: u64) {
        let key = (upstream.to_owned(), model.to_owned());
        let mut windows = locked(&self.windows);
        if windows.get(&key).is_some_and(|window| tokens > *window) {
            windows.remove(&key);
            locked(&self.unwritten).insert(key, None);
        }
    }

    /// Counts a request that was sent smaller than it came.
    pub(super) fn saved(&self, thread: &ThreadId, tokens: u64) {
        let mut savings = locked(&self.savings);
        *savings.entry(thread.clone()).or_default() += Saved { requests: 1, tokens };
    }

    /// Writes the savings and the windows to the database. Those that cannot be written stay in
    /// memory.
    pub(super) fn write_learnt(&self) {
        self.write_savings();
        self.write_windows();
    }

    fn write_windows(&self) {
        const SET: &str = "INSERT OR REPLACE INTO proxy_windows VALUES (?, ?, ?)";
        const FORGET: &str = "DELETE FROM proxy_windows WHERE upstream = ? AND model = ?";
        let windows = std::mem::take(&mut *locked(&self.unwritten));
        if windows.is_empty() {
            return;
        }
        let mut connection = locked(&self.connection);
        let written = connection.transaction().and_then(|transaction| {
            for ((upstream, model), tokens) in &windows {
                let tokens = tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
                match tokens {
                    Some(tokens) => transaction.execute(SET, params![upstream, model, tokens])?,
                    None => transaction.execute(FORGET, params![upstream, model])?,
                };
            }
            transaction.commit()
        });
        drop(connection);
        if written.is_err() {
            let mut kept = locked(&self.unwritten);
            for (key, tokens) in windows {
                kept.entry(key).or_insert(tokens);
            }
        }
    }

    fn write_savings(&self) {
        const ADD: &str = "INSERT INTO proxy_savings VALUES (?, ?, ?) ON CONFLICT (thread) DO \
            UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens";
        let savings = std::mem::take(&mut *locked(&self.savings));
        if savings.is_empty() {
            return;
        }
        let mut connection = locked(&self.connection);
        let written = connection.transaction().and_then(|transaction| {
            for (thread, saved) in &savings {
                let (requests, tokens) = (saved.requests.cast_signed(), saved.tokens.cast_signed());
                transaction.execute(ADD, params![thread.as_str(), requests, tokens])?;
            }
            transaction.commit()
        });
        drop(connection);
        if written.is_err() {
            let mut kept = locked(&self.savings);
            for (thread, saved) in savings {
                *kept.entry(thread).or_default() += saved;
            }
        }
    }

    /// Whether somebody deleted the file of the database.
    pub(super) fn is_gone(&self) -> bool {
        locked(&self.reading).path().is_some_and(|path| !Path::new(path).exists())
    }

    /// Whether there are no views.
    pub(super) fn is_empty(&self) -> bool {
        locked(&self.known).is_empty()
    }

    /// The view of the longest beginning of this thread, of which this is the chain, that serves it.
    /// Views that cannot be read are skipped, and the reason is passed to `unread`.
    pub(crate) fn find(
        &self,
        chain: &Chain,
        thread: &[Message],
        unread: impl Fn(&str),
    ) -> Option<Arc<Row>> {
        chain.longest_first().find_map(|(count, link)| {
            let known = locked(&self.known).get(&link)?.clone();
            let row = match known {
                Some(row) => row,
                None => self.read(link).inspect_err(|why| unread(why)).ok().flatten()?,
            };
            (row.view.covers == count && row.view.serves(thread)).then_some(row)
        })
    }

    /// Keeps a view in memory.
    pub(super) fn hold(&self, row: Arc<Row>) {
        locked(&self.known).insert(row.link, Some(row));
    }

    /// Drops a view that was held and will not be stored.
    pub(super) fn release(&self, row: &Arc<Row>) {
        let mut known = locked(&self.known);
        let is_held =
            |held: &Option<Arc<Row>>| held.as_ref().is_some_and(|it| Arc::ptr_eq(it, row));
        if known.get(&row.link).is_some_and(is_held) {
            known.remove(&row.link);
        }
    }

    /// Stores a view. `parent` is the view that it replaces, which need not stay in memory.
    pub(super) fn insert(&self, row: Arc<Row>, parent: Option<Link>) -> Result<(), String> {
        self.write(&row).map_err(|error| error.to_string())?;
        let mut known = locked(&self.known);
        if let Some(parent) = parent.and_then(|parent| known.get_mut(&parent)) {
            *parent = None;
        }
        known.entry(row.link).or_insert(Some(row));
        Ok(())
    }

    /// Writes that a log is of a proxy, before the log is stored. So it can be deleted if no view has
    /// it, and the threads of a host in the same database never are.
    pub(super) fn knows_log(&self, thread: &ThreadId, now: Timestamp) -> Result<(), String> {
        let insert = "INSERT OR IGNORE INTO proxy_logs VALUES (?, ?)";
        let at = now.0.cast_signed();
        let written = locked(&self.connection).execute(insert, params![thread.as_str(), at]);
        written.map(drop).map_err(|error| error.to_string())
    }

    /// The threads, the one that was compacted last first, and how many there are in all.
    pub(crate) fn list(&self) -> Result<(Vec<Listed>, u64), String> {
        /// The maximum number of threads on the page.
        const SHOWN: u64 = 500;
        // With `max`, SQLite takes the other columns of the row that has it.
        const SELECT: &str = "SELECT max(at), about, count(*), coalesce(saved.requests, 0), \
            coalesce(saved.tokens, 0) FROM proxy_views LEFT JOIN proxy_savings AS saved USING (thread) \
            GROUP BY thread ORDER BY max(at) DESC";
        let unwritten = locked(&self.savings).clone();
        let connection = locked(&self.reading);
        let listed = || -> rusqlite::Result<(Vec<Listed>, u64)> {
            let (mut select, mut threads, mut count) = (connection.prepare(SELECT)?, Vec::new(), 0);
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                count += 1;
                let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                let about = serde_json::from_str::<About>(&row.get::<_, String>(1)?);
                if let (Ok(about), true) = (about, count <= SHOWN) {
                    let mut saved = Saved { requests: number(3)?, tokens: number(4)? };
                    saved += unwritten.get(&about.thread).copied().unwrap_or_default();
                    threads.push(Listed { about, times: number(2)?, saved });
                }
            }
            Ok((threads, count))
        };
        listed().map_err(|error| error.to_string())
    }

    /// The metadata of the newest view of a thread.
    pub(super) fn about(&self, thread: &ThreadId) -> Option<About> {
        let select = "SELECT about FROM proxy_views WHERE thread = ? ORDER BY at DESC LIMIT 1";
        let connection = locked(&self.reading);
        let about = connection.query_row(select, [thread.as_str()], |row| row.get::<_, String>(0));
        serde_json::from_str(&about.ok()?).ok()
    }

    /// The thread to delete, and whether a view needs it. First a log that no view has: another proxy
    /// of the folder may still have it in memory, so while one runs, only if the folder holds more
    /// than the limits. Then, if it does, the thread whose last compaction is the oldest. `kept` is
    /// never deleted.
    pub(super) fn excess(
        &self,
        limits: Limits,
        kept: &ThreadId,
    ) -> Result<Option<(ThreadId, bool)>, String> {
        let own = locked(&self.address).clone();
        let (running, _) = self.running(limits.now)?;
        let is_alone = running.iter().all(|running| Some(&running.address) == own.as_ref());
        let connection = locked(&self.connection);
        let excess = || -> rusqlite::Result<Option<(String, bool)>> {
            let oldest = "SELECT thread FROM proxy_logs WHERE thread <> ? AND at <= ? AND \
                          thread NOT IN (SELECT thread FROM proxy_views) ORDER BY at LIMIT 1";
            let age = if is_alone { 0 } else { YOUNG };
            let before = limits.now.0.saturating_sub(age).cast_signed();
            let unneeded = connection
                .query_row(oldest, params![kept.as_str(), before], |row| row.get(0))
                .optional()?;
            if let Some(thread) = unneeded.clone().filter(|_| is_alone) {
                return Ok(Some((thread, false)));
            }
            let count = "SELECT count(DISTINCT thread) FROM proxy_views";
            let threads = connection.query_row(count, [], |row| row.get::<_, i64>(0))?;
            let used = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, \
                        pragma_freelist_count, pragma_page_size";
            let bytes = connection.query_row(used, [], |row| row.get::<_, i64>(0))?;
            let is_over =
                |found: i64, most: u64| u64::try_from(found).is_ok_and(|found| found > most);
            if !is_over(threads, limits.threads as u64) && !is_over(bytes, limits.bytes) {
                return Ok(None);
            }
            if let Some(thread) = unneeded {
                return Ok(Some((thread, false)));
            }
            let oldest = "SELECT thread FROM proxy_views WHERE thread <> ? GROUP BY thread \
                          ORDER BY max(at) LIMIT 1";
            let oldest = connection.query_row(oldest, [kept.as_str()], |row| row.get(0));
            Ok(oldest.optional()?.map(|thread| (thread, true)))
        };
        let excess = excess().map_err(|error| error.to_string())?;
        Ok(excess.and_then(|(thread, is_needed)| Some((thread.parse().ok()?, is_needed))))
    }

    /// Deletes the views of a thread.
    pub(super) fn forget(&self, thread: &ThreadId) -> Result<(), String> {
        const LINKS: &str = "DELETE FROM proxy_views WHERE thread = ? RETURNING link";
        const SAVINGS: &str = "DELETE FROM proxy_savings WHERE thread = ?";
        const LOG: &str = "DELETE FROM proxy_logs WHERE thread = ?";
        let name = [thread.as_str()];
        let deleted = || -> rusqlite::Result<Vec<String>> {
            let mut connection = locked(&self.connection);
            let transaction = connection.transaction()?;
            let links = {
                let mut delete = transaction.prepare(LINKS)?;
                let links = delete.query_map(name, |row| row.get(0))?;
                links.collect::<rusqlite::Result<Vec<String>>>()?
            };
            transaction.execute(SAVINGS, name)?;
            transaction.execute(LOG, name)?;
            transaction.commit()?;
            Ok(links)
        };
        let links = deleted().map_err(|error| error.to_string())?;
        locked(&self.savings).remove(thread);
        let mut known = locked(&self.known);
        for link in links.iter().filter_map(|link| link.parse().ok()) {
            known.remove::<Link>(&link);
        }
        Ok(())
    }

    fn write(&self, row: &Row) -> Result<(), Box<dyn Error>> {
        let Row { link, view, about } = row;
        locked(&self.connection).execute(
            "INSERT OR REPLACE INTO proxy_views VALUES (?, ?, ?, ?, ?, ?)",
            params![
                link.to_string(),
                about.thread.as_str(),
                i64::try_from(view.covers)?,
                serde_json::to_string(&view.messages)?,
                i64::try_from(about.at.0)?,
                serde_json::to_string(&Kept {
                    about,
                    read: view.read,
                    has_newest: view.has_newest
                })?,
            ],
        )?;
        Ok(())
    }

    /// Reads a view, and keeps it in memory. `None` if it was deleted. One that is damaged stays so: it
    /// is an error once, and is not looked for any more.
    fn read(&self, link: Link) -> Result<Option<Arc<Row>>, String> {
        let select = "SELECT covers, messages, about FROM proxy_views WHERE link = ?";
        let row = locked(&self.reading).query_row(select, [link.to_string()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        });
        let (row, is_damaged) = match row.optional() {
            Ok(None) => return Ok(None),
            // The error of the decoder would quote the thread.
            Ok(Some((covers, messages, about))) => {
                (Row::read(link, covers, &messages, &about).ok_or("it is damaged".to_owned()), true)
            }
            Err(error) => (Err(error.to_string()), is_damage(&error)),
        };
        let mut known = locked(&self.known);
        // A view that was made meanwhile stays.
        if row.is_err() && is_damaged && known.get(&link).is_some_and(Option::is_none) {
            known.remove(&link);
        }
        let row = Arc::new(row?);
        known.insert(link, Some(Arc::clone(&row)));
        Ok(Some(row))
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        let _ = locked(&self.connection).busy_timeout(std::time::Duration::from_secs(1));
        self.write_learnt();
        if let Some(address) = locked(&self.address).take() {
            let delete = "DELETE FROM proxy_running WHERE address = ?";
            // A row that stays is taken for gone soon.
            let _ = locked(&self.connection).execute(delete, [address]);
        }
    }
}

/// Whether an error means that the file or a value in it is damaged, and not that it cannot be read now.
fn is_damage(error: &rusqlite::Error) -> bool {
    let is_of_value = matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..)
    );
    let code = error.sqlite_error_code();
    is_of_value || matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// The threads of the views in this database, the thread with the newest view first. Empty if there
/// are no views, or if they cannot be read.
pub(crate) fn latest_threads(path: &Path) -> Vec<ThreadId> {
    let Ok(connection) = read_only(path) else { return Vec::new() };
    let select = "SELECT thread FROM proxy_views GROUP BY thread ORDER BY max(at) DESC";
    let threads = column(&connection, select).unwrap_or_default();
    threads.iter().filter_map(|thread| thread.parse().ok()).collect()
}

fn read_only(path: &Path) -> Result<Connection, Box<dyn Error>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Ok(Connection::open_with_flags(resolved(path)?, flags)?)
}

/// The path with the links of its folder resolved. The file itself must be no link.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidFilename)?;
    Ok(folder.unwrap_or(Path::new(".")).canonicalize()?.join(name))
}

fn windows(connection: &Connection) -> rusqlite::Result<HashMap<(String, String), u64>> {
    let mut select = connection.prepare("SELECT upstream, model, tokens FROM proxy_windows")?;
    let rows = select.query_map([], |row| {
        Ok(((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)?.unsigned_abs()))
    });
    rows?.collect()
}

fn column(connection: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare(select)?.query_map([], |row| row.get(0))?.collect()
}

#[cfg(test)]
impl Views {
    /// The number of views in memory.
    pub(super) fn held(&self) -> usize {
        locked(&self.known).values().flatten().count()
    }
}

#[cfg(test)]
impl Row {
    pub(super) fn for_tests(number: u8, view: View, thread: ThreadId) -> Self {
        let about = About {
            thread,
            events: 1,
            at: Timestamp(number.into()),
            client: String::new(),
            model: String::new(),
            window: None,
            words: format!("thread {number}"),
            before: 9,
            after: 3,
        };
        Self { link: format!("{number:02x}").repeat(32).parse().unwrap(), view, about }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u8) -> Row {
        let thread = format!("thread-{number}").parse().unwrap();
        Row::for_tests(number, View::new(1, Vec::new()), thread)
    }

    #[test]
    fn views_are_found_again_and_the_oldest_go_first() {
        let folder = std::env::temp_dir().join(format!("threadfold-views-{}", std::process::id()));
        let path = folder.join("threads.db");
        let views = Views::open(&path).unwrap();
        for number in [1, 3, 2] {
            views.insert(Arc::new(row(number)), None).unwrap();
        }
        drop(views);
        let views = Views::open(&path).unwrap();
        let threads = [3, 2, 1].map(|number| row(number).about.thread);
        assert_eq!(latest_threads(&path), threads);
        let now = Timestamp(1_000);
        let limits = |threads| Limits { threads, bytes: u64::MAX, now };
        let [third, second, first] = &threads;
        assert_eq!(views.excess(limits(3), third), Ok(None));
        assert_eq!(views.excess(limits(2), third), Ok(Some((first.clone(), true))));
        assert_eq!(views.excess(limits(2), first), Ok(Some((second.clone(), true))));
        let small = Limits { threads: 9, bytes: 1, now };
        assert_eq!(views.excess(small, third), Ok(Some((first.clone(), true))));
        // A log that no view has, beside a proxy that may have it in memory, and without one.
        let orphan = row(9).about.thread;
        views.knows_log(&orphan, now).unwrap();
        views.knows_log(third, now).unwrap();
        let beside = Running::new("127.0.0.1:9".to_owned(), now);
        let text = serde_json::to_string(&beside).unwrap();
        let insert = "INSERT INTO proxy_running VALUES ('127.0.0.1:9', ?)";
        locked(&views.connection).execute(insert, [text]).unwrap();
        let later = |limits: Limits| Limits { now: Timestamp(62_000), ..limits };
        assert_eq!(views.excess(limits(3), third), Ok(None));
        assert_eq!(views.excess(limits(2), third), Ok(Some((first.clone(), true))), "too young");
        assert_eq!(views.excess(later(limits(2)), third), Ok(Some((orphan.clone(), false))));
        locked(&views.connection).execute("DELETE FROM proxy_running", []).unwrap();
        assert_eq!(views.excess(limits(3), third), Ok(Some((orphan.clone(), false))));
        views.forget(&orphan).unwrap();
        assert_eq!(views.excess(limits(3), third), Ok(None));
        views.forget(first).unwrap();
        assert_eq!(latest_threads(&path), [third.clone(), second.clone()]);
        assert_eq!(locked(&views.known).len(), 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_thread_is_listed_once_with_what_it_saved() {
        let folder = std::env::temp_dir().join(format!("threadfold-listed-{}", std::process::id()));
        let path = folder.join("threads.db");
        let views = Views::open(&path).unwrap();
        let other = row(9).about.thread;
        for (number, at) in [(1, 1), (2, 7), (9, 5)] {
            let mut row = row(number);
            row.about.at = Timestamp(at);
            if number != 9 {
                row.about.thread = "one".parse().unwrap();
            }
            views.insert(Arc::new(row), None).unwrap();
        }
        views.saved(&other, 30);
        views.saved(&other, 12);
        drop(views);
        let views = Views::open(&path).unwrap();
        views.saved(&other, 8);
        let (listed, all) = views.list().unwrap();
        let found: Vec<_> =
            listed.iter().map(|row| (row.about.words.as_str(), row.times, row.saved)).collect();
        let saved = Saved { requests: 3, tokens: 50 };
        assert_eq!(found, [("thread 2", 2, Saved::default()), ("thread 9", 1, saved)]);
        assert_eq!(all, 2);
        assert_eq!(views.about(&other).unwrap().words, "thread 9");
        views.forget(&other).unwrap();
        assert_eq!(views.list().unwrap().1, 1);
        drop(views);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_window_is_known_after_a_restart_until_a_longer_prompt_is_answered() {
        let folder =
            std::env::temp_dir().join(format!("threadfold-windows-{}", std::process::id()));
        let path = folder.join("threads.db");
        let views = Views::open(&path).unwrap();
        views.learn_window("http://a", "small", 8_000);
        drop(views);
        let views = Views::open(&path).unwrap();
        assert_eq!(views.window("http://a", "small"), Some(8_000));
        assert_eq!(views.window("http://b", "small"), None);
        views.answered("http://a", "small", 8_000);
        assert_eq!(views.window("http://a", "small"), Some(8_000));
        views.answered("http://a", "small", 8_001);
        drop(views);
        assert_eq!(Views::open(&path).unwrap().window("http://a", "small"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_database_of_another_program_stays_as_it_is() {
        let folder =
            std::env::temp_dir().join(format!("threadfold-foreign-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("threads.db");
        let theirs = "CREATE TABLE views (name TEXT); INSERT INTO views VALUES ('theirs')";
        Connection::open(&path).unwrap().execute_batch(theirs).unwrap();
        let before = std::fs::read(&path).unwrap();
        let words = Views::open(&path).unwrap_err();
        assert!(words.contains("threads.db") && words.contains("--folder"), "{words}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        #[cfg(unix)]
        {
            let inner = folder.join("inner");
            std::fs::create_dir_all(&inner).unwrap();
            std::os::unix::fs::symlink(&path, inner.join("threads.db")).unwrap();
            let words = Views::open(&inner.join("threads.db")).unwrap_err();
            assert!(words.contains("symbolic link"), "{words}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
