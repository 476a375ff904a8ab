//! A model that checks every request, and waits at points where a test wants to act.
//!
//! A user's text has a name and an instruction for the model: `u7-t3 tool` makes it call a tool. At
//! a stop the model announces its arrival, and continues when the test allows it. So no test
//! sleeps.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde_json::json;
use server::Threads;
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role, Session,
    ThreadStore, TokenCounter, Usage, async_trait,
    auto::AutoPolicy,
    legality,
    message::{Delta, ModelError, StopReason, ToolSpec, ToolUse},
    model::{self, Tool, ToolContext, ToolOutput},
    session::SessionBuilder,
    store::LeaseStore,
    strategy::{Digest, Ladder, Summarize},
    tokens::ByteEstimate,
};
use tokio::sync::Notify;

/// The window of both models, in tokens.
pub(crate) const WINDOW: u64 = 2_000;

/// The observations of the models and the tool.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    pub(crate) requests: AtomicUsize,
    pub(crate) summaries: AtomicUsize,
    /// The faults of requests.
    pub(crate) complaints: Mutex<Vec<String>>,
    /// The number of answers and tool calls that have begun and were neither finished nor dropped.
    pub(crate) running: AtomicUsize,
    stops: Mutex<HashMap<String, Arc<Stop>>>,
}

/// A point at which the model or the tool waits.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    pub(crate) arrived: Notify,
    pub(crate) open: Notify,
}

impl Judge {
    /// Returns the stop of a text, by its name.
    pub(crate) fn stop(&self, name: &str) -> Arc<Stop> {
        Arc::clone(self.stops.lock().unwrap().entry(name.to_owned()).or_default())
    }

    /// Returns the threads of a server whose models and tool are observed.
    pub(crate) fn threads(self: &Arc<Self>, store: Arc<dyn ThreadStore>, idle: usize) -> Threads {
        Threads::new(store, idle, self.builder())
    }

    /// The same for a server that shares its store with others.
    pub(crate) fn shared(self: &Arc<Self>, store: Arc<dyn LeaseStore>) -> Threads {
        Threads::shared(store, "this one".to_owned(), self.builder())
    }

    fn builder(self: &Arc<Self>) -> impl Fn() -> SessionBuilder + Send + Sync + 'static {
        let judge = Arc::clone(self);
        move || {
            let summarize = Summarize {
                as_text: true,
                messages: 4,
                summary_tokens: 300,
                user_tokens: 200,
                ..Summarize::default()
            };
            let ladder = Ladder::new([Arc::new(summarize) as _, Arc::new(Digest::default()) as _]);
            Session::builder(ModelAgent::new(Arc::new(Answers(Arc::clone(&judge)))))
                .system("You answer for a test.")
                .tool(Arc::new(Look(Arc::clone(&judge))))
                .fast_model(Arc::new(Summaries(Arc::clone(&judge))))
                .strategy(Arc::new(ladder))
                .policy(AutoPolicy::default())
        }
    }

    /// Checks a request of either model.
    fn check(&self, request: &Request) {
        let violations = legality::violations(&request.messages);
        let tokens = ByteEstimate::TRIGGER.request(request);
        let mut complaints = self.complaints.lock().unwrap();
        complaints.extend(violations.iter().map(ToString::to_string));
        if tokens > WINDOW {
            complaints.push(format!("{tokens} tokens"));
        }
    }

    fn begin(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(self))
    }

    async fn wait(&self, name: &str) {
        let stop = self.stop(name);
        stop.arrived.notify_one();
        stop.open.notified().await;
    }
}

/// Counts itself while it exists.
#[derive(Debug)]
struct Running(Arc<Judge>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the model does with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Tool,
    StopBefore,
    StopWithin,
    StopInTool,
}

/// The model of the conversation.
#[derive(Debug)]
struct Answers(Arc<Judge>);

