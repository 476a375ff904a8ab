//! How many functions of the crate a call passes: from a text to the model, and from the trigger to
//! the request for a summary.

use std::{
    backtrace::Backtrace,
    sync::{Arc, Mutex},
};

use futures::{StreamExt, executor::block_on, stream::BoxStream};
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Request, Session, async_trait,
    auto::{AutoPolicy, Threshold},
    drive::{Models, propose},
    message::{Delta, ModelError},
    retention::RetentionPolicy,
    strategy::{Brief, Ladder, Snapshot},
    testing::{ExtractiveModel, ScriptedModel},
    tokens::{ByteEstimate, TokenCounter},
};

/// Records the functions of the crate that lead to each request.
#[derive(Clone, Debug)]
struct Traced {
    model: ScriptedModel,
    calls: Arc<Mutex<Vec<Vec<String>>>>,
}

#[async_trait]
impl Model for Traced {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.model.complete(request).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let trace = Backtrace::force_capture().to_string();
        self.calls.lock().unwrap().push(functions(&trace));
        self.model.stream(request).boxed()
    }
}

/// The functions of the crate in a backtrace, the innermost first. A function and its future are
/// one.
fn functions(trace: &str) -> Vec<String> {
    let lines = trace.lines().filter_map(|line| line.trim().split_once(": ").map(|(_, name)| name));
    let own =
        lines.filter(|name| name.starts_with("threadfold::") || name.starts_with("<threadfold::"));
    let mut names: Vec<String> = own.map(|name| name.replace("::{{closure}}", "")).collect();
    names.dedup();
    names
}

#[test]
fn few_functions_lie_between_a_text_and_a_request() {
    let model = ScriptedModel::repeating(["It is done."]);
    let traced = Traced { model, calls: Arc::default() };
    let policy = AutoPolicy { threshold: Threshold::Fraction(0.5), ..AutoPolicy::default() };
    let mut session = Session::builder(ModelAgent::new(Arc::new(traced.clone())))
        .window(ContextWindow::new(6_000))
        .policy(policy)
        .build()
        .unwrap();
    let long = "Another word. ".repeat(900);
    for text in ["First.", long.as_str(), "Third."] {
        block_on(async { session.send(text).await }).unwrap();
    }
    assert!(session.messages().iter().any(Message::is_summary), "a model wrote a summary");
    let calls = traced.calls.lock().unwrap();
    let (turns, summaries): (Vec<_>, Vec<_>) =
        calls.iter().partition(|call| call[0].ends_with("::answer"));
    assert!(turns.len() == 3 && !summaries.is_empty(), "{calls:#?}");
    // From the poll of the stream to the agent, which calls `Model::stream`.
    for call in turns {
        let since = call.iter().position(|name| name.ends_with("::poll_next")).unwrap();
        assert!(since < 6, "{call:#?}");
    }
    // From the compaction that the trigger starts to the call of `Model::stream`, through a ladder.
    for call in summaries {
        let at = |name: &str| call.iter().position(|it| it.ends_with(name)).unwrap();
        assert!(at("::compact_for") - at("::stream") <= 8, "{call:#?}");
    }
}

/// Counts how often many messages are counted at once.
#[derive(Clone, Debug, Default)]
struct Looks(Arc<Mutex<Vec<usize>>>);

impl TokenCounter for Looks {
    fn text(&self, text: &str) -> u64 {
        ByteEstimate::TRIGGER.text(text)
    }

    fn messages(&self, messages: &[Message]) -> u64 {
        self.0.lock().unwrap().push(messages.len());
        messages.iter().map(|message| self.message(message)).sum()
    }
}

#[test]
fn one_compaction_checks_the_whole_thread_few_times() {
    let round = |number: usize| {
        let said = format!("Look into src/part_{number}.rs and tell me what it does. ").repeat(4);
        [Message::user(said), Message::assistant("It parses a line, and the next one. ".repeat(9))]
    };
    let messages: Vec<Message> = (0..100).flat_map(round).collect();
    let looks = Looks::default();
    for (model, retention) in [(false, false), (false, true), (true, false), (true, true)] {
        let snapshot = Snapshot::new(messages.clone()).with_counter(Arc::new(looks.clone()));
        let target = Some(snapshot.counter().messages(&messages) / 4);
        let retention = retention.then(RetentionPolicy::default);
        let brief = Brief { target, retention, ..Brief::default() };
        looks.0.lock().unwrap().clear();
        let models = if model { Models::one(&ExtractiveModel) } else { Models::default() };
        let ladder = Ladder::default();
        let done = block_on(propose(&ladder, &snapshot, &brief, models, &mut |_, _| {})).unwrap();
        let left = done.plan.messages_after();
        let looks = looks.0.lock().unwrap();
        assert!(!looks.contains(&messages.len()), "the thread before is never counted again");
        // Each check counts the compacted thread once, and so does each try of the fill.
        let checks = looks.iter().filter(|len| **len == left).count();
        assert!(checks <= 12, "{checks}: {looks:?}");
    }
}
