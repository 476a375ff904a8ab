//! A strategy built with the two constructors: a summarising plan, and a question to a model.

use std::{sync::Arc, time::Duration};

use futures::executor::block_on;
use threadfold::{
    Answer, CompactionStrategy, ContentBlock, Message, ModelAgent, Plan, Request, Role, Session,
    Usage, async_trait,
    drive::{CompactionError, Models, propose},
    legality,
    message::{
        CompactionId, ModelError, ModelErrorKind, StopReason, Thinking, ToolResult, ToolUse,
    },
    strategy::{Ask, Brief, ModelRole, Proposal, Snapshot, StrategyError, View, summary_of},
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::TestClock;

/// Summarises all but the last messages.
#[derive(Debug)]
struct SumUp(ModelRole, Duration);

/// More than all waits of a test together.
const LONG: Duration = Duration::from_secs(120);

#[async_trait]
impl CompactionStrategy for SumUp {
    fn name(&self) -> &str {
        "sum-up"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let (thread, messages) = (&view.thread, view.thread.messages());
        let last = messages.iter().rposition(Message::is_typed).unwrap_or_default();
        let cut = thread.cut_at_or_before(last);
        if cut == 0 {
            let reason = "it is short".into();
            return Err(StrategyError::NothingToCompact { reason });
        }
        let mut request = Request::new(messages[..cut].to_vec());
        request.tools = thread.tools().clone();
        Arc::make_mut(&mut request.messages).push(Message::user("Sum up the conversation so far."));
        let turn = ask.question_within(self.1, self.0, request).await?;
        Ok(Plan::summarise(messages, 0..cut, summary_of(&turn)?)?.into())
    }
}

fn seconds(clock: &TestClock) -> Vec<u64> {
    clock.waits().iter().map(Duration::as_secs).collect()
}

fn busy(after: Option<u64>) -> Scripted {
    let kind = ModelErrorKind::Retryable { after: after.map(Duration::from_secs) };
    let mut error = ModelError::new(kind, "busy");
    error.usage = Usage::new(10, 0);
    error.into()
}

fn summary() -> Scripted {
    let turn = Message::assistant("They looked at the parser.");
    Answer::new(turn, StopReason::EndTurn, Some(Usage::new(100, 7))).into()
}

fn signed(id: &str) -> Message {
    let thought = Thinking::new("Hm.", Some("signature".into()));
    let call = ToolUse::new(id, "read", serde_json::json!({}));
    Message::new(Role::Assistant, vec![thought.into(), call.into()])
}

fn thread() -> Vec<Message> {
    vec![
        Message::user(format!("Where is the parser? {}", "I looked. ".repeat(40))),
        Message::assistant("In src/parse.rs."),
        Message::user("How long is it?"),
        signed("c1"),
        Message::new(Role::User, vec![ToolResult::text("c1", "100 lines").into()]),
    ]
}

fn run(
    strategy: &SumUp,
    thread: &Snapshot,
    brief: &Brief,
    models: Models<'_>,
) -> Result<Proposal, CompactionError> {
    block_on(propose(strategy, thread, brief, models, &mut |_, _| {}))
}

#[test]
fn a_question_is_repeated_as_the_provider_asks_and_every_call_is_counted() {
    let model = ScriptedModel::new([busy(None), busy(Some(7)), busy(None), summary()]);
    let waits = TestClock::default();
    let models = Models { clock: Some(&waits), ..Models::one(&model) };
    let strategy = SumUp(ModelRole::Fast, LONG);
    let thread = Snapshot::new(thread());
    let proposal = run(&strategy, &thread, &Brief::default(), models).unwrap();
    assert_eq!((proposal.calls, proposal.usage.input, proposal.usage.output), (4, 130, 7));
    assert_eq!(seconds(&waits), [1, 7, 10]);
    assert!(model.requests().windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_question_without_an_answer_in_time_fails_with_its_usage() {
    let model = ScriptedModel::new([busy(None), busy(Some(30)), summary()]);
    let waits = TestClock::default();
    let models = Models { clock: Some(&waits), ..Models::one(&model) };
    let thread = Snapshot::new(thread());
    let strategy = SumUp(ModelRole::Fast, Duration::from_secs(20));
    let failed = run(&strategy, &thread, &Brief::default(), models).unwrap_err();
    assert_eq!((failed.calls, failed.usage.input, model.remaining()), (2, 20, 1));
    assert!(matches!(failed.strategy(), Some(StrategyError::Model(_))), "{failed}");
    assert_eq!(seconds(&waits), [1]);
}

#[test]
fn the_plan_marks_all_reasoning_in_an_open_tool_loop() {
    let model = ScriptedModel::new([summary()]);
    let (thread, number) = (Snapshot::new(thread()), Some(CompactionId(5)));
    let brief = Brief { compaction: number, ..Brief::default() };
    let strategy = SumUp(ModelRole::Fast, LONG);
    let proposal = run(&strategy, &thread, &brief, Models::one(&model)).unwrap();
    let after = proposal.plan.after(thread.messages()).unwrap();
    let ContentBlock::Summary(summary) = &after[0].content[0] else { panic!("{after:?}") };
    assert_eq!((summary.compaction, after[0].role, after.len()), (number, Role::User, 4));
    assert!(after[2].prefix_rewritten && after[2].content.len() == 2);
    assert_eq!(legality::violations(&after), []);
}

#[test]
fn a_strategy_of_a_host_compacts_a_session() {
    let long = format!("Never touch the lexer. Where is it? {}", "I looked. ".repeat(40));
    let answers = [Scripted::from("In src/parse.rs."), "A hundred lines.".into(), summary()];
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(answers)));
    let strategy = Arc::new(SumUp(ModelRole::Conversation, LONG));
    let mut session = Session::builder(agent).strategy(strategy).build().unwrap();
    for text in [&long, "How long is it?", "/compact"] {
        block_on(async { session.send(text).await }).unwrap();
    }
    let record = session.log().standing().last().unwrap();
    assert_eq!((record.strategy.as_str(), record.usage.output), ("sum-up", 7));
    let text = format!("{:?}", session.messages()[0]);
    assert!(
        text.contains("They looked at the parser.") && text.contains("- Never touch the lexer.")
    );
}
