//! An agent that works at random in a small window: tools of any size, several at a time, answers
//! that no model should give, stores and streams that break off, and a person who interferes.
//!
//! Whatever happens, no request is too long or illegal, every request is the thread that the store
//! holds, and every turn ends. The example `simulation` and the test of that name run it.

#![allow(clippy::wildcard_enum_match_arm, reason = "it looks for one kind of block or error")]

mod checks;
mod host;
mod kept;
mod listener;
mod numbers;
mod replay;
mod tally;
mod tool;
mod wild;

use std::{fmt, ops::Range, sync::Mutex, thread};

use host::Host;
pub(crate) use tally::Tally;

/// What the window of the simulated model holds, in tokens.
pub(crate) const WINDOW: u64 = 32_000;

/// Works so many turns, and returns what happened.
pub(crate) fn run(seed: u64, turns: u64) -> Result<Tally, Violation> {
    let violation = |turn: u64| move |what: String| Violation { seed, turn, what };
    let mut host = Host::new(seed).map_err(violation(0))?;
    for turn in 0..turns {
        host.turn(turn).map_err(violation(turn))?;
    }
    host.finish().map_err(violation(turns))
}

/// Works so many turns with each of these seeds, several at a time, and tells of each that is done.
/// One that came upon a violation stops there.
pub(crate) fn run_all(
    seeds: Range<u64>,
    turns: u64,
    done: impl Fn(u64, Result<Tally, Violation>) + Sync,
) {
    let next = Mutex::new(seeds);
    let work = || {
        // Nobody panics with the seeds in hand.
        while let Some(seed) = next.lock().ok().and_then(|mut seeds| seeds.next()) {
            done(seed, run(seed, turns));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

/// Something that must not happen, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) seed: u64,
    pub(crate) turn: u64,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, turn {}: {}", self.seed, self.turn, self.what)
    }
}
