//! Measures the time of an append, compared with a bare insert into the same kind of table with the
//! same durability. Both run alternately in the same process. Run it with `cargo bench -p
//! threadfold-sqlite`.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use rusqlite::{Connection, params};
use threadfold::{
    Message,
    log::{Event, LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{LeaseStore, ThreadStore},
};
use threadfold_sqlite::SqliteStore;

const APPENDS: u64 = 500;

fn main() {
    let folder = std::env::temp_dir().join(format!("threadfold-bench-{}", std::process::id()));
    let store = SqliteStore::open(folder.join("threads.db")).unwrap();
    let bare = bare(&folder);
    println!("median and 90th percentile of {APPENDS} appends of one event, in microseconds");
    for bytes in [300, 3_000, 30_000] {
        row(&store, &bare, bytes);
    }
    drop((store, bare));
    std::fs::remove_dir_all(folder).unwrap();
}

fn row(store: &SqliteStore, bare: &Connection, bytes: usize) {
    let (plain, leased): (ThreadId, ThreadId) =
        (format!("plain-{bytes}").parse().unwrap(), format!("leased-{bytes}").parse().unwrap());
    let forever = store.acquire_lease(&leased, "bench", Timestamp(0), Duration::MAX);
    let lease = block_on(forever).unwrap();
    let (log, mut inserts, mut appends, mut fenced) = (Some(LogId(7)), vec![], vec![], vec![]);
    for seq in 0..APPENDS {
        let event = Event::MessageAppended(Message::user("x".repeat(bytes)));
        let events = [LoggedEvent { seq, at: Timestamp(seq), event }];
        let line = serde_json::to_string(&events[0]).unwrap();
        inserts.push(timed(|| {
            let insert = "INSERT INTO bare (thread, seq, event) VALUES (?1, ?2, ?3)";
            let mut insert = bare.prepare_cached(insert).unwrap();
            insert.execute(params![plain.as_str(), seq, line]).unwrap();
        }));
        appends.push(timed(|| block_on(store.append(&plain, log, seq, &events)).unwrap()));
        fenced.push(timed(|| block_on(store.append_leased(&lease, log, seq, &events)).unwrap()));
    }
    let yardstick = median(&mut inserts);
    println!("{bytes} bytes");
    for (name, mut times) in [("bare", inserts), ("append", appends), ("with a lease", fenced)] {
        let median = median(&mut times);
        let high = times.get(times.len() * 9 / 10).unwrap();
        println!("  {name:<14}{median:>8}{high:>8}{:>8.2} x", ratio(median, yardstick));
    }
}

/// A table of its own database, as durable as the store's.
fn bare(folder: &Path) -> Connection {
    let bare = Connection::open(folder.join("bare.db")).unwrap();
    let table = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
                 CREATE TABLE bare (thread TEXT NOT NULL, seq INTEGER NOT NULL, event TEXT NOT NULL,
                                    PRIMARY KEY (thread, seq)) STRICT;";
    bare.execute_batch(table).unwrap();
    bare
}

fn timed(work: impl FnOnce()) -> u128 {
    let since = Instant::now();
    work();
    since.elapsed().as_micros()
}

fn median(times: &mut [u128]) -> u128 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "microseconds are few")]
fn ratio(time: u128, yardstick: u128) -> f64 {
    time as f64 / yardstick as f64
}
