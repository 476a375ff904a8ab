//! threadfold's strategies, and two baselines.

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy,
    drive::{Models, propose},
    legality,
    retention::RetentionPolicy,
    strategy::{Brief, ClearResults, Digest, Ladder, Snapshot, Summarize},
    testing::ExtractiveModel,
};

use super::case::{Case, Compacted, Contender, largest, timed};

/// With and without a model.
pub(super) fn contenders() -> Vec<Contender> {
    vec![
        Contender { name: "the newest messages alone", compact: tail },
        Contender {
            name: "threadfold: ladder, no model",
            compact: |case, target| by(&Ladder::default(), case, target, false),
        },
        Contender {
            name: "threadfold: ladder",
            compact: |case, target| by(&Ladder::default(), case, target, true),
        },
        Contender {
            name: "threadfold: summarize",
            compact: |case, target| by(&Summarize::default(), case, target, true),
        },
        Contender {
            name: "threadfold: digest, no model",
            compact: |case, target| by(&Digest::default(), case, target, false),
        },
        Contender {
            name: "threadfold: clear-results, no model",
            compact: |case, target| by(&ClearResults::default(), case, target, false),
        },
    ]
}

fn by(
    strategy: &dyn CompactionStrategy,
    case: &Case,
    target: u64,
    asks: bool,
) -> Option<Compacted> {
    let retention = Some(RetentionPolicy::default());
    let brief = Brief { target: Some(target), retention, ..Brief::default() };
    let models = if asks { Models::one(&ExtractiveModel) } else { Models::default() };
    let thread = Snapshot::new(case.past().to_vec());
    timed(|| {
        let done = block_on(propose(strategy, &thread, &brief, models, &mut |_, _| {})).ok()?;
        done.plan.after(case.past()).ok()
    })
}

/// The head, and as many of the newest messages as fit, from a legal cut on.
fn tail(case: &Case, target: u64) -> Option<Compacted> {
    let past = case.past();
    let cuts = legality::cut_points(past);
    let cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut >= case.head().len()).rev().collect();
    largest(cuts.len().checked_sub(1)?, target, |index| {
        Some(case.head().iter().chain(&past[cuts[index]..]).cloned().collect())
    })
}
