//! The tables, and the migrations of older databases.

use rusqlite::{Connection, TransactionBehavior};

/// The application id in the header of the file, by which a database of this crate is recognised:
/// `tfld` in ASCII.
const APPLICATION: u32 = 0x7466_6c64;

/// The statements that lead from each version to the next. Version 0 is an empty database. A
/// statement is never changed after a release: append one.
const MIGRATIONS: [&str; 1] = [r#"
    CREATE TABLE logs (
        thread TEXT PRIMARY KEY,
        log    TEXT  -- the id of the log, if the writer gave one
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        thread TEXT    NOT NULL,
        seq    INTEGER NOT NULL,
        event  TEXT    NOT NULL,  -- the line, byte for byte
        PRIMARY KEY (thread, seq)
    ) STRICT;
    -- A search for a key in a table without row ids reads all of a row, so large values are not in
    -- `logs`.
    CREATE TABLE bases (
        thread TEXT    NOT NULL UNIQUE,
        seq    INTEGER NOT NULL,
        base   TEXT    NOT NULL,  -- what the events before seq amount to
        facts  TEXT    NOT NULL   -- the last column: opening a thread does not read its pages
    ) STRICT;
    CREATE TRIGGER delete_base AFTER DELETE ON logs
        BEGIN DELETE FROM bases WHERE thread = OLD.thread; END;
    -- A fence is never given twice, even if its row is gone: a worker that slept might know it.
    CREATE TABLE leases (
        fence   INTEGER PRIMARY KEY AUTOINCREMENT,
        thread  TEXT    NOT NULL UNIQUE,
        worker  TEXT    NOT NULL,
        expires INTEGER NOT NULL  -- in milliseconds since 1970
    ) STRICT;
"#];

/// The version that this build writes.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The contents of a database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A database of this crate, of this version; 0 if it is empty.
    Ours(u32),
    /// A database of another program.
    Foreign,
}

/// Reads the kind and version of the database without changing it.
pub(crate) fn content(connection: &Connection) -> rusqlite::Result<Content> {
    let query = "SELECT (SELECT application_id FROM pragma_application_id), \
                        (SELECT user_version FROM pragma_user_version), \
                        (SELECT count(*) FROM sqlite_schema)";
    let found = connection.query_row(query, [], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get::<_, i64>(2)?))
    });
    Ok(match found? {
        (APPLICATION, version, _) => Content::Ours(version),
        (0, 0, 0) => Content::Ours(0),
        _ => Content::Foreign,
    })
}

/// Migrates the database to [`VERSION`], and returns its content afterwards. A foreign or newer
/// database is not changed.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<Content> {
    migrate_by(connection, &MIGRATIONS)
}

/// Carries out the migrations that the database has not had. All of them are one transaction, so a
/// crash leaves the earlier version.
fn migrate_by(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<Content> {
    let missing = |found| match found {
        Content::Ours(version) => {
            let done = usize::try_from(version).unwrap_or(usize::MAX);
            migrations.get(done..).unwrap_or_default()
        }
        Content::Foreign => &[],
    };
    if missing(content(connection)?).is_empty() {
        return content(connection);
    }
    let writing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited for the write lock.
    let found = content(&writing)?;
    if !missing(found).is_empty() {
        for migration in missing(found) {
            writing.execute_batch(migration)?;
        }
        writing.pragma_update(None, "application_id", APPLICATION)?;
        writing.pragma_update(None, "user_version", migrations.len())?;
    }
    writing.commit()?;
    content(connection)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::executor::block_on;
    use threadfold::{
        Message, Plan, ThreadStore,
        compact::Splice,
        log::{CompactionRecord, Event},
        message::{CompactionId, CompactionReason, ThreadId, Timestamp},
        store::Journal,
    };

    use super::*;
    use crate::SqliteStore;

    const LATER: &str = "ALTER TABLE logs ADD COLUMN later TEXT";

    fn later(connection: &Connection) -> rusqlite::Result<Option<String>> {
        connection.query_row("SELECT later FROM logs", [], |row| row.get(0))
    }

    #[test]
    fn an_older_database_is_migrated_with_its_rows_and_only_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        let [first] = MIGRATIONS;
        assert_eq!(migrate_by(&mut connection, &[first]), Ok(Content::Ours(1)));
        connection.execute("INSERT INTO logs VALUES ('t', NULL)", []).unwrap();
        for _ in 0..2 {
            let migrated = migrate_by(&mut connection, &[first, LATER]);
            assert_eq!((migrated, later(&connection)), (Ok(Content::Ours(2)), Ok(None)));
        }
        assert_eq!(migrate(&mut connection), Ok(Content::Ours(2)), "it is newer");
    }

    #[test]
    fn the_base_of_a_log_is_deleted_with_it() {
        let folder = std::env::temp_dir().join(format!("threadfold-base-{}", std::process::id()));
        let path = folder.join("threads.db");
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        let thread: ThreadId = "t".parse().unwrap();
        let mut journal = block_on(Journal::open(store.clone(), thread.clone())).unwrap();
        let text = Message::user("Always run the tests. ".repeat(2_000));
        journal.append(Timestamp(1), Event::MessageAppended(text)).unwrap();
        let plan = Plan::from_splices(1, vec![Splice { at: 0..1, insert: vec![] }]);
        let record = CompactionRecord::new(CompactionId(0), CompactionReason::Threshold, "t", plan);
        journal.append(Timestamp(2), Event::Compacted(Box::new(record))).unwrap();
        block_on(journal.flush()).unwrap();
        assert!(block_on(store.load_base(&thread)).unwrap().is_some());
        let log = block_on(store.load(&thread)).unwrap().id.unwrap();
        assert!(block_on(store.load_facts(&thread, log, 2)).unwrap().is_some());
        let connection = Connection::open(&path).unwrap();
        connection.execute("DELETE FROM logs", []).unwrap();
        assert!(block_on(store.load_base(&thread)).unwrap().is_none());
        drop((journal, store));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_migration_that_fails_leaves_the_earlier_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let [first] = MIGRATIONS;
        assert!(migrate_by(&mut connection, &[first, LATER, "no SQL"]).is_err());
        assert_eq!(content(&connection), Ok(Content::Ours(VERSION)));
        assert!(later(&connection).is_err(), "half of it is there");
    }
}
