//! Writers and servers that are killed lose nothing that was acknowledged, and double nothing.
//!
//! `THREADFOLD_KILLS` says how often each of the two is killed; the long form is
//! `THREADFOLD_KILLS=250 cargo test -p threadfold-postgres kills`. The server asks the disk for each
//! commit (`fsync`) in a fifth of the rounds: each start after a kill then takes seconds.

use std::{env, process::Child, thread, time::Duration};

use crate::killed::{Kills, write_until_killed};
use crate::support::{CHILD, Server, child, open, rows, run, suite};

const TEST: &str = "kills::killed_writers_and_servers_lose_nothing_and_double_nothing";

#[test]
fn killed_writers_and_servers_lose_nothing_and_double_nothing() {
    if let Ok(input) = env::var(CHILD) {
        let (round, address) = input.split_once(' ').unwrap();
        let store = open(address);
        if run(write_until_killed(&store, round.parse().unwrap())).is_err() {
            // The server was killed. A panic of a test would take longer.
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

/// Waits until the server has ended all other connections: it carries out a statement that a killed
/// client sent, and ends the connection after it.
fn wait_for_statements(address: &str) {
    let others = "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() \
                  AND pid <> pg_backend_pid()";
    while !rows(address, others).is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
}
