//! An agent that works at random, in a small window, for many turns. What it does and what may not
//! happen stands in `examples/simulation`; the example of that name runs it for longer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../examples/simulation/mod.rs"]
mod simulation;

use std::sync::Mutex;

use simulation::{Tally, WINDOW, run_all};

const SEEDS: u64 = 20;
const TURNS: u64 = 500;

#[test]
fn no_request_is_ever_too_long_or_illegal_or_another_than_the_store_holds() {
    let (all, violations) = (Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    run_all(0..SEEDS, TURNS, |_, ran| match ran {
        Ok(tally) => *all.lock().unwrap() += tally,
        Err(violation) => violations.lock().unwrap().push(violation.to_string()),
    });
    assert_eq!(violations.into_inner().unwrap(), Vec::<String>::new());
    let all = all.into_inner().unwrap();
    assert_eq!(all.turns, SEEDS * TURNS);
    assert!(all.fullest <= WINDOW, "{all:#?}");
    // All of it happened, and often enough to mean something.
    let rarest = [
        all.compactions.values().sum(),
        all.failed,
        all.cancelled,
        all.undone,
        all.model_failures,
        all.store_failures,
        all.refused,
        all.dropped,
        all.aborted,
        all.queued,
        all.resumed,
    ];
    assert!(rarest.iter().all(|count| *count >= 20), "{all:#?}");
    println!("{all:#?}");
}
