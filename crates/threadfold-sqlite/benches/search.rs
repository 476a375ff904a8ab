//! Measures searches of a thread with a long history on SQLite. Run it with `cargo bench -p
//! threadfold-sqlite --bench search`; a number after `--` is the number of messages.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench may panic")]

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::ThreadStore;
use threadfold_sqlite::SqliteStore;
use threadfold_testing::shared::searched;

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let given = std::env::args().find_map(|argument| argument.parse().ok());
    let count = given.unwrap_or(if is_test { 1_000 } else { 100_000 });
    let folder = std::env::temp_dir().join(format!("threadfold-search-{}", std::process::id()));
    let path = folder.join("threads.db");
    let store = SqliteStore::open(&path).unwrap();
    let store: Arc<dyn ThreadStore> = Arc::new(store);
    let size = || std::fs::metadata(&path).unwrap().len();
    block_on(searched::write(&store, count));
    searched::print_size("the log", size(), count);
    block_on(searched::recalled(&store, count));
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}
