//! A rig agent with a tool, 60 steps, in a window that its history exceeds many times. Every request
//! that its model received is checked.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
};

use rig_agent::{
    Agent, AgentBuilder,
    test_utils::{MockCompletionModel, MockTurn},
    tool::{DynamicTool, ToolOutput},
};
use rig_core::message::{AssistantContent, Message, ToolName, ToolResultContent, UserContent};
use serde_json::json;
use threadfold::{
    CompactionStrategy, ContextWindow, Message as Ours, async_trait,
    strategy::{Ask, Digest, Proposal, StrategyError, View},
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_rig::Folding;

const WINDOW: u64 = 8_000;
const STEPS: usize = 60;
const TASK: &str = "Mend the parser. Never touch the lexer, and write no file outside of src.";

/// A model that reads a file at each step, and answers with a text at the end.
fn steps(count: usize) -> Vec<MockTurn> {
    let calls = (0..count).map(|step| {
        MockTurn::tool_call(
            format!("call_{step}"),
            "read",
            json!({"path": format!("src/p{step}.rs")}),
        )
    });
    calls.chain([MockTurn::text("The parser is mended.")]).collect()
}

/// A tool that returns 2 KB of lines.
fn read() -> DynamicTool {
    let name = ToolName::new("read").expect("a name");
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    DynamicTool::new(name, "Reads a file.", schema, |arguments| {
        let path = arguments["path"].as_str().unwrap_or_default().to_owned();
        let lines =
            (0..40).map(|line| format!("{path}:{line}: let part_{line} = next(tokens)?;\n"));
        let text: String = lines.collect();
        Box::pin(async move { Ok(ToolOutput::text(text)) })
    })
}

fn agent(model: &MockCompletionModel, folding: &Folding) -> Agent {
    AgentBuilder::new(model.clone())
        .preamble("You mend programs.")
        .dynamic_tool(read())
        .default_max_turns(STEPS + 5)
        .add_hook(folding.clone())
        .build()
}

/// Asserts that each call of a history is answered by the message after it, and each result answers a
/// call of the message before it.
fn assert_legal(history: &[Message]) {
    let mut open: HashSet<String> = HashSet::new();
    for message in history {
        match message {
            Message::Assistant(answer) => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                open.extend(answer.content.iter().filter_map(|content| match content {
                    AssistantContent::ToolCall(call) => Some(call.id.wire().into_owned()),
                    _ => None,
                }));
            }
            Message::User { content } => {
                assert!(!content.is_empty(), "an empty message");
                for content in content {
                    if let UserContent::ToolResult(result) = content {
                        let id = result.call.wire().into_owned();
                        assert!(open.remove(&id), "a result without its call: {id}");
                    }
                }
                assert!(open.is_empty(), "calls without results: {open:?}");
            }
            Message::System { .. } => {}
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

fn texts(message: &Message) -> String {
    match message {
        Message::System { content } => content.clone(),
        Message::User { content } => content.iter().map(asked).collect(),
        Message::Assistant(answer) => answer.content.iter().map(answered).collect(),
    }
}

fn asked(content: &UserContent) -> String {
    match content {
        UserContent::Text(text) => text.text.clone(),
        UserContent::ToolResult(result) => {
            let texts = result.content.iter().map(|content| match content {
                ToolResultContent::Text(text) => text.text.clone(),
                other => format!("{other:?}"),
            });
            texts.collect()
        }
        other => format!("{other:?}"),
    }
}

fn answered(content: &AssistantContent) -> String {
    match content {
        AssistantContent::Text(text) => text.text.clone(),
        AssistantContent::ToolCall(call) => json!(call.function.arguments).to_string(),
        other => format!("{other:?}"),
    }
}

fn tokens(history: &[Message]) -> u64 {
    let messages: Vec<Ours> = history.iter().map(|message| Ours::user(texts(message))).collect();
    ByteEstimate::TRIGGER.messages(&messages)
}

#[tokio::test]
async fn sixty_steps_fit_a_window_that_they_exceed() {
    let model = MockCompletionModel::from_turns(steps(STEPS));
    let folding = Folding::new(ContextWindow::new(WINDOW));
    let done = agent(&model, &folding).prompt(TASK).await.expect("an answer");
    assert_eq!(done.output(), "The parser is mended.");
    assert!(tokens(&done.messages) > 4 * WINDOW, "the history stays whole");
    let requests = model.requests();
    assert_eq!(requests.len(), STEPS + 1);
    for request in &requests {
        let history = &request.chat_history;
        assert_legal(history);
        assert!(tokens(history) <= WINDOW, "{} tokens", tokens(history));
        assert!(history.iter().any(|message| texts(message).contains(TASK)), "the task is kept");
        // What the model has not read is sent as it is.
        let last = history.last().expect("a prompt");
        let is_whole = |whole: &Message| whole == last;
        assert!(done.messages.iter().any(is_whole), "the prompt is one of the run");
    }
    let compactions = folding.compactions();
    assert!((3..20).contains(&compactions), "{compactions} compactions");
    // Between two compactions a request continues the one before, so that a prompt cache serves it.
    let continued = requests.windows(2).filter(|pair| {
        let (one, next) = (&pair[0].chat_history, &pair[1].chat_history);
        next.starts_with(one)
    });
    assert_eq!(continued.count(), STEPS - compactions);
}

#[tokio::test]
async fn kept_messages_are_the_values_of_the_history() {
    let model = MockCompletionModel::from_turns(steps(STEPS));
    let folding = Folding::new(ContextWindow::new(WINDOW));
    let done = agent(&model, &folding).prompt(TASK).await.expect("an answer");
    let requests = model.requests();
    let last = &requests.last().expect("a request").chat_history;
    let is_own = |message: &&Message| done.messages.contains(message);
    let foreign: Vec<String> = last.iter().filter(|it| !is_own(it)).map(texts).collect();
    // The preamble, and the task with one summary.
    let summaries = foreign.iter().filter(|text| text.contains("<conversation-summary>"));
    assert_eq!(summaries.count(), 1, "{foreign:?}");
    assert!(foreign.len() <= 2, "{foreign:?}");
}

#[tokio::test]
async fn a_later_prompt_continues_the_view_and_asks_no_model_again() {
    let turns = steps(STEPS).into_iter().chain(steps(2));
    let model = MockCompletionModel::from_turns(turns);
    let writer = MockCompletionModel::from_turns(vec![MockTurn::text("They read files."); STEPS]);
    let folding = Folding::new(ContextWindow::new(WINDOW)).with_model(writer.clone());
    let agent = agent(&model, &folding);
    let done = agent.prompt(TASK).await.expect("an answer");
    let asked = writer.request_count();
    assert!(asked > 2, "{asked} summaries");
    let again = agent.prompt("And the tests?").history(done.messages.clone()).await;
    assert_eq!(again.expect("an answer").output(), "The parser is mended.");
    let last = model.requests().pop().expect("a request").chat_history;
    assert!(tokens(&last) <= WINDOW);
    assert!(last.iter().any(|message| texts(message).contains("They read files.")));
    assert!(writer.request_count() <= asked + 1, "the view of the history was known");
    for request in writer.requests() {
        assert_legal(&request.chat_history);
    }
}

#[tokio::test]
async fn a_history_that_the_provider_refused_is_compacted_to_half() {
    let turns = steps(12).into_iter().take(12);
    let turns = turns.chain([MockTurn::error("prompt is too long"), MockTurn::text("Done.")]);
    let model = MockCompletionModel::from_turns(turns);
    let folding = Folding::new(ContextWindow::new(12_000));
    let agent = agent(&model, &folding);
    agent.prompt(TASK).await.expect_err("the provider refuses");
    let refused = model.requests().pop().expect("a request").chat_history;
    assert_eq!(prompt_with(&agent, &refused).await.as_deref(), Ok("Done."));
    let sent = model.requests().pop().expect("a request").chat_history;
    assert_legal(&sent);
    assert!(
        tokens(&sent) * 10 <= tokens(&refused) * 6,
        "{} of {}",
        tokens(&sent),
        tokens(&refused)
    );
}

/// Prompts with the history of this request.
async fn prompt_with(agent: &Agent, request: &[Message]) -> Result<String, String> {
    let (prompt, history) = request.split_last().expect("a prompt");
    let history = history.iter().filter(|it| !matches!(it, Message::System { .. })).cloned();
    let done = agent.prompt(prompt.clone()).history(history.collect::<Vec<_>>()).await;
    done.map(|done| done.output().to_owned()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_history_that_is_refused_whatever_its_size_is_sent_as_it_was() {
    let turns = steps(12).into_iter().take(12);
    let turns = turns.chain(vec![MockTurn::error("prompt is too long"); 2]);
    let model = MockCompletionModel::from_turns(turns.chain([MockTurn::text("Done.")]));
    let folding = Folding::new(ContextWindow::new(12_000));
    let agent = agent(&model, &folding);
    agent.prompt(TASK).await.expect_err("the provider refuses");
    let refused = model.requests().pop().expect("a request").chat_history;
    prompt_with(&agent, &refused).await.expect_err("it refuses half of it too");
    let halved = model.requests().pop().expect("a request").chat_history;
    assert!(tokens(&halved) * 10 <= tokens(&refused) * 6);
    assert_eq!(prompt_with(&agent, &refused).await.as_deref(), Ok("Done."));
    assert_eq!(model.requests().pop().expect("a request").chat_history, refused);
}

#[tokio::test]
async fn an_answer_gets_shorter_before_a_history_does() {
    let sum = "input length and `max_tokens` exceed context limit: 5000 + 9000 > 12000, decrease \
        input length or `max_tokens` and try again";
    let turns = steps(6).into_iter().take(6);
    let turns = turns.chain([MockTurn::error(sum), MockTurn::text("Done.")]);
    let model = MockCompletionModel::from_turns(turns);
    let folding = Folding::new(ContextWindow::new(12_000));
    let agent = AgentBuilder::new(model.clone())
        .dynamic_tool(read())
        .default_max_turns(STEPS)
        .max_tokens(9_000)
        .add_hook(folding.clone())
        .build();
    agent.prompt(TASK).await.expect_err("the provider refuses");
    let refused = model.requests().pop().expect("a request").chat_history;
    assert_eq!(prompt_with(&agent, &refused).await.as_deref(), Ok("Done."));
    let requests = model.requests();
    let [refused, sent] = &requests[requests.len() - 2..] else { panic!("two requests") };
    assert_eq!((refused.max_tokens, folding.compactions()), (Some(9_000), 0));
    assert_eq!(sent.chat_history, refused.chat_history);
    assert!(
        sent.max_tokens.is_some_and(|most| (5_000..7_000).contains(&most)),
        "{:?}",
        sent.max_tokens
    );
}

/// A digest that never ends while it is held.
#[derive(Debug, Default)]
struct Held {
    digest: Digest,
    is_held: AtomicBool,
    is_waiting: AtomicBool,
}

#[async_trait]
impl CompactionStrategy for Held {
    fn name(&self) -> &str {
        "held"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        if self.is_held.load(Relaxed) {
            self.is_waiting.store(true, Relaxed);
            return std::future::pending().await;
        }
        self.digest.propose(view, ask).await
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_while_it_compacts_loses_nothing() {
    let model = MockCompletionModel::from_turns(steps(STEPS).into_iter().chain(steps(STEPS)));
    let strategy = Arc::new(Held::default());
    let folding = Folding::new(ContextWindow::new(WINDOW)).with_strategy(strategy.clone());
    let agent = agent(&model, &folding);
    let done = agent.prompt(TASK).await.expect("an answer");
    let compactions = folding.compactions();
    assert!(compactions > 2, "{compactions}");
    strategy.is_held.store(true, Relaxed);
    let long = "And the tests? ".repeat(400);
    let mut run = Box::pin(agent.prompt(long).history(done.messages.clone()).into_future());
    std::future::poll_fn(|cx| {
        assert!(run.as_mut().poll(cx).is_pending());
        cx.waker().wake_by_ref();
        if strategy.is_waiting.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    drop(run);
    assert_eq!(folding.compactions(), compactions);
    strategy.is_held.store(false, Relaxed);
    let again = agent.prompt("And the tests?").history(done.messages.clone()).await;
    again.expect("an answer");
    assert!(folding.compactions() > compactions);
}

#[tokio::test]
async fn a_request_that_fits_is_sent_as_it_is() {
    let model = MockCompletionModel::text("Hello!");
    let folding = Folding::new(ContextWindow::new(WINDOW));
    let agent = AgentBuilder::new(model.clone()).add_hook(folding.clone()).build();
    agent.prompt("Hi.").await.expect("an answer");
    assert_eq!(model.requests()[0].chat_history, [Message::user("Hi.")]);
    assert_eq!(folding.compactions(), 0);
}
