//! A writer that is killed loses nothing that it acknowledged, and doubles nothing.
//!
//! `THREADFOLD_KILLS` says how often it is killed.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    thread,
    time::Duration,
};

use futures::executor::block_on;
use threadfold::store::ThreadStore;

use crate::support::{CHILD, Folder, child, id, open, said, texts};

/// How many events an append of the child has.
const BATCH: u64 = 3;

#[test]
fn killed_writers_lose_nothing_and_double_nothing() {
    if let Ok(input) = env::var(CHILD) {
        let (round, folder) = input.split_once(' ').unwrap();
        write_for_ever(round, Path::new(folder));
    }
    let kills = env::var("THREADFOLD_KILLS").map_or(100, |kills| kills.parse().unwrap());
    let folder = Folder::new();
    let (mut acknowledged, mut in_doubt) = (Vec::new(), 0);
    for round in 0..kills {
        let of_round = killed_after(&folder, round, round * 7 % 11);
        let before = acknowledged.len();
        acknowledged.extend(of_round);
        let stored = texts(&open(&folder), "t");
        let (known, rest) = stored.split_at(acknowledged.len().min(stored.len()));
        assert_eq!(known, acknowledged, "round {round}, acknowledged from {before} on");
        // The append that was cut off is there as a whole or not at all.
        let next = (acknowledged.len() - before) as u64;
        let cut_off: Vec<String> = (next..next + BATCH).map(|k| text(round, k)).collect();
        assert!(rest.is_empty() || rest == cut_off, "round {round}: {rest:?}");
        in_doubt += u64::from(!rest.is_empty());
        acknowledged = stored;
    }
    println!(
        "{kills} kills, {} events, {in_doubt} appends stored but not acknowledged",
        acknowledged.len()
    );
    assert!(acknowledged.len() as u64 > kills * BATCH);
}

/// Starts a writer, kills it after this many acknowledgements, and returns the texts that it
/// acknowledged.
fn killed_after(folder: &Path, round: u64, acknowledgements: u64) -> Vec<String> {
    let test = "kills::killed_writers_lose_nothing_and_double_nothing";
    let mut writer = child(test, &format!("{round} {}", folder.display()));
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let (mut read, mut seen) = (String::new(), 0);
    while seen <= acknowledgements {
        let before = read.len();
        assert!(output.read_line(&mut read).unwrap() > 0, "the writer ended: {read}");
        seen += u64::from(read[before..].starts_with("acknowledged"));
    }
    // Any point of the next append, from its first statement to the answer.
    thread::sleep(Duration::from_micros(round * 131 % 2_000));
    writer.kill().unwrap();
    writer.wait().unwrap();
    output.read_to_string(&mut read).unwrap();
    // A line without its end was not read by anybody.
    let whole = &read[..=read.rfind('\n').unwrap()];
    let mut counts = whole.lines().filter_map(|line| line.strip_prefix("acknowledged "));
    let count = counts.next_back().unwrap();
    (0..count.parse().unwrap()).map(|k| text(round, k)).collect()
}

/// The child: appends to what it finds, and says after each append how many events are stored.
fn write_for_ever(round: &str, folder: &Path) -> ! {
    let (store, round) = (open(folder), round.parse().unwrap());
    let begin = block_on(store.load(&id("t"))).unwrap().log.len();
    let mut out = std::io::stdout();
    // libtest has begun a line.
    out.write_all(b"\nacknowledged 0\n").unwrap();
    for k in (0..).step_by(3) {
        let events: Vec<_> = (k..k + BATCH).map(|k| said(begin + k, text(round, k))).collect();
        block_on(store.append(&id("t"), begin + k, &events)).unwrap();
        out.write_all(format!("acknowledged {}\n", k + BATCH).as_bytes()).unwrap();
    }
    unreachable!("it is killed")
}

fn text(round: u64, k: u64) -> String {
    format!("{k} of round {round} {}", "x".repeat(200))
}
