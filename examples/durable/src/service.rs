//! A model and its tools, offline, over HTTP. They count their calls.
//!
//! The model reads as many parts of a manual as the user asks for, and summarises with the
//! extractive model of the library. Like a provider without idempotency keys, it answers a repeated
//! call again. Every answer contains its number, so that a log shows which answers it holds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{Json, Router, extract::State, http::HeaderMap, routing};
use serde::Serialize;
use serde_json::json;
use threadfold::{
    Answer, Message, Model, Request, Role, legality,
    message::{ContentBlock, ModelError, ModelErrorKind, StopReason, ToolResult, ToolUse},
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
};
use tokio::net::TcpListener;

use crate::remote::KEY;

/// The model and the tools.
#[derive(Clone, Debug)]
pub struct Service {
    /// The maximum delay of an answer.
    delay: Duration,
    /// The window of the model in tokens.
    window: u64,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    calls: Vec<Call>,
    /// The position in the turn of each thread.
    rounds: HashMap<String, Round>,
    /// The number of each call among the calls with other keys.
    numbers: HashMap<String, usize>,
}

/// The last answer of a turn so far.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    key: String,
    is_last: bool,
}

/// A call that arrived.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// Its key.
    pub key: String,
    /// The answer, if it was sent.
    pub answer: Option<Answered>,
    /// The violations of its messages.
    pub violations: usize,
    /// The messages of its request.
    #[serde(skip)]
    pub messages: Vec<Message>,
}

/// An answer that was sent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// The model, in a turn.
    Answer(Result<Answer, ModelError>),
    /// The model, in a compaction.
    Summary,
    /// A tool.
    Result(ToolResult),
}

impl Service {
    /// Returns a service whose answers take up to `delay`.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self { delay, window: u64::MAX, kept: Arc::default() }
    }

    /// Returns the service with a model that refuses longer requests than this, in tokens.
    #[must_use]
    pub fn with_window(self, window: u64) -> Self {
        Self { window, ..self }
    }

    /// All calls so far, in the order of their arrival.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.kept().calls.clone()
    }

    /// How many calls arrived, and how many of them were answered.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let kept = self.kept();
        (kept.calls.len(), kept.calls.iter().filter(|call| call.answer.is_some()).count())
    }

    /// The key of the latest call.
    #[must_use]
    pub fn latest(&self) -> Option<String> {
        self.kept().calls.last().map(|call| call.key.clone())
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub async fn serve(self, listener: TcpListener) -> std::io::Result<()> {
        let routes = Router::new()
            .route("/model", routing::post(model))
            .route("/tool", routing::post(tool))
            .route("/calls", routing::get(calls));
        axum::serve(listener, routes.with_state(self)).await
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the arrival of a call and returns its index among all calls.
    fn arrived(&self, key: &str, messages: &[Message]) -> usize {
        let violations = legality::violations(messages).len();
        let mut kept = self.kept();
        let numbers = kept.numbers.len();
        kept.numbers.entry(key.to_owned()).or_insert(numbers);
        let messages = messages.to_vec();
        kept.calls.push(Call { key: key.to_owned(), answer: None, violations, messages });
        kept.calls.len() - 1
    }

    /// Waits, and records that the call is being answered. If the worker dies first, the connection
    /// ends and this is never recorded.
    async fn answered(&self, place: usize, answer: Answered) {
        let part = u32::try_from(place * 7 % 10).unwrap_or(0);
        tokio::time::sleep(self.delay * part / 10).await;
        if let Some(call) = self.kept().calls.get_mut(place) {
            call.answer = Some(answer);
        }
    }

    /// Returns the next answer of a turn: one or two calls of the tool, or the end. A text without
    /// a number is refused.
    fn turn(&self, key: &str, messages: &[Message]) -> Result<Answer, ModelError> {
        let typed = messages.iter().rfind(|message| message.is_typed());
        let mut texts =
            typed.iter().flat_map(|message| &message.content).filter_map(ContentBlock::as_text);
        let asked = texts.find_map(|text| text.split(' ').find_map(|word| word.parse().ok()));
        let found = ByteEstimate::TRIGGER.messages(messages);
        if found > self.window {
            let (limit, found) = (Some(self.window), Some(found));
            let kind = ModelErrorKind::Overflow { limit, found, output: None };
            return Err(ModelError::new(kind, "prompt is too long"));
        }
        let refused = || ModelError::new(ModelErrorKind::Refused, "how many parts?");
        let asked: u64 = asked.ok_or_else(refused)?;
        let mut kept = self.kept();
        let attempt = kept.calls.iter().filter(|call| call.key == key).count();
        let number = kept.numbers.get(key).copied().unwrap_or(0);
        let thread = key.split('/').next().unwrap_or_default().to_owned();
        let state = kept.rounds.entry(thread).or_default();
        if state.key != key {
            let round = if state.is_last { 1 } else { state.number + 1 };
            *state = Round { number: round, key: key.to_owned(), is_last: round > asked };
        }
        let Round { number: round, is_last, .. } = *state;
        let said = format!("Round {round} of call {number}, answer {attempt}.");
        let mut content = vec![ContentBlock::text(said)];
        if is_last {
            return Ok(Answer::new(
                Message::new(Role::Assistant, content),
                StopReason::EndTurn,
                None,
            ));
        }
        for index in 0..1 + round % 2 {
            let id = format!("call-{number}-{index}-{attempt}");
            content.push(ToolUse::new(id, "read", json!({"part": round})).into());
        }
        Ok(Answer::new(Message::new(Role::Assistant, content), StopReason::ToolUse, None))
    }
}

async fn model(
    State(service): State<Service>,
    headers: HeaderMap,
    Json(request): Json<Request>,
) -> Json<Result<Answer, ModelError>> {
    let key = key(&headers);
    let place = service.arrived(&key, &request.messages);
    // Only requests of a compaction have another tool, or none.
    if request.tools.iter().any(|tool| tool.name == "read") {
        let turn = service.turn(&key, &request.messages);
        service.answered(place, Answered::Answer(turn.clone())).await;
        return Json(turn);
    }
    let answer = ExtractiveModel.complete(request).await;
    service.answered(place, Answered::Summary).await;
    Json(answer)
}

async fn tool(
    State(service): State<Service>,
    headers: HeaderMap,
    Json(call): Json<ToolUse>,
) -> Json<ToolResult> {
    let key = key(&headers);
    let place = service.arrived(&key, &[]);
    let attempt = service.kept().calls.iter().filter(|call| call.key == key).count();
    let line = |line: u64| format!("docs/part-{line}.md: line {line} of {}.\n", call.id);
    let text: String = (1..=20).map(line).collect();
    let result = ToolResult::text(call.id.clone(), format!("Answer {attempt} for {key}.\n{text}"));
    service.answered(place, Answered::Result(result.clone())).await;
    Json(result)
}

async fn calls(State(service): State<Service>) -> Json<Vec<Call>> {
    Json(service.calls())
}

fn key(headers: &HeaderMap) -> String {
    let value = headers.get(KEY).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
