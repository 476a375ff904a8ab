//! The tools by which a model compacts its own thread, in a loop without a session.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Compactor, ContentBlock, ContextWindow, Message, ModelAgent, Role, Session,
    compaction::{COMPACT, COMPACT_CONTEXT, compact_context_tool, compact_tool},
    drive::Models,
    legality,
    message::{ToolResult, ToolUse},
    session::SessionBuilder,
    testing::{ExtractiveModel, ScriptedModel},
};
use threadfold_testing::notation;

use super::support::{RULE, long};

fn call(id: &str, name: &str, input: serde_json::Value) -> ContentBlock {
    ToolUse::new(id, name, input).into()
}

fn answer(calls: Vec<ContentBlock>) -> Message {
    Message::new(Role::Assistant, calls)
}

/// A thread of this many rounds, with checkpoints.
fn stamped(rounds: usize) -> Vec<Message> {
    let round =
        |n| [Message::user(long(&format!("{RULE} Part {n}."))), Message::assistant(long("Well."))];
    let mut messages: Vec<Message> = (0..rounds).flat_map(round).collect();
    messages.push(Message::user("And now?"));
    Compactor::default().stamp(&mut messages);
    messages
}

fn checkpoint(message: &Message) -> String {
    let id = message.content.iter().find_map(|block| match block {
        ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id.to_string()),
        _ => None,
    });
    id.unwrap()
}

/// The thread as text, with numbers for its checkpoints, which a session draws differently.
fn numbered(messages: &[Message]) -> String {
    let ids =
        messages.iter().flat_map(|message| &message.content).filter_map(|block| match block {
            ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id.to_string()),
            _ => None,
        });
    let numbers = ids.enumerate();
    numbers.fold(notation::write(messages), |text, (number, id)| {
        text.replace(&id, &format!("id{number}"))
    })
}

