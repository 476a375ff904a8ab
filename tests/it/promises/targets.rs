//! The sizes that compactions must reach.

use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, Message, TokenCounter, async_trait,
    auto::{AutoPolicy, Threshold},
    strategy::{Ask, KeepRecent, Proposal, StrategyError, View},
    tokens::ByteEstimate,
};

use super::provider::{Provider, Read, lines, reading_rounds};
use crate::support::{
    bench::{events, say},
    examples::simulation::hosts::AlwaysFails,
};

const WINDOW: u64 = 20_000;

/// A strategy that fails the first time, and records its targets.
#[derive(Debug, Default)]
struct FailsFirst(Mutex<Vec<u64>>);

#[async_trait]
impl CompactionStrategy for FailsFirst {
    fn name(&self) -> &str {
        "fails-first"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let tried = {
            let mut targets = self.0.lock().unwrap();
            targets.extend(view.brief.target);
            targets.len()
        };
        match tried {
            1 => AlwaysFails.propose(view, ask).await,
            _ => KeepRecent::default().propose(view, ask).await,
        }
    }
}

#[test]
fn after_a_success_compactions_use_the_full_target_again() {
    let strategy = Arc::new(FailsFirst::default());
    let provider = Provider::new(|_, _| Message::assistant(lines(900))).without_usage();
    let mut session = provider
        .session(Some(WINDOW), |builder| builder.strategy(Arc::<FailsFirst>::clone(&strategy)));
    for turn in 0..60 {
        let reported = events(&mut session, &format!("Part {turn}, please."));
        assert!(reported.iter().all(Result::is_ok), "{turn}: {reported:?}");
    }
    let targets = strategy.0.lock().unwrap().clone();
    let (first, last) = (targets[0], *targets.last().unwrap());
    assert!(targets.len() > 3, "{targets:?}");
    assert!(first.abs_diff(last) * 50 <= first, "{targets:?}");
    assert!(last <= WINDOW / 2, "{targets:?}");
}

/// A strategy that records its targets, and does nothing.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<Mutex<Vec<Option<u64>>>>);

#[async_trait]
impl CompactionStrategy for Asked {
    fn name(&self) -> &str {
        "asked"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        self.0.lock().unwrap().push(view.brief.target);
        AlwaysFails.propose(view, ask).await
    }
}

#[test]
fn a_manual_compaction_halves_the_thread_unless_it_is_within_the_target() {
    let provider = Provider::new(|_, _| Message::assistant(lines(900))).without_usage();
    let within = |target| {
        let policy = AutoPolicy { target: Threshold::Tokens(target), ..AutoPolicy::default() };
        let asked = Asked::default();
        let strategy = Arc::new(asked.clone());
        let mut session = provider
            .session(Some(WINDOW), |builder| builder.policy(policy).strategy(strategy).system(""));
        say(&mut session, "Go on.").unwrap();
        let overhead = session.context_tokens() - thread_tokens(session.messages());
        say(&mut session, "/compact").unwrap();
        let asked = asked.0.lock().unwrap().clone();
        (thread_tokens(session.messages()), overhead, asked)
    };
    let (thread, overhead, _) = within(WINDOW);
    let rows = [
        (thread / 3, Some(thread / 3)),
        (thread - 1, Some(thread / 2)),
        (thread, None),
        (thread + 1, None),
    ];
    for (target, expected) in rows {
        let (_, _, asked) = within(target + overhead);
        assert_eq!(asked, [expected], "a target of {target}, a thread of {thread}");
    }
}

fn thread_tokens(messages: &[Message]) -> u64 {
    ByteEstimate::TRIGGER.messages(messages)
}

#[test]
fn a_target_leaves_room_for_the_newest_typed_text() {
    const TYPED: u64 = 14_000;
    let asked = Asked::default();
    let strategy = Arc::new(asked.clone());
    let provider = Provider::new(|_, place| reading_rounds(place, 1));
    let mut session = provider
        .session(Some(WINDOW), |builder| builder.strategy(strategy).tool(Arc::new(Read(9_000))));
    let text = format!("Read it. {}", lines(TYPED));
    let typed = thread_tokens(&[Message::user(text.clone())]);
    assert_eq!(say(&mut session, text).unwrap().text, "I read it.");
    let targets = asked.0.lock().unwrap().clone();
    assert!(!targets.is_empty());
    for target in targets {
        assert!(target.is_some_and(|target| typed < target && target < WINDOW), "{target:?}");
    }
}

#[test]
fn messages_appended_during_a_preparation_do_not_count_towards_its_target() {
    const TARGET: u64 = 10_000;
    let policy = AutoPolicy { target: Threshold::Tokens(TARGET), ..AutoPolicy::default() };
    let provider = Provider::new(|_, _| Message::assistant(lines(1_200)));
    let mut session = provider.session(Some(WINDOW * 2), |builder| builder.policy(policy));
    for turn in 0..10 {
        say(&mut session, format!("Part {turn}, please.")).unwrap();
    }
    let job = session.prepare_compaction();
    let since = format!("What about this? {}", lines(TARGET + 4_000));
    say(&mut session, since.as_str()).unwrap();
    let before = session.context_tokens();
    let done = block_on(async { session.adopt(job.await).await }).unwrap();
    assert!(done.report.after.tokens > TARGET && session.context_tokens() < before);
    let kept = &session.messages()[session.messages().len() - 2];
    assert_eq!(kept.content[0].as_text().unwrap().as_str(), since);
}
