//! Changes of a running session: agent, window, strategy, policy, tools and system prompt, and the
//! host's own compactions.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, ModelAgent, Replacement, Role, Session,
    auto::{AutoPolicy, Threshold},
    legality,
    message::{CompactionReason, Origin, StopReason, Thinking},
    session::{SessionError, SessionEvent},
    strategy::{KeepRecent, StrategyRegistry},
    testing::ScriptedModel,
    tokens::PartKind,
    wire::{Dialect, EncodeOptions},
};

use crate::support::bench::{Echo, bench, compactions, events, say};

fn agent(answers: &[&str], window: u64) -> (ModelAgent, ScriptedModel) {
    let model = ScriptedModel::new(answers.iter().copied());
    let agent = ModelAgent::new(Arc::new(model.clone())).with_window(ContextWindow::new(window));
    (agent, model)
}

fn keep(messages: usize) -> Arc<KeepRecent> {
    Arc::new(KeepRecent { messages, ..KeepRecent::default() })
}

#[test]
fn a_smaller_model_gets_a_thread_that_fits_it() {
    let long = "A long story. ".repeat(400);
    let mut bench = bench([long.as_str(), long.as_str(), "Well."], |builder| builder);
    say(&mut bench.session, "Tell me a story.").unwrap();
    say(&mut bench.session, "Another one.").unwrap();
    let (small, model) = agent(&["A summary.", "Hello.", "Hello."], 3_000);
    bench.session.set_agent(small);
    assert_eq!(bench.session.window(), Some(ContextWindow::new(3_000)));
    assert!(bench.session.handle().token_usage().percent_used > 100.0);

    let events = events(&mut bench.session, "And now?");
    let started = compactions(&events).into_iter().find_map(|event| match event {
        threadfold::session::CompactionEvent::Started { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(started, Some(CompactionReason::ModelSwitch));
    assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))));
    assert!(bench.model.requests().len() == 2, "the model before was not asked any more");
    let counter = threadfold::tokens::ByteEstimate::TRIGGER;
    for request in model.requests() {
        assert!(threadfold::TokenCounter::request(&counter, &request) <= 3_000);
        assert!(legality::violations(&request.messages).is_empty());
    }
}

#[test]
fn reasoning_that_another_provider_signed_is_not_sent() {
    let thought = Thinking::new("Hm.", Some("signed".into()));
    let mut answer =
        Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text("Yes.")]);
    answer.make_mut().origin = Some(Origin::new("anthropic-messages", Some("claude".into())));
    let mut bench = bench([Answer::new(answer, StopReason::EndTurn, None)], |builder| builder);
    say(&mut bench.session, "Is it so?").unwrap();
    let (other, model) = agent(&["Indeed."], 200_000);
    bench.session.set_agent(other);
    say(&mut bench.session, "Really?").unwrap();
    let request = &model.requests()[0];
    let body =
        |codec: Dialect| codec.encode(request, &EncodeOptions::default()).body.as_str().to_owned();
    assert!(body(Dialect::Anthropic).contains("signed"), "its own provider has it back");
    assert!(!body(Dialect::OpenAiChat).contains("signed"), "another one has not");
}

