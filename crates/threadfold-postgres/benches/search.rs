//! Measures searches of a thread with a long history on Postgres. Run it with
//! `crates/threadfold-postgres/tests/postgres with cargo bench -p threadfold-postgres --bench
//! search`; a number after `--` is the number of messages.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench may panic")]

use std::sync::Arc;

use threadfold::ThreadStore;
use threadfold_postgres::PostgresStore;
use threadfold_testing::shared::searched;
use tokio_postgres::NoTls;

#[tokio::main]
async fn main() {
    let Ok(address) = std::env::var("THREADFOLD_POSTGRES") else {
        println!("skipped: THREADFOLD_POSTGRES names no server");
        return;
    };
    let is_test = std::env::args().any(|argument| argument == "--test");
    let given = std::env::args().find_map(|argument| argument.parse().ok());
    let count = given.unwrap_or(if is_test { 1_000 } else { 100_000 });
    let store = PostgresStore::open(&address).await.unwrap();
    let store: Arc<dyn ThreadStore> = Arc::new(store);
    searched::write(&store, count).await;
    searched::print_size("the log", size(&address).await, count);
    searched::recalled(&store, count).await;
}

/// The size of our tables with their indexes, in bytes.
async fn size(address: &str) -> u64 {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    let size = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class \
                WHERE relnamespace = 'threadfold'::regnamespace AND relkind = 'r'";
    client.query_one(size, &[]).await.unwrap().get::<_, i64>(0).unsigned_abs()
}
