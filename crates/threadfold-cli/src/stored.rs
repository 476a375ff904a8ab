//! Finding stored threads.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::executor::block_on;
use threadfold::{
    EventLog,
    message::ThreadId,
    store::{JsonlStore, ThreadStore},
};
use threadfold_sqlite::SqliteStore;
use threadfold_terminal::first_line;

use crate::{error::Failure, log_file, proxy::views::latest_threads};

/// The maximum number of ids in a message about a missing thread.
const NAMED: usize = 5;

/// The threads at the paths that the user named.
pub(crate) struct Stored(Vec<Source>);

enum Source {
    /// A store, and the database that may hold the views of a proxy.
    Store { store: Arc<dyn ThreadStore>, views: PathBuf },
    /// A file with one log.
    Log(PathBuf),
}

impl Stored {
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        paths.iter().map(|path| source(path)).collect::<Result<_, _>>().map(Self)
    }

    /// The ids of all threads. Those of a proxy are ordered by their latest compaction, the newest
    /// first.
    pub(crate) async fn list(&self) -> Result<Vec<(usize, ThreadId)>, Failure> {
        let mut threads = Vec::new();
        for (index, source) in self.0.iter().enumerate() {
            let ids = match source {
                Source::Store { store, views } => {
                    let mut ids = store.list().await?;
                    let latest = latest_threads(views);
                    // Threads without a view were never compacted by a proxy; put them last.
                    ids.sort_by_key(|id| {
                        latest.iter().position(|other| other == id).unwrap_or(usize::MAX)
                    });
                    ids
                }
                Source::Log(path) => vec![read(path)?.thread_id().clone()],
            };
            threads.extend(ids.into_iter().map(|id| (index, id)));
        }
        Ok(threads)
    }

    pub(crate) async fn load(&self, (index, id): &(usize, ThreadId)) -> Result<EventLog, Failure> {
        match self.0.get(*index).ok_or("there is no such store")? {
            Source::Store { store, .. } => Ok(store.load(id).await?.log),
            Source::Log(path) => read(path),
        }
    }

    /// The log of the thread with this id; without an id, of the only thread.
    pub(crate) async fn thread(&self, id: Option<&str>) -> Result<EventLog, Failure> {
        let threads = self.list().await?;
        let found = match (id, threads.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(id), threads) => named(id, threads)?,
        };
        if let Some(found) = found {
            return self.load(found).await;
        }
        let known: Vec<&str> =
            threads.iter().take(NAMED).map(|(_, id)| short(id, &threads)).collect();
        let known = known.join(", ");
        Err(match id {
            _ if threads.is_empty() => "no thread is stored yet".into(),
            Some(id) => {
                let id = first_line(id, 80);
                format!("there is no thread {id:?}; the latest: {known}").into()
            }
            None => format!(
                "name a thread by its id, with --thread or as `thread`; the latest: {known}"
            )
            .into(),
        })
    }
}

/// The thread with this id, or the only one whose id begins so.
fn named<'a>(
    id: &str,
    threads: &'a [(usize, ThreadId)],
) -> Result<Option<&'a (usize, ThreadId)>, Failure> {
    if let Some(found) = threads.iter().find(|(_, thread)| thread.as_str() == id) {
        return Ok(Some(found));
    }
    let mut beginning =
        threads.iter().filter(|(_, thread)| !id.is_empty() && thread.as_str().starts_with(id));
    match (beginning.next(), beginning.next()) {
        (Some(one), Some(other)) => Err(format!(
            "the ids of several threads begin with {:?}: {} and {}",
            first_line(id, 80),
            one.1,
            other.1
        )
        .into()),
        (found, _) => Ok(found),
    }
}

/// The beginning of an id by which it is found among these; the whole if another one begins alike.
pub(crate) fn short<'a>(id: &'a ThreadId, threads: &[(usize, ThreadId)]) -> &'a str {
    let alike = threads.iter().filter(|(_, other)| other.as_str().starts_with(id.short()));
    if alike.take(2).count() > 1 { id.as_str() } else { id.short() }
}

fn source(path: &Path) -> Result<Source, Failure> {
    let name = path.display();
    let found = fs::metadata(path)
        .map_err(|error| format!("{name}: {error} (name the folder of a proxy, or a log)"))?;
    let is_folder = found.is_dir();
    let database = if is_folder { path.join("threads.db") } else { path.to_owned() };
    if is_folder && !database.exists() {
        let store = Arc::new(JsonlStore::open(path)?);
        return Ok(Source::Store { store, views: PathBuf::new() });
    }
    if !is_folder && path.extension().is_none_or(|extension| extension != "db") {
        read(path)?;
        return Ok(Source::Log(path.to_owned()));
    }
    let store = Arc::new(SqliteStore::open_read_only(&database)?);
    Ok(Source::Store { store, views: database })
}

/// Reads a log anew each time, because its agent may be writing.
fn read(path: &Path) -> Result<EventLog, Failure> {
    log_file::read(path, "a log of threadfold; `threadfold import` makes one")
}

/// Reads a thread of a store: the only one, or the one with this id.
pub(crate) fn stored_thread(path: &Path, id: Option<&str>) -> Result<EventLog, Failure> {
    let stored = Stored::open(&[path.to_owned()])?;
    let found = block_on(stored.thread(id));
    found.map_err(|error| {
        let hint = if id.is_none() { " (--thread ID names one)" } else { "" };
        format!("{}: {}{hint}", path.display(), error.line()).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_by_the_beginning_of_its_id_if_no_other_begins_so() {
        let ids = ["thread-00000000aaaaaaaaaaaaaaaaaaaaaaaa", "main", "mainly"];
        let twin = "thread-00000000bbbbbbbbbbbbbbbbbbbbbbbb";
        let threads = |ids: &[&str]| -> Vec<(usize, ThreadId)> {
            ids.iter().map(|id| (0, id.parse().unwrap())).collect()
        };
        let one = threads(&ids);
        let found = |id: &str| named(id, &one).unwrap().map(|(_, id)| id.as_str());
        assert_eq!(found("thread-00000000"), Some(ids[0]));
        assert_eq!((found("main"), found("x"), found("")), (Some("main"), None, None));
        assert_eq!(short(&one[0].1, &one), "thread-00000000");
        let two = threads(&[ids[0], twin]);
        assert!(named("thread-0", &two).is_err());
        assert_eq!(short(&two[0].1, &two), ids[0]);
    }
}
