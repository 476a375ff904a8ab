//! Writers and servers that are killed lose nothing that was acknowledged, and double nothing.
//!
//! `THREADFOLD_KILLS` says how often each of the two is killed; the long form is
//! `THREADFOLD_KILLS=250 cargo test -p threadfold-postgres kills`. The server asks the disk for each
//! commit (`fsync`) in a fifth of the rounds: each start after a kill then takes seconds.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    thread,
    time::Duration,
};

use threadfold::store::ThreadStore;

use crate::support::{CHILD, Server, child, id, open, run, said, texts};

/// How many events an append of the child has.
const BATCH: u64 = 3;

const TEST: &str = "kills::killed_writers_and_servers_lose_nothing_and_double_nothing";

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Writer,
    Server,
}

#[test]
fn killed_writers_and_servers_lose_nothing_and_double_nothing() {
    if let Ok(input) = env::var(CHILD) {
        let (round, address) = input.split_once(' ').unwrap();
        write_for_ever(round, address);
    }
    let kills = env::var("THREADFOLD_KILLS").map_or(10, |kills| kills.parse().unwrap());
    for (fsync, kills) in [("off", kills - kills / 5), ("on", kills / 5)] {
        let Some(server) = Server::with_fsync(fsync) else { return };
        lose_nothing(server, kills);
        println!("with fsync {fsync}");
    }
}

fn lose_nothing(mut server: Server, kills: u64) {
    let address = server.database();
    drop(open(&address));
    let (mut acknowledged, mut in_doubt) = (Vec::new(), 0);
    for round in 0..2 * kills {
        let victim = if round % 2 == 0 { Victim::Writer } else { Victim::Server };
        let of_round = killed_after(&mut server, &address, victim, round);
        let before = acknowledged.len();
        acknowledged.extend(of_round);
        let stored = texts(&open(&address), "t");
        let (known, rest) = stored.split_at(acknowledged.len().min(stored.len()));
        assert_eq!(known, acknowledged, "{victim:?} {round}, acknowledged from {before} on");
        // The append that was cut off is there as a whole or not at all.
        let next = (acknowledged.len() - before) as u64;
        let cut_off: Vec<String> = (next..next + BATCH).map(|k| text(round, k)).collect();
        assert!(rest.is_empty() || rest == cut_off, "{victim:?} {round}: {rest:?}");
        in_doubt += u64::from(!rest.is_empty());
        acknowledged = stored;
    }
    println!(
        "{kills} writers and {kills} servers killed, {} events, {in_doubt} appends stored but not acknowledged",
        acknowledged.len()
    );
    assert!(acknowledged.len() as u64 > kills * BATCH);
}

/// Starts a writer, kills it or the server after some acknowledgements, and returns the texts that
/// it acknowledged.
fn killed_after(server: &mut Server, address: &str, victim: Victim, round: u64) -> Vec<String> {
    let mut writer = child(TEST, &format!("{round} {address}"));
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let (mut read, mut seen) = (String::new(), 0);
    while seen <= round * 7 % 11 {
        let before = read.len();
        assert!(output.read_line(&mut read).unwrap() > 0, "the writer ended: {read}");
        seen += u64::from(read[before..].starts_with("acknowledged"));
    }
    // Any point of the next append, from its first byte to the answer.
    thread::sleep(Duration::from_micros(round * 131 % 3_000));
    match victim {
        Victim::Writer => writer.kill().unwrap(),
        Victim::Server => server.crash(),
    }
    writer.wait().unwrap();
    output.read_to_string(&mut read).unwrap();
    // A line without its end was not read by anybody.
    let whole = &read[..=read.rfind('\n').unwrap()];
    let mut counts = whole.lines().filter_map(|line| line.strip_prefix("acknowledged "));
    let count = counts.next_back().unwrap();
    (0..count.parse().unwrap()).map(|k| text(round, k)).collect()
}

/// The child: appends to what it finds, and says after each append how many events are stored.
fn write_for_ever(round: &str, address: &str) -> ! {
    let (store, round) = (open(address), round.parse().unwrap());
    let begin = run(store.load(&id("t"))).unwrap().log.len();
    let mut out = std::io::stdout();
    // libtest has begun a line.
    out.write_all(b"\nacknowledged 0\n").unwrap();
    for k in (0..).step_by(3) {
        let events: Vec<_> = (k..k + BATCH).map(|k| said(begin + k, text(round, k))).collect();
        if run(store.append(&id("t"), begin + k, &events)).is_err() {
            // The server was killed. A panic of a test would take longer.
            std::process::exit(1);
        }
        out.write_all(format!("acknowledged {}\n", k + BATCH).as_bytes()).unwrap();
    }
    unreachable!("it or the server is killed")
}

fn text(round: u64, k: u64) -> String {
    format!("{k} of round {round} {}", "x".repeat(200))
}
