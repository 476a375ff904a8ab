//! An agent that acts at random, under every strategy, in windows of every size, for many turns.
//! `examples/simulation` describes its actions and the checks; the example of that name runs it
//! longer.

use std::{collections::BTreeMap, sync::Mutex};

use crate::support::examples::simulation::{Kind, Tally, run_all};

const TURNS: u64 = 10_000;

#[test]
fn no_session_locks_up_and_every_request_fits_and_is_legal_with_any_strategy() {
    let strategies: Mutex<BTreeMap<String, Tally>> = Mutex::default();
    let violations: Mutex<BTreeMap<Kind, Vec<String>>> = Mutex::default();
    run_all(
        0,
        TURNS,
        |_| true,
        |world, tally, violation| {
            *strategies.lock().unwrap().entry(world.strategy.clone()).or_default() += tally;
            if let Some(violation) = violation {
                let mut violations = violations.lock().unwrap();
                violations.entry(violation.fault.kind).or_default().push(violation.to_string());
            }
        },
    );
    let violations = violations.into_inner().unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
    let strategies = strategies.into_inner().unwrap();
    let mut all = Tally::default();
    for (name, tally) in strategies {
        let soft = tally.soft_percent();
        assert!(soft.is_none_or(|soft| soft >= 90), "{name}: {soft:?} % of {}", tally.calm);
        all += tally;
    }
    assert!(all.turns >= TURNS && all.calm > 100, "{all:#?}");
    // Every case occurred often enough to test something.
    let rarest = [
        all.compactions.values().sum(),
        all.failed,
        all.cancelled,
        all.undone,
        all.model_failures,
        all.overflows,
        all.store_failures,
        all.refused,
        all.dropped,
        all.aborted,
        all.queued,
        all.resumed,
    ];
    assert!(rarest.iter().all(|count| *count >= 10), "{all:#?}");
    println!("{all:#?}");
}
