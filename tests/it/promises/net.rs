//! The report of a compaction that was made by the net, the fallback of the strategy.

use std::sync::Arc;

use threadfold::{
    CompactionStrategy, Plan, Usage, async_trait,
    compact::Splice,
    log::Rung,
    message::{ModelError, ModelErrorKind},
    session::{CompactionEvent, SessionBuilder},
    strategy::{
        Ask, KeepRecent, Ladder, Proposal, StrategyError, Summarize, TrimToolResults, View,
    },
    testing::Scripted,
};

use super::provider::{Read, lines};
use crate::support::{
    bench::{Bench, calls, compactions, events, say, within},
    examples::simulation::hosts::AlwaysFails,
};

const WINDOW: u64 = 20_000;

/// A session whose next prompt does not fit because of long answers.
fn nearly_full(
    next: impl IntoIterator<Item = Scripted>,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    let past = (0..4).map(|_| Scripted::from(lines(2_000)));
    let mut bench = within(WINDOW, past.chain(next), build);
    for turn in 0..4 {
        say(&mut bench.session, format!("Part {turn}, please.")).unwrap();
    }
    bench
}

fn long_prompt() -> String {
    format!("What of this? {}", lines(13_000))
}

/// The rungs of the compaction in a turn.
fn completed(bench: &mut Bench, text: &str) -> Vec<Rung> {
    let reported = compactions(&events(&mut bench.session, text));
    let Some(CompactionEvent::Completed { rungs, .. }) = reported.last() else {
        panic!("{reported:#?}")
    };
    rungs.clone()
}

/// A name, whether it failed, and how many calls it made.
fn rows(rungs: &[Rung]) -> Vec<(&str, bool, usize)> {
    rungs.iter().map(|rung| (&*rung.strategy, rung.failure.is_some(), rung.calls)).collect()
}

#[test]
fn the_failed_strategy_is_reported_with_its_usage() {
    let spent = Usage::new(700, 30);
    let mut error = ModelError::new(ModelErrorKind::Other, "no lamp");
    error.usage = spent;
    let summarize = Arc::new(Summarize::default());
    let answers = [Scripted::Error(error), "Fine.".into()];
    let mut bench = nearly_full(answers, |builder| builder.strategy(summarize));
    let rungs = completed(&mut bench, &long_prompt());
    let expected = [("summarize", true, 1), ("trim-tool-results", true, 0), ("digest", false, 0)];
    assert_eq!((rows(&rungs), rungs[0].usage), (expected.to_vec(), spent));
    assert!(rungs[0].failure.as_ref().is_some_and(|words| words.contains("no lamp")));
    bench.assert_whole();
}

#[test]
fn the_rungs_of_a_ladder_that_missed_the_window_are_named_one_by_one() {
    let trim = Arc::new(TrimToolResults::default()) as Arc<dyn CompactionStrategy>;
    let ladder = Arc::new(Ladder::new([trim]));
    let answers =
        [calls(&[("a", "read", "{}")]).into(), lines(9_000).into(), Scripted::from("Fine.")];
    let mut bench =
        within(WINDOW, answers, |builder| builder.strategy(ladder).tool(Arc::new(Read(2_000))));
    say(&mut bench.session, "Read it.").unwrap();
    let rungs = completed(&mut bench, &long_prompt());
    let names: Vec<&str> = rungs.iter().map(|rung| &*rung.strategy).collect();
    assert_eq!(names, ["trim-tool-results", "trim-tool-results", "digest"]);
    bench.assert_whole();
}

/// A strategy that proposes a plan for another thread, itself or in place of another strategy.
#[derive(Debug)]
struct Elsewhere(Option<Ladder>);

#[async_trait]
impl CompactionStrategy for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let splice = Splice { at: 0..1, insert: Vec::new() };
        let mut proposal = Proposal::new(Plan::from_splices(999, vec![splice]));
        if let Some(ladder) = &self.0
            && let Ok(other) = ladder.propose(view, ask).await
        {
            proposal.rungs = other.rungs;
        }
        Ok(proposal)
    }
}

#[test]
fn a_refused_proposal_is_reported_with_its_reason_or_its_rungs() {
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let rungs: [Arc<dyn CompactionStrategy>; 2] = [Arc::new(AlwaysFails), Arc::new(keep)];
    let rows = [
        (None, "the plan was made for 999 messages"),
        (Some(Ladder::new(rungs)), "always-fails: "),
    ];
    for (ladder, expected) in rows {
        let strategy = Arc::new(Elsewhere(ladder));
        let mut bench = nearly_full([], |builder| builder.strategy(strategy));
        let reported = compactions(&events(&mut bench.session, "/compact"));
        let Some(CompactionEvent::Failed { error, .. }) = reported.last() else {
            panic!("{reported:#?}")
        };
        assert!(error.contains(expected), "{error}");
        bench.assert_whole();
    }
}
