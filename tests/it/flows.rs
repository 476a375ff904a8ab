//! Whole flows against scripted and hostile models. The tests check the requests that the model
//! received, and the thread afterwards.

use std::sync::Arc;

use futures::{StreamExt, executor::block_on};
use threadfold::{
    Agent, Answer, ContentBlock, Message, ModelAgent, ProviderThread, Request, Role, Thread, Usage,
    drive::{CompactionError, Models, propose},
    ledger::Quotes,
    legality,
    message::{Delta, ModelErrorKind, StopReason, Summary, ToolChoice, ToolSpec, ToolUse},
    model::{ModelError, answer_of, model_of},
    strategy::{
        Ask, Brief, CompactionStrategy, KeepRecent, ModelCall, ModelRole, Proposal, Snapshot,
        StrategyError, Summarize, View,
    },
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::notation;

const RULE: &str = "Never touch the lexer.";

/// A conversation about a parser, with a rule in its first message.
fn conversation() -> Vec<Message> {
    let mut text = format!("# user\nFix src/parser.rs. {RULE}\n");
    for round in 0..10 {
        text += &format!(
            "# assistant\nI look at part {round} of the parser, which takes a few words to say.\n\
             [tool_use t{round} read] {{\"path\":\"src/parser.rs\",\"part\":{round}}}\n\
             # user\n[tool_result t{round}] fn part_{round}() {{ /* a body of some length */ }}\n"
        );
    }
    text += "# assistant\nPart 3 was wrong and is right now.\n# user\nGood. What is left?\n";
    notation::parse(&text).unwrap()
}

fn agent(model: &ScriptedModel) -> (ModelAgent, Thread) {
    (ModelAgent::new(Arc::new(model.clone())), conversation().into_iter().collect())
}

fn run(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    models: Models<'_>,
) -> Result<Proposal, CompactionError> {
    block_on(propose(strategy, thread, &Brief::default(), models, &mut |_, _| {}))
}

#[test]
fn the_summary_is_in_the_next_request_and_the_raw_text_is_not() {
    let model = ScriptedModel::new(["Part 3 of src/parser.rs was mended.", "Nothing is left."]);
    let (mut agent, mut thread) = agent(&model);
    let proposal =
        run(&Summarize::default(), &Snapshot::of(&thread), Models::one(&model_of(&agent)));
    agent.apply(&mut thread, &proposal.unwrap().plan).unwrap();

    let request = Request::new(thread.messages().clone());
    let turn = block_on(answer_of(agent.answer(request))).unwrap();
    assert_eq!(turn.text(), "Nothing is left.");
    let sent = &model.requests()[1].messages;
    let summaries: Vec<&Summary> = sent.iter().flat_map(Message::summaries).collect();
    assert_eq!(summaries.len(), 1, "{}", notation::write(sent));
    assert_eq!(summaries[0].text, "Part 3 of src/parser.rs was mended.");
    let text = notation::write(sent);
    assert!(text.contains(RULE), "typed text stays: {text}");
    assert!(!text.contains("part_0"), "{text}");
    assert_eq!(legality::violations(sent), []);
}

#[test]
fn a_second_compaction_sees_the_first_summary_and_not_the_originals() {
    let model = ScriptedModel::new(["First summary, of the early parts.", "Second summary."]);
    let (mut agent, mut thread) = agent(&model);
    for round in 0..2 {
        let before = Snapshot::of(&thread);
        let proposal = run(&Summarize::default(), &before, Models::one(&model)).unwrap();
        agent.apply(&mut thread, &proposal.plan).unwrap();
        for number in 0..8 {
            thread
                .push(Message::user(format!("And {number} after {round}, with a few more words?")));
            thread.push(Message::assistant(format!("Yes, {number}, and a few more words on it.")));
        }
    }
    let asked = notation::write(&model.requests()[1].messages);
    assert_eq!(asked.matches("First summary").count(), 1, "{asked}");
    assert!(!asked.contains("part_0"), "{asked}");
    let after = notation::write(thread.messages());
    assert!(!after.contains("First summary") && after.contains("Second summary"), "{after}");
}

#[test]
fn the_summary_request_has_the_prompt_and_tools_of_the_conversation() {
    let call = ToolUse::new("t1", "read", serde_json::json!({}));
    let call = Message::new(Role::Assistant, vec![call.into()]);
    let call = Answer::new(call, StopReason::ToolUse, Some(Usage::new(900, 7)));
    let model = ScriptedModel::new([Scripted::from(call), Scripted::from("Summary.")]);
    let tools = vec![ToolSpec::new("read", "Reads.", serde_json::json!({"type": "object"}))];
    let system = vec![Message::system("You mend parsers.")];
    let thread =
        Snapshot::new(conversation()).with_context(system.clone().into(), tools.clone().into());
    let proposal = run(&Summarize::default(), &thread, Models::one(&model)).unwrap();
    assert_eq!((proposal.calls, proposal.usage.output), (2, 14), "both calls are counted");
    let [request, again] = <[Request; 2]>::try_from(model.requests()).unwrap();
    assert_eq!(request.system[..], system[..]);
    assert_eq!(request.tools[..], tools[..]);
    assert_eq!(legality::violations(&request.messages), []);
    // The first request has the tool choice of the conversation, so that its cache applies.
    assert_eq!(request.tool_choice, None);
    assert_eq!(again, Request { tool_choice: Some(ToolChoice::None), ..request });
}

#[test]
fn a_hostile_summariser_leaves_everything_unchanged() {
    for way in Scripted::misbehaving() {
        let model = ScriptedModel::repeating([way.clone()]);
        let thread = Snapshot::new(conversation());
        let before = thread.messages().to_vec();
        let outcome = run(&Summarize::default(), &thread, Models::one(&model));
        // A slow answer counts as an answer.
        assert_eq!(outcome.is_ok(), matches!(way, Scripted::Slow(_)), "{way:?}: {outcome:?}");
        assert_eq!(thread.messages()[..], before[..]);
    }
}

#[test]
fn a_failure_states_the_tokens_spent() {
    let spent = Usage::new(900, 7);
    let error = ModelError::new(ModelErrorKind::Other, "broken").with_usage(spent);
    let model = ScriptedModel::new([Scripted::from(error)]);
    let failed = run(&Summarize::default(), &Snapshot::new(conversation()), Models::one(&model))
        .unwrap_err();
    assert_eq!((failed.usage, failed.calls), (spent, 1));
    assert_eq!(failed.to_string(), "the model call failed: broken");
}

#[test]
fn a_strategy_that_needs_a_model_fails_without_one_and_states_why() {
    let thread = Snapshot::new(conversation());
    let failed = run(&Summarize::default(), &thread, Models::default()).unwrap_err();
    assert!(matches!(failed.strategy(), Some(StrategyError::NeedsModel)), "{failed:?}");
    assert_eq!(failed.calls, 0);
    assert!(run(&KeepRecent { messages: 4, tokens: None }, &thread, Models::default()).is_ok());
}

#[test]
fn the_driver_receives_the_summary_while_it_is_written() {
    let thread = Snapshot::new(conversation());
    let (mut text, mut turns, mut calls) = (String::new(), 0, 0);
    let mut observe = |_: &ModelCall, delta: Option<&Delta>| match delta {
        Some(Delta::Text { text: piece }) => text.push_str(piece),
        Some(Delta::Answer { .. }) => turns += 1,
        None => calls += 1,
        Some(_) => {}
    };
    let (strategy, brief) = (Summarize::default(), Brief::default());
    let models = Models::one(&ExtractiveModel);
    let proposal = block_on(propose(&strategy, &thread, &brief, models, &mut observe)).unwrap();
    assert_eq!((turns, calls), (1, 1));
    // The lists of quotes are cut from the answer when it is complete.
    assert_eq!(Some(Quotes::cut(&text).0), summary_of(&proposal));
}

fn summary_of(proposal: &Proposal) -> Option<String> {
    let mut blocks = proposal.plan.new_messages().flat_map(|message| &message.content);
    blocks.find_map(|block| match block {
        ContentBlock::Summary(summary) => Some(summary.text.to_string()),
        _ => None,
    })
}

#[test]
fn a_dropped_compaction_can_be_started_again() {
    let model = ScriptedModel::new(["Summary of it all."]);
    let thread = Snapshot::new(conversation());
    let (strategy, brief) = (Summarize::default(), Brief::default());
    let mut observe = |_: &ModelCall, _: Option<&Delta>| {};
    drop(propose(&strategy, &thread, &brief, Models::one(&model), &mut observe));
    assert_eq!(model.requests().len(), 0, "nothing is asked before the first poll");
    assert!(run(&strategy, &thread, Models::one(&model)).is_ok());
}

#[test]
fn a_stream_that_is_dropped_midway_does_no_harm() {
    let model = ScriptedModel::new(["a first answer that comes in several pieces", "a second"]);
    let (mut agent, thread) = agent(&model);
    let request = Request::new(thread.messages().clone());
    let mut first = agent.answer(request.clone());
    assert!(matches!(block_on(first.next()), Some(Ok(Delta::Text { .. }))));
    drop(first);
    assert_eq!(block_on(answer_of(agent.answer(request))).unwrap().text(), "a second");
    assert_eq!(thread.messages().len(), conversation().len(), "an agent appends nothing by itself");
}

#[test]
fn every_strategy_can_keep_typed_text_around_a_checkpoint() {
    let mut thread = vec![Message::user("start"), Message::assistant("a long answer. ".repeat(99))];
    let listed = "src/a_file_of_some_name.rs\n".repeat(40);
    let call = notation::parse(&format!(
        "# assistant\n[tool_use l list] {{}}\n# user\n[tool_result l] {listed}"
    ));
    thread.extend(call.unwrap());
    let mut typed = Message::user("Look at this:");
    typed.make_mut().content.extend([
        ContentBlock::checkpoint("aaaaaa".parse().unwrap()),
        ContentBlock::text("and fix it."),
    ]);
    thread.push(typed);
    thread
        .extend((0..20).map(|part| Message::assistant(format!("Part {part} is done, and so on."))));
    let thread = Snapshot::new(thread);
    let registry = threadfold::StrategyRegistry::default();
    // The only result is among those that clearing keeps.
    for name in registry.names().filter(|name| *name != "clear-results") {
        let strategy = registry.get(name).unwrap();
        let proposal = run(strategy.as_ref(), &thread, Models::one(&ExtractiveModel));
        assert!(proposal.is_ok(), "{name}: {proposal:?}");
    }
}

#[test]
fn a_budget_applies_even_if_an_open_call_is_larger() {
    let long = "word ".repeat(300);
    let mut thread: Vec<Message> = (0..5)
        .flat_map(|_| [Message::user(long.as_str()), Message::assistant(long.as_str())])
        .collect();
    thread.push(Message::user("write it"));
    let call =
        threadfold::message::ToolUse::new("t1", "write", serde_json::json!({ "text": long }));
    thread.push(Message::new(Role::Assistant, vec![call.into()]));
    let tight = KeepRecent { messages: 100, tokens: Some(200) };
    let proposal = run(&tight, &Snapshot::new(thread), Models::default()).unwrap();
    assert_eq!(proposal.plan.messages_after(), 2);
}

/// Asks again and again, whatever the answer is.
#[derive(Debug)]
struct Stubborn;

#[threadfold::async_trait]
impl CompactionStrategy for Stubborn {
    fn name(&self) -> &str {
        "stubborn"
    }

    async fn propose(&self, _: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let call = ModelCall::new(ModelRole::Fast, Request::default());
        loop {
            let _ = ask.once(&call).await;
        }
    }
}

#[test]
fn an_endless_strategy_is_stopped_even_without_a_model() {
    let (thread, brief) = (Snapshot::new(conversation()), Brief::default());
    let failed = block_on(propose(&Stubborn, &thread, &brief, Models::default(), &mut |_, _| {}))
        .map_err(|failed| failed.to_string());
    assert_eq!(failed.unwrap_err(), "gave up after 0 calls of a model");
}
