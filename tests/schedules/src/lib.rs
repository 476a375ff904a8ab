//! Sessions, leases and prepared compactions under many orders of their threads.
//!
//! The library is built with locks at which a scheduler decides which thread runs next. A test gives
//! it all orders with at most two interruptions ([`every_order`]), or many with any number of them
//! ([`many_orders`]). A thread that waits for ever fails the test, and so does a future that nobody
//! wakes.
//!
//! ```text
//! RUSTFLAGS="--cfg threadfold_schedules" cargo test --manifest-path tests/schedules/Cargo.toml
//! ```
//!
//! `THREADFOLD_TRIES=20` tries twenty times as many orders of [`many_orders`]. A failure prints the
//! schedule that led to it; with `THREADFOLD_SCHEDULE=... cargo test NAME` the test of this name runs
//! in this order alone.

#![cfg(test)]

#[cfg(not(threadfold_schedules))]
compile_error!(
    "the locks of the library are replaced with RUSTFLAGS=\"--cfg threadfold_schedules\""
);

mod adoption;
mod bounded;
mod handle;
mod leases;

use std::{env, time::Instant};

use bounded::Bounded;
use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};

/// The interruptions of a running thread in an order of [`every_order`].
const INTERRUPTIONS: usize = 2;

/// The orders of [`many_orders`], without a factor.
const MANY: usize = 1_000;

/// In half of these, each thread runs to its end but for so many changes.
const CHANGES: usize = 4;

/// The seed of all random orders, so that the next run tries the same ones.
const SEED: u64 = 20_261_123;

/// Runs a story in all orders of its threads with at most two interruptions.
fn every_order(story: impl Fn() + Send + Sync + 'static) {
    run(Bounded::new(INTERRUPTIONS), story);
}

/// Runs a story in many orders of its threads.
fn many_orders(story: impl Fn() + Clone + Send + Sync + 'static) {
    let factor = env::var("THREADFOLD_TRIES").ok().and_then(|factor| factor.parse().ok());
    let orders = MANY * factor.unwrap_or(1);
    run(RandomScheduler::new_from_seed(SEED, orders / 2), story.clone());
    run(PctScheduler::new_from_seed(SEED, CHANGES, orders / 2), story);
}

/// Runs a story in the orders of the scheduler, or in that of the environment.
fn run(scheduler: impl Scheduler + 'static, story: impl Fn() + Send + Sync + 'static) {
    if let Ok(schedule) = env::var("THREADFOLD_SCHEDULE") {
        shuttle::replay(story, &schedule);
        return;
    }
    let mut config = Config::new();
    // Without optimisation the futures of a session have large frames.
    config.stack_size = 1024 * 1024;
    config.silence_warnings = true;
    let begun = Instant::now();
    let orders = Runner::new(scheduler, config).run(story);
    println!("{orders} orders {:?}", begun.elapsed());
}
