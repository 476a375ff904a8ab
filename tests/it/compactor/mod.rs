//! A compactor: its memory over many compactions, with any changes of the host to its vector.

mod again;
mod edits;
mod merged;
mod steps;
mod support;
mod tools;

use std::{
    sync::{Arc, Mutex},
    task::{Context, Waker},
};

use futures::executor::block_on;
use threadfold::{
    Answer, CompactionStrategy, Compactor, ContextWindow, Message, ModelAgent, Session, Usage,
    async_trait,
    auto::{AutoPolicy, Threshold},
    compaction::compact_tool,
    compactor::RequestStep,
    drive::Models,
    legality,
    message::{CompactionReason, StopReason, Timestamp},
    strategy::{Ask, Brief, Proposal, StrategyError, Summarize, View},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};

use support::{Answers, RULE, Way, long, rounds};

const WINDOW: ContextWindow = ContextWindow::new(6_000);

#[test]
fn five_compactions_in_a_row_give_the_thread_that_a_session_gives() {
    for way in Way::ALL {
        let model = Arc::new(Answers(way));
        let agent = ModelAgent::new(model.clone()).with_window(WINDOW);
        // The session compacts only when it is asked to.
        let policy = AutoPolicy { threshold: Threshold::Fraction(0.99), ..AutoPolicy::default() };
        let mut session = Session::builder(agent).policy(policy).build().unwrap();
        let mut compactor = Compactor::default().with_window(WINDOW);
        let (mut messages, mut read) = (Vec::new(), 0);
        for round in 0..5 {
            for part in 0..3 {
                let text = long(&format!("Round {round}, part {part}: {}", rounds(round, part)));
                block_on(async { session.send(text).await }).unwrap();
            }
            messages.extend(session.messages().iter().skip(read).cloned());
            assert_eq!(messages[..], session.messages()[..], "{way:?} {round}");

            let done = block_on(compactor.compact(&mut messages, Brief::default(), &*model));
            block_on(async { session.send("/compact").await }).unwrap();
            assert_eq!(session.log().standing().count(), round + 1, "{way:?} {round}");
            assert_eq!(messages[..], session.messages()[..], "{way:?} {round}");
            let report = &session.log().standing().last().unwrap().report;
            assert_eq!(done.unwrap().report, *report, "{way:?} {round}");
            assert_eq!(compactor.rules(), session.rules(), "{way:?} {round}");
            assert_eq!(legality::violations(&messages), []);
            assert!(format!("{messages:?}").contains(RULE), "{way:?} {round}: {messages:?}");
            read = messages.len();
            // The host stores the compactor, and a later process reads it.
            let stored = serde_json::to_string(&compactor).unwrap();
            compactor = serde_json::from_str::<Compactor>(&stored).unwrap().with_window(WINDOW);
        }
    }
}

#[test]
fn a_dropped_future_leaves_vector_and_compactor_unchanged() {
    let mut messages: Vec<Message> =
        (0..9).map(|n| Message::user(long(&format!("{n} {RULE}")))).collect();
    messages.push(Message::assistant("Yes."));
    let before = messages.clone();
    let answer = Answer::new(Message::assistant("slowly said"), StopReason::EndTurn, None);
    let slow = ScriptedModel::repeating([Scripted::Slow(answer)]);
    for polls in 0..30 {
        let mut compactor = Compactor::default();
        let mut work = Box::pin(compactor.compact(&mut messages, 900, &slow));
        let mut context = Context::from_waker(Waker::noop());
        let ended = (0..polls).any(|_| work.as_mut().poll(&mut context).is_ready());
        drop(work);
        assert!(!ended, "{polls}");
        assert_eq!(messages, before);
        let stored = serde_json::to_string(&compactor).unwrap();
        assert_eq!(stored, serde_json::to_string(&Compactor::default()).unwrap());
    }
}

#[test]
fn a_thread_that_needs_no_compaction_is_unchanged_and_costs_no_call() {
    let mut messages = vec![Message::user("Hi."), Message::assistant("Hello!")];
    let mut compactor = Compactor::default();
    let done = block_on(compactor.compact(&mut messages, 5_000, &ExtractiveModel));
    assert!(done.unwrap_err().is_nothing_to_compact());
    assert_eq!(messages.len(), 2);
}

#[test]
fn a_thread_over_its_window_is_compacted_even_without_a_model() {
    let mut messages: Vec<Message> =
        (0..9).map(|n| Message::user(long(&format!("{n} {RULE}")))).collect();
    messages.extend([Message::assistant("Yes."), Message::user("And now?")]);
    let strategy = Arc::new(Summarize::default());
    let mut compactor = Compactor::default().with_strategy(strategy.clone());
    let failed = block_on(compactor.compact(&mut messages, 900, Models::default())).unwrap_err();
    assert!(matches!(failed.strategy(), Some(StrategyError::NeedsModel)), "{failed}");
    // Only a thread that does not fit gets the fallback.
    let mut compactor = compactor.with_window(ContextWindow::new(2_000));
    let done = block_on(compactor.compact(&mut messages, 900, Models::default())).unwrap();
    assert!(done.report.after.tokens <= 900 && format!("{messages:?}").contains(RULE));
}

