//! The tables, and the migrations of older databases.

use tokio_postgres::{Client, Error, Row};

/// The statements that lead from each version to the next. Version 0 is a database without our
/// schema. A statement is never changed after a release: append one.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

/// The version that this build writes.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The content of the schema `threadfold` of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The schema of this crate in this version; 0 if there is none.
    Ours(u32),
    /// The schema of another program.
    Foreign,
}

/// Migrates the database to [`VERSION`], and returns its content afterwards. A foreign or newer
/// schema is not changed.
pub(crate) async fn migrate(client: &mut Client) -> Result<Content, Error> {
    migrate_by(client, &MIGRATIONS).await
}

/// Carries out the migrations that the database has not had. All of them are one transaction, so a
/// crash leaves the earlier version.
async fn migrate_by(client: &mut Client, migrations: &[&str]) -> Result<Content, Error> {
    let missing = |found| match found {
        Content::Ours(version) => {
            let done = usize::try_from(version).unwrap_or(usize::MAX);
            migrations.get(done..).unwrap_or_default()
        }
        Content::Foreign => &[],
    };
    let found = content(client).await?;
    if missing(found).is_empty() {
        return Ok(found);
    }
    let writing = client.transaction().await?;
    // Another process may be migrating. This lock waits for it, and later statements see its
    // result.
    writing.batch_execute("SELECT pg_advisory_xact_lock(1952869476)").await?;
    let found = content(writing.client()).await?;
    for migration in missing(found) {
        if found == Content::Ours(0) {
            writing.batch_execute(CREATE).await?;
        }
        writing.batch_execute(migration).await?;
    }
    if !missing(found).is_empty() {
        let update = "UPDATE threadfold.version SET version = $1";
        let version = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
        writing.execute(update, &[&version]).await?;
    }
    writing.commit().await?;
    content(client).await
}

/// Creates the schema and the table with its version, before the first migration.
const CREATE: &str = "
    CREATE SCHEMA IF NOT EXISTS threadfold;
    CREATE TABLE IF NOT EXISTS threadfold.version (version integer NOT NULL);
    INSERT INTO threadfold.version SELECT 0 WHERE NOT EXISTS (SELECT FROM threadfold.version);
";

/// Reads the kind and version of the schema without changing it.
async fn content(client: &Client) -> Result<Content, Error> {
    // A prepared statement cannot name a table that may not exist.
    let exists = "SELECT to_regclass('threadfold.version') IS NOT NULL, \
                         EXISTS (SELECT FROM pg_class \
                                 WHERE relnamespace = to_regnamespace('threadfold'))";
    let exists = client.query_one(exists, &[]).await?;
    match (exists.try_get(0)?, exists.try_get(1)?) {
        (true, _) => {
            let version = client.query_opt("SELECT version FROM threadfold.version", &[]).await?;
            let version = version.map(|row: Row| row.try_get::<_, i32>(0)).transpose()?;
            let version = version.and_then(|version| u32::try_from(version).ok());
            Ok(version.map_or(Content::Foreign, Content::Ours))
        }
        (false, true) => Ok(Content::Foreign),
        (false, false) => Ok(Content::Ours(0)),
    }
}
