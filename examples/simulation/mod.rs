//! An agent that acts at random: tools with results of any size, several at a time, answers that no
//! model should give, stores and streams that break off, and a user who interferes. Each [`World`]
//! has another strategy, a window that is known or not, and a provider that counts in its own way.
//!
//! Whatever happens, no session locks up, no request is too long or illegal, every request equals
//! the stored thread, every compaction has one start and one end, and every turn ends. The example
//! `simulation` and the test of that name run it.

#![allow(clippy::wildcard_enum_match_arm, reason = "it looks for one kind of block or error")]

pub(crate) mod books;
mod checks;
mod fault;
mod host;
pub(crate) mod hosts;
mod kept;
mod listener;
mod tally;
mod tool;
mod wild;
mod world;

use std::{sync::Mutex, thread};

use fault::Fault;
pub(crate) use fault::{Kind, Violation};
use host::Host;
pub(crate) use tally::Tally;
pub(crate) use world::World;

/// Runs this many turns in a world. Returns the counts up to the first violation.
pub(crate) fn run(world: &World, seed: u64, turns: u64) -> (Tally, Option<Violation>) {
    let violation =
        |turn, fault: Fault| Some(Violation { world: world.clone(), seed, turn, fault });
    let mut host = match Host::new(world, seed) {
        Ok(host) => host,
        Err(fault) => return (Tally::default(), violation(0, fault)),
    };
    for turn in 0..turns {
        if let Err(fault) = host.turn(turn) {
            return (host.tally(), violation(turn, fault));
        }
    }
    let ended = host.finish();
    (host.tally(), ended.err().and_then(|fault| violation(turns, fault)))
}

/// Runs all worlds of the selected strategies, several at a time, and reports each that has ended.
/// All worlds together have about `turns` turns. A world ends at its first violation.
pub(crate) fn run_all(
    seed: u64,
    turns: u64,
    wanted: impl Fn(&str) -> bool,
    done: impl Fn(&World, Tally, Option<Violation>) + Sync,
) {
    let worlds = World::all();
    let all: u64 = worlds.iter().map(|(_, turns)| turns).sum();
    let lives = worlds.iter().enumerate().map(|(place, (world, share))| {
        let seed = seed.wrapping_mul(worlds.len() as u64) + place as u64;
        (world, seed, (share * turns).div_ceil(all))
    });
    let lives: Vec<_> = lives.filter(|(world, ..)| wanted(&world.strategy)).collect();
    let next = Mutex::new(lives.into_iter());
    let work = || {
        // The lock is never poisoned, because no code panics while it is held.
        while let Some((world, seed, turns)) = next.lock().ok().and_then(|mut lives| lives.next()) {
            let (tally, violation) = run(world, seed, turns);
            done(world, tally, violation);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}
