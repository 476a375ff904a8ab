//! How many functions of the crate a call passes: from a text to the model, and from the trigger to
//! the request for a summary.

use std::{
    backtrace::Backtrace,
    sync::{Arc, Mutex},
};

use futures::{StreamExt, executor::block_on, stream::BoxStream};
use threadfold::{
    ContextWindow, Message, Model, ModelAgent, Request, Session, Turn, async_trait,
    auto::{AutoPolicy, Threshold},
    message::{Delta, ModelError},
    testing::ScriptedModel,
};

/// Records the functions of the crate that lead to each request.
#[derive(Clone, Debug)]
struct Traced {
    model: ScriptedModel,
    calls: Arc<Mutex<Vec<Vec<String>>>>,
}

#[async_trait]
impl Model for Traced {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
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
        calls.iter().partition(|call| call[0].ends_with("::run_turn"));
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
