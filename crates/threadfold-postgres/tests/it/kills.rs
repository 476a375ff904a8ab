//! Killed writers and servers lose no acknowledged event and store none twice.
//!
//! `THREADFOLD_KILLS` is the number of kills of each of the two. A long run is
//! `THREADFOLD_KILLS=250 cargo test -p threadfold-postgres kills`. The server uses `fsync` in only
//! a fifth of the rounds, because a restart after a kill then takes seconds.

use std::{env, process::Child, thread, time::Duration};

use threadfold_testing::shared::killed::{Kills, write_until_killed};

use crate::support::{CHILD, Server, child, open, rows, run, suite};

const TEST: &str = "kills::killed_writers_and_servers_lose_nothing_and_store_nothing_twice";

#[test]
fn killed_writers_and_servers_lose_nothing_and_store_nothing_twice() {
    if let Ok(input) = env::var(CHILD) {
        let (round, address) = input.split_once(' ').unwrap();
        let store = open(address);
        if run(write_until_killed(&store, round.parse().unwrap())).is_err() {
            // The server was killed. Exiting is faster than a panic of the test.
            std::process::exit(1);
        }
    }
    let kills = env::var("THREADFOLD_KILLS").map_or(10, |kills| kills.parse().unwrap());
    for (fsync, kills) in [("off", kills - kills / 5), ("on", kills / 5)] {
        let Some(mut server) = Server::with_fsync(fsync) else { return };
        let (address, mut rounds) = (server.database(), Kills::default());
        drop(open(&address));
        while rounds.rounds() < 2 * kills {
            let writer = child(TEST, &format!("{} {address}", rounds.rounds()));
            let of_writer = rounds.rounds().is_multiple_of(2);
            let kill = |writer: &mut Child| {
                if of_writer {
                    return writer.kill();
                }
                server.crash();
                Ok(())
            };
            let reopened = async || {
                wait_for_statements(&address);
                open(&address)
            };
            suite(rounds.round(writer, kill, reopened));
        }
        println!("{rounds}: of {kills} writers and {kills} servers, with fsync {fsync}");
        assert!(rounds.events() as u64 >= 3 * kills);
    }
}

/// Waits until the server has closed all other connections. It completes the last statement of a
/// killed client before it closes the connection.
fn wait_for_statements(address: &str) {
    let others = "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() \
                  AND pid <> pg_backend_pid()";
    while !rows(address, others).is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
}
