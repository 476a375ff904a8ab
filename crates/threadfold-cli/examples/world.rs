//! Runs simulated worlds, in which everything of the library works at once and everything around it
//! fails now and then, and checks the promises at each step.
//!
//! ```text
//! cargo run -q --release -p threadfold-cli --example world -- [--seed S] [--worlds N] [--seconds T]
//! cargo run -q -p threadfold-cli --example world -- --replay S
//! ```
//!
//! In each world two workers take threads over from each other, a loop compacts its own vector, and
//! a relay compacts the requests of an agent, over one disk and one provider with the rules of a
//! vendor. Time, chance, faults and crashes follow from the seed. Worlds from S on run until there
//! were N (1,000), or T seconds have passed. The first broken promise of each world is printed with
//! the command that replays it, and the exit code is then 1. A replay prints what happens step by
//! step, and the digest of all bytes.

use std::{
    error::Error,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lexopt::{Arg, Parser, ValueExt};
use threadfold_terminal::thousands;
use threadfold_testing::shared::simulation::{Run, Tally};

#[path = "world/mod.rs"]
mod world;

fn main() -> ExitCode {
    let right = Options::from_arguments().map(|options| match options.replay {
        Some(seed) => replay(seed),
        None => many(&options),
    });
    match right {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("world: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The options of the command line.
struct Options {
    seed: u64,
    worlds: u64,
    time: Duration,
    replay: Option<u64>,
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut options = Self { seed: 0, worlds: 1_000, time: Duration::MAX, replay: None };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("seed") => options.seed = parser.value()?.parse()?,
                Arg::Long("worlds") => options.worlds = parser.value()?.parse()?,
                Arg::Long("seconds") => {
                    options.time = Duration::from_secs(parser.value()?.parse()?);
                }
                Arg::Long("replay") => options.replay = Some(parser.value()?.parse()?),
                Arg::Long(_) | Arg::Short(_) | Arg::Value(_) => {
                    return Err(argument.unexpected().into());
                }
            }
        }
        Ok(options)
    }
}

/// Runs one world, and prints each step. Returns whether all promises held.
fn replay(seed: u64) -> bool {
    let run = world::play(seed, Some(Box::new(|line| println!("{line}"))));
    println!("\ndigest {:016x}", run.digest);
    close(seed, &run)
}

/// Runs worlds on all processors. Returns whether all promises held in each.
fn many(options: &Options) -> bool {
    let begun = Instant::now();
    let (next, kept) = (AtomicU64::new(0), AtomicU64::new(0));
    let all: Mutex<(Tally, u64)> = Mutex::default();
    let work = || {
        while begun.elapsed() < options.time {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= options.worlds {
                return;
            }
            let seed = options.seed.wrapping_add(place);
            let run = world::play(seed, None);
            kept.fetch_add(u64::from(close(seed, &run)), Ordering::Relaxed);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.0 += run.tally;
            all.1 += 1;
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (tally, worlds) = *all.lock().unwrap_or_else(PoisonError::into_inner);
    println!("  {:<22} {:>13}", "worlds", thousands(worlds));
    for (name, count) in tally.rows() {
        println!("  {name:<22} {:>13}", thousands(count));
    }
    println!("  {:<22} {:>11.1} s", "time", begun.elapsed().as_secs_f64());
    let kept = kept.into_inner();
    println!("\n  {} of {} worlds kept all promises.", thousands(kept), thousands(worlds));
    kept == worlds
}

/// Prints the broken promise of a world with the command that replays it, if there is one.
fn close(seed: u64, run: &Run) -> bool {
    let Some((actor, fault)) = &run.fault else { return true };
    println!("seed {seed}: {actor}: {fault}\n  {}", world::command(seed));
    false
}