/// The thread that a session has after this answer to the last message of the thread.
fn in_a_session(
    thread: &[Message],
    answer: &Message,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Vec<Message> {
    let (last, before) = thread.split_last().unwrap();
    let model = ScriptedModel::new([answer.clone(), Message::assistant("Done.")]);
    let agent = ModelAgent::new(Arc::new(model)).with_window(ContextWindow::new(6_000));
    let builder = Session::builder(agent).messages(before.iter().cloned());
    let builder = build(builder).fast_model(Arc::new(ExtractiveModel));
    let mut session = builder.build().unwrap();
    let ContentBlock::Text(text) = &last.content[0] else { panic!("{last:?}") };
    block_on(async { session.send(text.text.clone()).await }).unwrap();
    let messages = session.messages();
    messages[..messages.len() - 1].to_vec()
}

#[test]
fn a_call_of_compact_gives_the_thread_that_a_session_gives() {
    let thread = stamped(3);
    let range = |to: &str| json!({"replacements": [{"to": to, "summary": "They talked."}]});
    let good = call("c", COMPACT, range(&checkpoint(&thread[2])));
    let unknown = call("c", COMPACT, range("zzzzzz"));
    let unreadable = call("c", COMPACT, json!({"replacements": "all"}));
    let twice = call("d", COMPACT, range(&checkpoint(&thread[0])));
    for calls in [vec![good.clone()], vec![unknown], vec![unreadable], vec![good, twice]] {
        let compacts = calls.len();
        let answer = answer(calls);
        let expected = in_a_session(&thread, &answer, SessionBuilder::compact_tool);
        let (mut messages, mut compactor) = (thread.clone(), Compactor::default());
        messages.push(answer);
        let done = compactor.push_results(&mut messages, [], Models::default());
        let done = block_on(done).unwrap();
        assert_eq!(numbered(&messages), numbered(&expected), "{compacts}");
        assert_eq!(legality::violations(&messages), []);
        let last = messages.last().unwrap();
        assert!(matches!(last.content.last(), Some(ContentBlock::Checkpoint(_))));
        if let Some(done) = done {
            assert_eq!(done.report.after.messages, messages.len());
            // The compactor keeps the facts of the summarised messages.
            let retention = done.report.retention.unwrap();
            assert!(retention.overall.facts > 0);
        }
    }
}

#[test]
fn a_range_to_the_end_removes_the_call_and_results_of_other_calls_stay() {
    let thread = stamped(2);
    let mut compactor = Compactor::default();
    compactor.add_rule("Never send mails.").unwrap();
    let mut messages = thread.clone();
    let range =
        json!({"replacements": [{"to": checkpoint(&thread[0]), "summary": "They talked."}]});
    messages.push(answer(vec![call("r", "read", json!({})), call("c", COMPACT, range)]));
    let results = [ToolResult::text("r", "fn main() {}")];
    block_on(compactor.push_results(&mut messages, results, Models::default())).unwrap().unwrap();
    let last = messages.last().unwrap();
    assert_eq!(last.tool_results().count(), 1);
    assert_eq!(messages[messages.len() - 2].tool_uses().count(), 1);
    assert_eq!(legality::violations(&messages), []);
    // The rest of the loop is compacted by the next call.
    let all = json!({"replacements": [{"summary": "All of it."}]});
    messages.push(answer(vec![call("e", COMPACT, all)]));
    block_on(compactor.push_results(&mut messages, [], Models::default())).unwrap().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(compactor.rules().active().count(), 1, "{}", compactor.rules());
}

#[test]
fn a_call_of_compact_context_runs_the_strategy_and_reports_the_numbers() {
    let thread = stamped(6);
    let asks = answer(vec![call("r", "read", json!({})), call("c", COMPACT_CONTEXT, json!({}))]);
    let mut messages = thread.clone();
    messages.push(asks.clone());
    let window = ContextWindow::new(6_000);
    let mut compactor = Compactor::default().with_window(window);
    let results = [ToolResult::text("r", "fn main() {}")];
    let done = compactor.push_results(&mut messages, results.clone(), &ExtractiveModel);
    let done = block_on(done).unwrap().unwrap();
    let results: Vec<_> = messages.last().unwrap().tool_results().cloned().collect();
    let ContentBlock::Text(text) = &results[1].content[0] else { panic!("{results:?}") };
    let reported: serde_json::Value = serde_json::from_str(&text.text).unwrap();
    assert_eq!(reported["tokensEstimateBefore"], done.report.before.tokens);
    assert_eq!(reported["tokensEstimateAfter"], done.report.after.tokens);
    assert_eq!(reported["batchesCreated"], 1, "{} calls", done.calls);
    assert!(reported["messagesCompressed"].as_u64().unwrap() > 6);
    assert_eq!(legality::violations(&messages), []);
    // A second call has nothing to compact.
    messages.push(asks);
    let results = [ToolResult::text("r", "fn main() {}")];
    let done = compactor.push_results(&mut messages, results, &ExtractiveModel);
    assert!(block_on(done).unwrap().is_none());
    let failed = messages.last().unwrap().tool_results().any(|result| result.is_error);
    assert!(!failed, "{:?}", messages.last());
}

#[test]
fn a_failed_compaction_and_a_missing_result_are_results_for_the_model() {
    let mut messages = stamped(4);
    messages
        .push(answer(vec![call("r", "read", json!({})), call("c", COMPACT_CONTEXT, json!({}))]));
    let strategy = Arc::new(threadfold::strategy::Summarize { messages: 2, ..Default::default() });
    let mut compactor = Compactor::default().with_strategy(strategy);
    let done = block_on(compactor.push_results(&mut messages, [], Models::default())).unwrap();
    assert!(done.is_none());
    let results: Vec<_> = messages.last().unwrap().tool_results().collect();
    assert!(results.iter().all(|result| result.is_error), "{results:?}");
    assert!(format!("{results:?}").contains("needs a model"));
    assert_eq!(messages.len(), 11);
    // Without calls nothing happens.
    messages.push(Message::assistant("Well."));
    let before = messages.clone();
    block_on(compactor.push_results(&mut messages, [], Models::default())).unwrap();
    assert_eq!(messages, before);
}

#[test]
fn the_tools_have_the_names_by_which_calls_are_found() {
    let names = [compact_tool().name, compact_context_tool().name];
    assert_eq!(names.map(|name| name.to_string()), [COMPACT, COMPACT_CONTEXT]);
}
