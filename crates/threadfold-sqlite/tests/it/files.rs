//! The files of a database: their permissions, and files that are damaged, foreign or newer.

use std::fs;

use futures::executor::block_on;
use rusqlite::Connection;
use threadfold::{
    log::LogError,
    store::{StoreError, ThreadStore},
};
use threadfold_sqlite::{OpenError, SqliteStore};

use crate::support::{Folder, append, id, open, said, texts};

#[cfg(unix)]
#[test]
fn files_and_folders_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let outer = Folder::new();
    let folder = outer.join("new/deep");
    let store = open(&folder);
    append(&store, "t", &[said(0, "hi")]).unwrap();
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("."), mode("..")), (0o700, 0o700));
    for name in ["threads.db", "threads.db-wal", "threads.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let folder = Folder::new();
    drop(open(&folder.join("real")));
    std::os::unix::fs::symlink(folder.join("real/threads.db"), folder.join("threads.db")).unwrap();
    let error = SqliteStore::open(folder.join("threads.db")).unwrap_err();
    assert!(matches!(error, OpenError::Link { .. }), "{error}");
    // A link in the path of the folder is the host's decision and is followed.
    std::os::unix::fs::symlink(folder.join("real"), folder.join("linked")).unwrap();
    drop(open(&folder.join("linked")));
}

#[test]
fn a_foreign_file_is_refused_and_not_changed() {
    let folder = Folder::new();
    let text = folder.join("notes.txt");
    fs::write(&text, "Buy milk.\n".repeat(1_000)).unwrap();
    let other = folder.join("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7)")
        .unwrap();
    let marked = folder.join("marked.db");
    Connection::open(&marked).unwrap().execute_batch("PRAGMA user_version = 1").unwrap();
    for path in [text, other, marked] {
        let before = fs::read(&path).unwrap();
        let error = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_newer_database_is_refused_and_not_changed() {
    let folder = Folder::new();
    append(&open(&folder), "t", &[said(0, "hi")]).unwrap();
    let path = folder.join("threads.db");
    let set = |version: u32| {
        let database = Connection::open(&path).unwrap();
        database.pragma_update(None, "user_version", version).unwrap();
    };
    set(99);
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, newest: 1, .. }), "{error}");
    assert!(error.to_string().ends_with("has version 99; this build reads up to 1"), "{error}");
    set(1);
    assert_eq!(texts(&open(&folder), "t"), ["hi"]);
}

#[test]
fn a_path_that_is_not_a_file_is_an_error() {
    let folder = Folder::new();
    let error = SqliteStore::open(&*folder).unwrap_err();
    assert!(matches!(error, OpenError::Sqlite { .. }), "{error}");
    fs::write(folder.join("file"), "x").unwrap();
    let error = SqliteStore::open(folder.join("file/threads.db")).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    let error = SqliteStore::open(folder.join("..")).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

#[test]
fn names_of_databases_in_memory_are_refused_and_create_no_file() {
    for name in [":memory:", "file:threads?mode=memory"] {
        let error = SqliteStore::open(name).unwrap_err();
        assert!(error.to_string().contains("a store is a file"), "{error}");
        assert!(!std::path::Path::new(name).exists(), "{name}");
    }
}

#[test]
fn a_damaged_database_causes_an_error_and_never_a_wrong_log() {
    let folder = Folder::new();
    let events: Vec<_> =
        (0..200).map(|seq| said(seq, format!("{seq} {}", "x".repeat(900)))).collect();
    append(&open(&folder), "t", &events).unwrap();
    let (path, mut refused) = (folder.join("threads.db"), 0);
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4_096;
    assert!(pages > 50);
    for page in 0..pages {
        let mut bytes = whole.clone();
        bytes[page * 4_096..][..64].fill(0x5a);
        fs::write(&path, bytes).unwrap();
        match SqliteStore::open(&path) {
            Ok(store) => match block_on(store.load(&id("t"))) {
                // The damaged page belongs to something else, such as another table.
                Ok(loaded) => assert_eq!(loaded.log.events(), events),
                Err(StoreError::Unreadable { .. }) => refused += 1,
                Err(other) => panic!("page {page}: {other}"),
            },
            Err(OpenError::Foreign { .. } | OpenError::Sqlite { .. }) => refused += 1,
            Err(other) => panic!("page {page}: {other}"),
        }
        for beside in ["threads.db-wal", "threads.db-shm"] {
            let _ = fs::remove_file(folder.join(beside));
        }
    }
    assert!(refused > pages / 2, "{refused} of {pages}");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let cut = SqliteStore::open(&path).map(|store| block_on(store.load(&id("t"))));
    assert!(matches!(cut, Err(OpenError::Sqlite { .. }) | Ok(Err(_))), "{cut:?}");
}

#[test]
fn a_row_that_is_no_event_or_is_missing_is_an_error() {
    let folder = Folder::new();
    let events: Vec<_> = (0..4).map(|seq| said(seq, "hi")).collect();
    let store = open(&folder);
    append(&store, "broken", &events).unwrap();
    append(&store, "gap", &events).unwrap();
    let database = Connection::open(folder.join("threads.db")).unwrap();
    let change = "UPDATE events SET event = 'hi' WHERE thread = 'broken' AND seq = 2;
                  DELETE FROM events WHERE thread = 'gap' AND seq = 1";
    database.execute_batch(change).unwrap();
    let load = |thread: &str| match block_on(store.load(&id(thread))) {
        Err(StoreError::Unreadable { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(load("broken"), LogError::Broken { line: 4, .. }));
    assert_eq!(load("gap"), LogError::Seq { expected: 1, found: 2 });
}