#[async_trait]
impl Model for Answers {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let judge = Arc::clone(&self.0);
        judge.requests.fetch_add(1, Ordering::SeqCst);
        judge.check(&request);
        let running = judge.begin();
        let (name, way) = typed(&request);
        let again = request.messages.last().is_some_and(|last| last.tool_results().count() > 0);
        let turn = match way {
            Way::Tool | Way::StopInTool if !again => call(&name, way),
            _ => {
                Answer::new(Message::assistant(words(&name)), StopReason::EndTurn, usage(&request))
            }
        };
        let text = turn.text();
        let begun = stream::once(async move {
            if way == Way::StopBefore {
                judge.wait(&name).await;
            }
            let first = Delta::Text { text: text.get(..8).unwrap_or(&text).into() };
            (judge, name, first)
        });
        begun
            .flat_map(move |(judge, name, first)| {
                let turn = turn.clone();
                let rest = stream::once(async move {
                    if way == Way::StopWithin {
                        judge.wait(&name).await;
                    }
                    Ok(Delta::Answer { answer: turn })
                });
                stream::iter([Ok(first)]).chain(rest)
            })
            .map(move |delta| {
                let _ = &running;
                delta
            })
            .boxed()
    }

    fn context_window(&self) -> Option<ContextWindow> {
        Some(ContextWindow::new(WINDOW))
    }
}

/// The model of summaries. It waits if the instructions of the compaction name a stop.
#[derive(Debug)]
struct Summaries(Arc<Judge>);

#[async_trait]
impl Model for Summaries {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let judge = &self.0;
        judge.summaries.fetch_add(1, Ordering::SeqCst);
        judge.check(&request);
        let _running = judge.begin();
        let asked = serde_json::to_string(&request.messages).unwrap();
        if let Some((_, name)) = asked.split_once("stop-at:") {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap();
            judge.wait(&name[..end]).await;
        }
        let summary = Message::assistant("They looked at many things, one after the other.");
        Ok(Answer::new(summary, StopReason::EndTurn, usage(&request)))
    }

    fn context_window(&self) -> Option<ContextWindow> {
        Some(ContextWindow::new(WINDOW))
    }
}

/// A tool with a long result.
#[derive(Debug)]
struct Look(Arc<Judge>);

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("look", "Looks at something.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let _running = self.0.begin();
        let input = call.input.json()?.to_value()?;
        if let Some(name) = input["stop"].as_str() {
            self.0.wait(name).await;
        }
        Ok(ToolOutput::from("It is a thing with a handle. ".repeat(20)))
    }
}

/// Returns the name and the instruction in the user's newest text.
fn typed(request: &Request) -> (String, Way) {
    let message = request.messages.iter().rev().find(|message| message.is_typed()).unwrap();
    let text = message.content.iter().find_map(ContentBlock::as_text).unwrap().as_str();
    let (name, way) = text.split_once(' ').unwrap();
    let way = match way.split_whitespace().next() {
        Some("plain") => Way::Plain,
        Some("tool") => Way::Tool,
        Some("stop-before") => Way::StopBefore,
        Some("stop-within") => Way::StopWithin,
        Some("stop-in-tool") => Way::StopInTool,
        other => panic!("{other:?}"),
    };
    (name.to_owned(), way)
}

fn call(name: &str, way: Way) -> Answer {
    let input = match way {
        Way::StopInTool => json!({ "stop": name }),
        _ => json!({}),
    };
    let call = ToolUse::new(format!("call-{name}"), "look", input);
    let content = vec![ContentBlock::text("I look at it."), call.into()];
    Answer::new(Message::new(Role::Assistant, content), StopReason::ToolUse, None)
}

fn words(name: &str) -> String {
    format!("This is the answer to {name}. {}", "It says what was asked, and more. ".repeat(12))
}

/// Returns the usage of a request, as a provider reports it.
fn usage(request: &Request) -> Option<Usage> {
    Some(Usage::new(ByteEstimate::TRIGGER.request(request), 150))
}
