//! Measures the time of an append, compared with a bare insert into the same kind of table with the
//! same durability on the same server. Both run alternately in the same process. Run it with
//! `crates/threadfold-postgres/tests/postgres with cargo bench -p threadfold-postgres`.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

use std::time::{Duration, Instant};

use threadfold::{
    Message,
    log::{Event, LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{LeaseStore, ThreadStore},
};
use threadfold_postgres::PostgresStore;
use tokio_postgres::{Client, NoTls, Statement};

const APPENDS: u64 = 500;

#[tokio::main]
async fn main() {
    let Ok(address) = std::env::var("THREADFOLD_POSTGRES") else {
        println!("skipped: THREADFOLD_POSTGRES names no server");
        return;
    };
    let store = PostgresStore::open(&address).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    let table = "CREATE TABLE public.bare (thread text, seq bigint, event text NOT NULL,
                                           PRIMARY KEY (thread, seq))";
    client.batch_execute(table).await.unwrap();
    let insert = client.prepare("INSERT INTO public.bare VALUES ($1, $2, $3)").await.unwrap();
    println!("median and 90th percentile of {APPENDS} appends of one event, in microseconds");
    for bytes in [300, 3_000, 30_000] {
        let before = size(&client).await;
        row(&store, &client, &insert, bytes).await;
        let events = i64::try_from(2 * APPENDS).unwrap();
        println!("  on the disk {:>10} bytes an event", (size(&client).await - before) / events);
    }
}

async fn row(store: &PostgresStore, bare: &Client, insert: &Statement, bytes: usize) {
    let (plain, leased): (ThreadId, ThreadId) =
        (format!("plain-{bytes}").parse().unwrap(), format!("leased-{bytes}").parse().unwrap());
    let forever = store.acquire_lease(&leased, "bench", Timestamp(0), Duration::MAX);
    let lease = forever.await.unwrap();
    let (log, mut inserts, mut appends, mut fenced) = (Some(LogId(7)), vec![], vec![], vec![]);
    for seq in 0..APPENDS {
        let event = Event::MessageAppended(Message::user("x".repeat(bytes)));
        let events = [LoggedEvent { seq, at: Timestamp(seq), event }];
        let line = serde_json::to_string(&events[0]).unwrap();
        let place = i64::try_from(seq).unwrap();
        inserts.push(
            timed(async { bare.execute(insert, &[&plain.as_str(), &place, &line]).await.unwrap() })
                .await,
        );
        appends.push(timed(async { store.append(&plain, log, seq, &events).await.unwrap() }).await);
        fenced.push(
            timed(async { store.append_leased(&lease, log, seq, &events).await.unwrap() }).await,
        );
    }
    let yardstick = median(&mut inserts);
    println!("{bytes} bytes");
    for (name, mut times) in [("bare", inserts), ("append", appends), ("with a lease", fenced)] {
        let median = median(&mut times);
        let high = times.get(times.len() * 9 / 10).unwrap();
        println!("  {name:<14}{median:>8}{high:>8}{:>8.2} x", ratio(median, yardstick));
    }
}

/// The size of the event table with its index, in bytes.
async fn size(client: &Client) -> i64 {
    let size = "SELECT pg_total_relation_size('threadfold.events')";
    client.query_one(size, &[]).await.unwrap().get(0)
}

async fn timed<T>(work: impl Future<Output = T>) -> u128 {
    let since = Instant::now();
    work.await;
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
