//! An agent that works at random, in a small window, for many turns. What it does and what may not
//! happen stands in `examples/simulation`; the example of that name runs it for longer.

#[path = "../examples/simulation/mod.rs"]
mod simulation;

use simulation::{Tally, WINDOW, run};

const SEEDS: u64 = 20;
const TURNS: u64 = 500;

#[test]
fn no_request_is_ever_too_long_or_illegal_or_another_than_the_store_holds() {
    let mut all = Tally::default();
    for seed in 0..SEEDS {
        match run(seed, TURNS) {
            Ok(tally) => all += tally,
            Err(violation) => panic!("{violation}"),
        }
    }
    println!("{all:#?}");
    assert!(all.fullest <= WINDOW, "{all:#?}");
}
