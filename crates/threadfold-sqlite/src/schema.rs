//! The tables, and how an older database gets them.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a database of this crate in the header of its file: `tfld` in ASCII.
const APPLICATION: u32 = 0x7466_6c64;

/// The statements that lead from each version to the next. Version 0 is an empty database. A
/// statement is never changed after a release: append one.
const MIGRATIONS: [&str; 2] = [
    "
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
    CREATE TABLE entries (
        thread     TEXT    NOT NULL,
        compaction INTEGER NOT NULL,
        number     INTEGER NOT NULL,
        entry      TEXT    NOT NULL,
        PRIMARY KEY (thread, compaction, number)
    ) STRICT;
    CREATE TABLE runs (
        thread TEXT PRIMARY KEY,
        run    TEXT NOT NULL
    ) STRICT;
    -- A fence is never given twice, even if its row is gone: a worker that slept might know it.
    CREATE TABLE leases (
        fence   INTEGER PRIMARY KEY AUTOINCREMENT,
        thread  TEXT    NOT NULL UNIQUE,
        worker  TEXT    NOT NULL,
        expires INTEGER NOT NULL  -- in milliseconds since 1970
    ) STRICT;
",
    "
    ALTER TABLE logs ADD COLUMN base_seq INTEGER;
    ALTER TABLE logs ADD COLUMN base TEXT;  -- what the events before base_seq amount to
    -- The facts in these events. In a column of its own, after the others: opening a thread does
    -- not read its pages.
    ALTER TABLE logs ADD COLUMN base_facts TEXT;
",
];

/// The version that this build writes.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A database of this crate, of this version; 0 if it is empty.
    Ours(u32),
    /// A database of another program.
    Foreign,
}

/// Reads what the database is, and changes nothing.
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

/// Migrates the database to [`VERSION`], and returns what it is afterwards. A foreign or newer
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
    // Another process may have migrated while this one waited for the right to write.
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
    use super::*;

    const LATER: &str = "ALTER TABLE runs ADD COLUMN later TEXT";

    fn later(connection: &Connection) -> rusqlite::Result<Option<String>> {
        connection.query_row("SELECT later FROM runs", [], |row| row.get(0))
    }

    #[test]
    fn an_older_database_is_migrated_with_its_rows_and_only_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        let [first, second] = MIGRATIONS;
        assert_eq!(migrate_by(&mut connection, &[first]), Ok(Content::Ours(1)));
        connection.execute("INSERT INTO runs VALUES ('t', '{}')", []).unwrap();
        for _ in 0..2 {
            let migrated = migrate_by(&mut connection, &[first, second, LATER]);
            assert_eq!((migrated, later(&connection)), (Ok(Content::Ours(3)), Ok(None)));
        }
        assert_eq!(migrate(&mut connection), Ok(Content::Ours(3)), "it is newer");
    }

    #[test]
    fn a_migration_that_fails_leaves_the_earlier_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let [first, second] = MIGRATIONS;
        assert!(migrate_by(&mut connection, &[first, second, LATER, "no SQL"]).is_err());
        assert_eq!(content(&connection), Ok(Content::Ours(VERSION)));
        assert!(later(&connection).is_err(), "half of it is there");
    }
}