#[test]
fn the_ratio_to_the_providers_counts_is_learned_once_and_stored() {
    let mut answer = Message::assistant("Yes.");
    answer.make_mut().usage = Some(Usage::new(1_200, 5));
    let mut messages = vec![Message::user("x".repeat(2_988)), answer];
    let mut compactor = Compactor::default();
    compactor.observe(&messages);
    assert_eq!(compactor.context_tokens(), 1_205);
    let stored = serde_json::to_string(&compactor).unwrap();
    assert!(stored.contains(r#""ratio":{"base":3,"ratio":2875}"#), "{stored}");
    let mut read: Compactor = serde_json::from_str(&stored).unwrap();
    read.observe(&messages);
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    // A target is in tokens of the provider.
    messages.push(Message::user("And now?"));
    let done = block_on(read.compact(&mut messages, 300, &ExtractiveModel)).unwrap();
    assert!(done.report.after.tokens <= 288, "{:?}", done.report);
}

/// Remembers the brief of its last compaction, and fails.
#[derive(Debug, Default)]
struct Briefed(Mutex<Option<Brief>>);

#[async_trait]
impl CompactionStrategy for Briefed {
    fn name(&self) -> &str {
        "briefed"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        *self.0.lock().unwrap() = Some(view.brief.clone());
        Err(StrategyError::NothingToCompact { reason: "it is a test".into() })
    }
}

#[test]
fn target_and_limit_of_a_brief_are_tokens_of_the_provider() {
    let strategy = Arc::new(Briefed::default());
    let mut compactor = Compactor::default().with_strategy(strategy.clone());
    let mut messages: Vec<Message> =
        (0..6).map(|n| Message::assistant(long(&n.to_string()))).collect();
    messages.push(Message::user("And now?"));
    compactor.observe(&messages);
    // The provider counts half as many again as the estimate.
    let estimated = compactor.context_tokens();
    (0..40).for_each(|_| assert!(compactor.learn(Usage::new(estimated * 3 / 2, 5))));
    let window = compactor.context_tokens() * 10 / 9;
    let mut compactor = compactor.with_window(ContextWindow::new(window));
    let mut briefed = |brief| {
        let done = block_on(compactor.compact(&mut messages, brief, Models::default()));
        assert!(done.unwrap_err().is_nothing_to_compact());
        let brief = strategy.0.lock().unwrap().take().unwrap();
        (brief.target.unwrap(), brief.limit.unwrap())
    };
    let is_own = |tokens: u64, provider: u64| (tokens * 3 / 2).abs_diff(provider) <= 8;
    let (target, limit) = briefed(Brief { limit: Some(900), ..Brief::from(600) });
    assert!(is_own(target, 600) && is_own(limit, 900), "{target} {limit}");
    let (_, limit) = briefed(Brief::from(600));
    assert!(is_own(limit, window), "{limit} of {window}");
    // So are those of a step.
    let RequestStep::Compact(brief) = compactor.before_request(Timestamp(0)) else { panic!() };
    let limit = brief.limit.unwrap();
    assert_eq!(brief.target, Some(window / 2));
    assert!(limit.abs_diff(window * 4 / 5) <= 1, "{limit} of {window}");
}

#[test]
fn system_prompt_and_tools_are_counted_and_part_of_summary_requests() {
    let model = ScriptedModel::new(["They talked."]);
    let mut messages: Vec<Message> = (0..5).map(|n| Message::user(long(&n.to_string()))).collect();
    messages.push(Message::assistant("Yes."));
    let system = vec![Message::system("Be brief. ".repeat(90))];
    let mut compactor = Compactor::default();
    compactor.observe(&messages);
    let alone = compactor.context_tokens();
    let mut compactor = compactor.with_context(system.clone(), vec![compact_tool()]);
    assert!(compactor.context_tokens() > alone + 600);
    let strategy = Arc::new(Summarize { messages: 1, user_messages: 0, ..Summarize::default() });
    compactor = compactor.with_strategy(strategy);
    let instructions = CompactionReason::Manual { instructions: Some("the parser".into()) };
    let brief = Brief { reason: instructions, ..Brief::default() };
    block_on(compactor.compact(&mut messages, brief, &model)).unwrap();
    let request = &model.requests()[0];
    assert_eq!((request.system[..].to_vec(), request.tools.len()), (system, 1));
    assert!(format!("{:?}", request.messages.last()).contains("the parser"));
}