#[test]
fn strategies_are_chosen_by_name_on_the_builder_and_while_the_session_runs() {
    let mut registry = StrategyRegistry::default();
    registry.register(Arc::new(Renamed)).unwrap();
    let mut bench = bench(["One.", "Two.", "Three."], |builder| {
        builder.registry(registry).strategy_named("keep-recent").unwrap()
    });
    let config: serde_json::Value =
        serde_json::from_str(r#"{"keep-recent": {"messages": 2}}"#).unwrap();
    bench.session.set_strategy_named(config).unwrap();
    let error = bench.session.set_strategy_named("magic").unwrap_err();
    assert!(error.to_string().contains("mine"), "the names are listed: {error}");
    say(&mut bench.session, "First.").unwrap();
    say(&mut bench.session, "Second.").unwrap();
    say(&mut bench.session, "/compact").unwrap();
    assert_eq!(bench.session.messages().len(), 2);

    bench.session.set_strategy_named("mine").unwrap();
    say(&mut bench.session, "Third.").unwrap();
    say(&mut bench.session, "/compact").unwrap();
    let names: Vec<&str> =
        bench.session.log().standing().map(|record| record.strategy.as_str()).collect();
    assert_eq!(names, ["keep-recent", "mine"]);
}

/// The strategy `keep-recent` under another name.
#[derive(Debug)]
struct Renamed;

#[threadfold::async_trait]
impl threadfold::CompactionStrategy for Renamed {
    fn name(&self) -> &str {
        "mine"
    }

    async fn propose(
        &self,
        view: &threadfold::strategy::View,
        ask: &mut threadfold::strategy::Ask<'_>,
    ) -> Result<threadfold::strategy::Proposal, threadfold::strategy::StrategyError> {
        keep(2).propose(view, ask).await
    }
}

#[test]
fn one_compaction_may_have_a_strategy_of_its_own() {
    let mut bench = bench(["One.", "Two.", "Three."], |builder| builder.strategy(keep(4)));
    say(&mut bench.session, "First.").unwrap();
    say(&mut bench.session, "Second.").unwrap();
    let reply = block_on(bench.session.compact_with(keep(2), None).into_future()).unwrap();
    assert!(reply.text.starts_with("Compacted: 4 to 2 messages"), "{}", reply.text);
    assert_eq!((reply.compactions.len(), bench.session.messages().len()), (1, 2));
    say(&mut bench.session, "Third.").unwrap();
    let reply = say(&mut bench.session, "/compact").unwrap();
    assert!(reply.nothing_compacted.is_some(), "the strategy of the session keeps four");
    bench.session.set_strategy(keep(2));
    say(&mut bench.session, "/compact").unwrap();
    assert_eq!(bench.session.messages().len(), 2);
}

#[test]
fn a_policy_can_be_disabled_and_enabled() {
    let policy =
        |tokens| AutoPolicy { threshold: Threshold::Tokens(tokens), ..AutoPolicy::default() };
    let long = "A long story. ".repeat(100);
    let script = [long.as_str(), long.as_str(), "Three.", "Four."];
    let mut bench = bench(script, |builder| builder.strategy(keep(2)));
    bench.session.set_policy(AutoPolicy { enabled: false, ..policy(600) }).unwrap();
    say(&mut bench.session, "First.").unwrap();
    say(&mut bench.session, "Second.").unwrap();
    assert_eq!(bench.session.log().standing().count(), 0);
    let wrong = AutoPolicy { threshold: Threshold::Fraction(80.0), ..AutoPolicy::default() };
    assert!(matches!(bench.session.set_policy(wrong), Err(SessionError::Invalid(_))));
    bench.session.set_policy(policy(600)).unwrap();
    say(&mut bench.session, "Third.").unwrap();
    assert_eq!(bench.session.log().standing().count(), 1);
}

#[test]
fn tools_and_system_prompt_change_with_the_next_request() {
    let echo = |name| Arc::new(Echo { name, polls: 0 }) as Arc<dyn threadfold::model::Tool>;
    let mut bench = bench(["One.", "Two.", "Three."], |builder| builder.recall_tool());
    let names = |bench: &crate::support::bench::Bench| -> Vec<String> {
        bench.last_request().tools.iter().map(|tool| tool.name.to_string()).collect()
    };
    say(&mut bench.session, "First.").unwrap();
    assert_eq!(names(&bench), ["slow", "quick", "recall"]);
    let twice = bench.session.set_tools(vec![echo("read"), echo("recall")]).unwrap_err();
    assert!(matches!(twice, SessionError::DoubleTool { .. }));
    bench.session.set_tools(vec![echo("read")]).unwrap();
    bench.session.set_system("Be very kind.");
    say(&mut bench.session, "Second.").unwrap();
    assert_eq!(names(&bench), ["read", "recall"]);
    assert_eq!(bench.last_request().system[..], [Message::system("Be very kind.")]);
    bench.session.set_system(" ");
    say(&mut bench.session, "Third.").unwrap();
    assert!(bench.last_request().system.is_empty());
}

#[test]
fn a_smaller_window_causes_a_compaction_and_can_be_removed_again() {
    let long = "A long story. ".repeat(300);
    let mut bench = bench([long.as_str(), long.as_str(), "Summary.", "Well.", "Well."], |b| b);
    say(&mut bench.session, "Tell me a story.").unwrap();
    say(&mut bench.session, "Another one.").unwrap();
    bench.session.set_window(ContextWindow::new(2_500));
    let events = events(&mut bench.session, "And now?");
    assert!(!compactions(&events).is_empty());
    bench.session.set_window(None);
    assert_eq!(bench.session.window(), Some(ContextWindow::new(200_000)));
    bench.assert_whole();
}

#[test]
fn a_host_replaces_ranges_by_its_own_words() {
    let mut bench = bench(["One.", "Two."], |builder| builder);
    // Long enough that a strategy's summary of it would get the rule added.
    let first = format!("First. Never touch src/lexer.rs. {}", "Count with care. ".repeat(100));
    say(&mut bench.session, first).unwrap();
    say(&mut bench.session, "Second.").unwrap();
    let before = bench.session.messages().clone();
    let first = bench.session.messages()[0].content.iter().find_map(|block| match block {
        ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id),
        _ => None,
    });
    let early = [Replacement::new("They began to count.").to(first.unwrap())];
    let done = block_on(bench.session.replace(&early)).unwrap();
    let ContentBlock::Summary(summary) = &bench.session.messages()[0].content[0] else { panic!() };
    assert_eq!(summary.compaction, Some(done.id));
    let left = serde_json::to_string(bench.session.messages()).unwrap();
    assert!(!left.contains("lexer"), "nothing is added to the words of a host: {left}");
    let all = block_on(bench.session.replace(&[Replacement::new("All of it.")])).unwrap_err();
    assert!(
        matches!(all, SessionError::Compaction(_)),
        "the newest typed text cannot be removed: {all}"
    );
    let seen = compactions(&events(&mut bench.session, "/compact"));
    assert!(seen.len() >= 2, "its start and end are in the next stream: {seen:?}");
    let unknown = [Replacement::new("Nothing.").from("zzzzzz".parse().unwrap())];
    let error = block_on(bench.session.replace(&unknown)).unwrap_err();
    assert!(matches!(error, SessionError::Stale(_)), "{error}");
    block_on(bench.session.undo_compaction(done.id)).unwrap();
    assert_eq!(bench.session.messages()[..], before[..]);
    bench.assert_whole();
}

#[test]
fn a_breakdown_adds_up_to_the_count_of_the_context() {
    let call = crate::support::bench::calls(&[("a", "quick", "{}")]);
    let mut bench =
        bench([call, Message::assistant("Done.")], |builder| builder.system("Be kind."));
    say(&mut bench.session, "Go.").unwrap();
    let parts = bench.session.breakdown();
    let tokens: u64 = parts.iter().map(|part| part.tokens).sum();
    assert_eq!(tokens, bench.session.context_tokens());
    let has = |kind| parts.iter().any(|part| part.kind == kind);
    for kind in [PartKind::System, PartKind::Tool, PartKind::Typed, PartKind::Answer] {
        assert!(has(kind), "{kind:?}: {parts:?}");
    }
    let result = parts.iter().find(|part| part.kind == PartKind::ToolResult).unwrap();
    assert_eq!(result.tool.as_deref(), Some("quick"));
}

#[test]
fn a_session_with_a_new_agent_can_be_sent_to_another_task() {
    fn send<T: Send>(_: &T) {}
    let (first, _) = agent(&[], 1_000);
    let mut session = Session::builder(first.clone()).build().unwrap();
    session.set_agent(first);
    send(&session);
}
