//! Every registered strategy over the rules of every vendor, with changes of the provider.
//! `examples/simulation/books.rs` says what happens; `cargo run --example simulation -- --rules` runs
//! longer and prints the numbers.

use std::thread;

use threadfold::StrategyRegistry;

use crate::support::examples::simulation::books::{self, Judged, Travels, Vendor};

const TURNS: u64 = 180;

#[test]
fn no_strategy_sends_what_a_vendor_finds_illegal_or_drops() {
    let registry = StrategyRegistry::default();
    let names: Vec<&str> = registry.names().collect();
    let turns = TURNS.div_ceil(names.len() as u64);
    let of_vendor = |vendor| {
        let judged = names
            .iter()
            .map(|name| books::run(vendor, name, (0, turns), Travels::Sometimes).unwrap());
        judged.fold(Judged::default(), |mut all, judged| {
            all += judged;
            all
        })
    };
    thread::scope(|scope| {
        let runs = Vendor::ALL.map(|vendor| (vendor, scope.spawn(move || of_vendor(vendor))));
        for (vendor, run) in runs {
            let all = run.join().unwrap();
            let none = (&Vec::new(), &Vec::new(), 0);
            assert_eq!((&all.illegal, &all.failed, all.dropped), none, "{vendor}");
            assert!(all.turns >= TURNS && all.compactions >= names.len() as u64 / 2, "{vendor}");
            println!(
                "{vendor}: {} requests, {:?} % of the reasoning in kept turns arrived",
                all.requests,
                all.share()
            );
        }
    });
}

/// Where the vendor compacts, the reasoning of the turns that stay reaches the model.
#[test]
fn the_default_ladder_keeps_reasoning_where_it_is_bound_and_the_vendor_compacts() {
    let vendors = Vendor::ALL.into_iter().filter(|vendor| vendor.keeps_bound_reasoning());
    let vendors: Vec<Vendor> = vendors.collect();
    assert_eq!(vendors.len(), 2);
    for vendor in vendors {
        // So many that most facts of the conversation are lost.
        let judged = books::run(vendor, "ladder", (0, 120), Travels::Never).unwrap();
        assert!(judged.compactions >= 10 && judged.kept > 1_000, "{vendor}: {judged:?}");
        assert!(judged.share() >= Some(90), "{vendor}: {judged:?}");
    }
}
