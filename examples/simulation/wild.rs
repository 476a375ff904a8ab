//! The models: one of the agent and one for summaries, with everything that models, servers and
//! networks do wrong.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use serde_json::json;
use threadfold::{
    Answer, ContentBlock, Message, Model, Request, Role, TokenCounter, Usage, async_trait,
    legality,
    message::{
        Delta, ModelErrorKind, ServerToolResult, ServerToolUse, StopReason, Thinking, ToolInput,
        ToolResult, ToolUse,
    },
    model::{self, ModelError},
    testing::ExtractiveModel,
    tokens::ByteEstimate,
    wire::classify_error,
};
use threadfold_testing::shared::simulation::Numbers;

use super::{
    checks::Checks,
    fault::{Fault, Kind},
    kept::Kept,
    world::{Reports, World},
};

/// An answer without its usage.
type Said = Result<(Message, StopReason), ModelError>;

/// Tokens added to the smallest form of a request, for marks and the remains of trimmed results.
const MARGIN: u64 = 150;

/// The maximum number of answers in a turn.
pub(super) const MAX_ROUNDS: u32 = 12;

/// The maximum number of times that one request may be sent to a provider that refuses it.
pub(super) const MAX_SENDS: u64 = 3;

/// The model. It checks every request before it answers.
#[derive(Debug)]
pub(super) struct Wild {
    numbers: Arc<Numbers>,
    store: Arc<Kept>,
    world: World,
    state: Mutex<State>,
}

/// The observations of the model.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Requests of the conversation.
    pub(super) requests: u64,
    /// Requests for summaries.
    pub(super) summaries: u64,
    /// Requests that were refused because they exceed the window.
    pub(super) overflows: u64,
    /// The fault of a request.
    pub(super) fault: Option<Fault>,
}

/// So many answered requests after a refusal that states no limit, a longer one may be tried again.
const BELIEVED: u32 = 8;

#[derive(Debug, Default)]
struct State {
    checks: Checks,
    seen: Seen,
    calls: u64,
    /// The number of consecutive refusals for length in this turn.
    refused: u64,
    /// Whether one of these refusals was false.
    lied: bool,
    /// The smallest window that a refusal stated.
    stated: Option<u64>,
    /// The shortest request of the conversation that was truly too long and refused.
    too_long: Option<u64>,
    /// The requests that were answered since then. After some, a longer one may be tried again,
    /// because a refusal that states no limit may have been an error.
    answered: u32,
    /// Such a request whose refusal the session may have missed, because its stream was dropped.
    unheard: Option<u64>,
    /// Whether the model reported a wrong number of tokens.
    miscounted: bool,
    /// Tokens of system prompt and tools.
    overhead: u64,
    /// Tokens of the last answer of this turn.
    answer: u64,
    /// The tokens of all requests so far, for servers that report sums.
    spent: u64,
}

impl Wild {
    pub(super) fn new(numbers: Arc<Numbers>, store: Arc<Kept>, world: World) -> Self {
        Self { numbers, store, world, state: Mutex::default() }
    }

    /// Begins a turn.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        (state.refused, state.lied, state.answer) = (0, false, 0);
        state.unheard = None;
    }

    /// Begins another session, which has not seen the earlier refusals.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        (state.stated, state.too_long, state.miscounted) = (None, None, false);
    }

    /// Whether a session must be able to send a request whose newest text has this many tokens:
    /// system prompt, tools, open calls and some room fit the window, as far as the provider stated
    /// the truth.
    pub(super) fn must_fit(&self, newest: u64) -> bool {
        let state = self.state();
        let floor = state.overhead + newest + state.answer + MARGIN;
        let counted = if state.miscounted { floor * 2 } else { floor };
        // Before the first request the overhead is unknown.
        state.overhead > 0
            && !state.lied
            && counted <= state.stated.unwrap_or(u64::MAX).min(self.world.window)
    }

    /// Returns the observations since the last call.
    pub(super) fn take_seen(&self) -> Seen {
        mem::take(&mut self.state().seen)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request) -> Result<Answer, ModelError> {
        let for_summary = request.max_output.is_some();
        self.look(request, for_summary);
        let said = match (self.refusal(request), for_summary, self.world.is_calm()) {
            (Some(error), _, _) => Err(error),
            (None, true, true) => return extract(request),
            (None, true, false) => self.summary(),
            (None, false, true) => self.work(),
            (None, false, false) => self.said(request),
        };
        if !for_summary {
            self.count(&said);
        }
        let (message, stop_reason) = said?;
        let usage = self.usage(request, &message);
        Ok(Answer::new(message, stop_reason, usage))
    }

    fn look(&self, request: &Request, for_summary: bool) {
        let mut state = self.state();
        // A new request shows that the session received the refusal.
        let heard = state.unheard.take();
        if heard.is_some() {
            state.answered = 0;
        } else if state.answered >= BELIEVED {
            state.too_long = None;
        }
        state.too_long = [state.too_long, heard].into_iter().flatten().min();
        // Without a known window, the first refusal shows the limit. After wrong counts the session
        // knows it less exactly.
        let known = if state.miscounted { 2 } else { 1 };
        // A refusal may be doubted, and the same request sent again.
        let learnt = state.too_long.map_or(u64::MAX, |refused| refused * known);
        let fault = match (for_summary, self.world.named) {
            (true, true) => state.checks.summary(request, self.world.window),
            (true, false) => state.checks.summary(request, u64::MAX),
            (false, true) => state.checks.conversation(request, self.world.window),
            // A request that cannot be made shorter may be sent, because the window is unknown.
            (false, false) if least(request) * known + MARGIN > learnt => {
                state.checks.conversation(request, u64::MAX)
            }
            (false, false) => state.checks.conversation(request, learnt),
        };
        let differs = || {
            let differs = self.store.differs(&request.messages).filter(|_| !for_summary);
            differs.map(|what| Fault::new(Kind::Log, what))
        };
        state.seen.fault = state.seen.fault.take().or(fault).or_else(differs);
        state.seen.requests += u64::from(!for_summary);
        state.seen.summaries += u64::from(for_summary);
        if !for_summary {
            let around = Request { messages: Arc::default(), ..request.clone() };
            state.overhead = ByteEstimate::TRIGGER.request(&around);
        }
    }

    /// Returns the refusal of a request that exceeds the window.
    fn refusal(&self, request: &Request) -> Option<ModelError> {
        let size = ByteEstimate::TRIGGER.request(request);
        if size.saturating_add(request.max_output.unwrap_or(0)) <= self.world.window {
            return None;
        }
        let mut state = self.state();
        state.seen.overflows += 1;
        if request.max_output.is_none() {
            state.unheard = Some(size);
        }
        Some(too_long(None))
    }

    /// Checks that a refused request is compacted, and not repeated without end.
    fn count(&self, said: &Said) {
        let mut state = self.state();
        match said {
            Err(error) if error.is_overflow() => state.refused += 1,
            Err(_) => state.refused = 0,
            Ok((message, stop_reason)) => {
                state.answer = ByteEstimate::TRIGGER.message(message);
                state.answered += 1;
                // An answer that the window cut off counts as a refusal.
                let is_cut = *stop_reason == StopReason::ContextWindowExceeded;
                state.refused = if is_cut { state.refused + 1 } else { 0 };
            }
        }
        if state.refused == MAX_SENDS {
            // The request was given up. The next one may be sent whole again, because refusals may
            // have been about something else.
            (state.too_long, state.unheard) = (None, None);
        }
        if state.refused > MAX_SENDS {
            let fault = format!("a request that was refused {} times", state.refused);
            state.seen.fault = state.seen.fault.take().or(Some(fault.into()));
        }
    }

    /// Returns the answer of an agent that works properly.
    fn work(&self) -> Said {
        let numbers = &self.numbers;
        if numbers.once_in(4) {
            return Ok((Message::assistant(numbers.words(60)), StopReason::EndTurn));
        }
        let call = |_| {
            let id = format!("c{}", self.next_call());
            let size = numbers.below(self.world.bytes(6));
            ToolUse::new(id, "write", json!({ "size": size })).into()
        };
        let calls = (0..=numbers.below(2)).map(call).collect();
        Ok((Message::new(Role::Assistant, calls), StopReason::ToolUse))
    }

    fn summary(&self) -> Said {
        let text = |text: String, stop_reason| Ok((Message::assistant(text), stop_reason));
        match self.numbers.below(12) {
            0 => Err(ModelError::new(ModelErrorKind::Other, "wild")),
            1 => text(" ".into(), StopReason::EndTurn),
            // The longest answer that a provider allows.
            2 => text(self.numbers.words(500), StopReason::EndTurn),
            3 => text("half a".into(), StopReason::MaxTokens),
            4 => text("I would rather not.".into(), StopReason::Refusal),
            5 => Ok((Message::new(Role::Assistant, vec![self.call("s")]), StopReason::ToolUse)),
            _ => text("They worked on it.".into(), StopReason::EndTurn),
        }
    }

    fn said(&self, request: &Request) -> Said {
        let numbers = &self.numbers;
        let speak = |most: u64| ContentBlock::text(numbers.words(most));
        let (content, stop_reason) = match numbers.below(100) {
            0..4 => return Err(self.failure()),
            4 => (Vec::new(), StopReason::EndTurn),
            5 => (vec![ContentBlock::text(" \n")], StopReason::EndTurn),
            6 => (vec![ContentBlock::text("No.")], StopReason::Refusal),
            7 => (vec![speak(9), self.call("r")], StopReason::Refusal),
            8..10 => (vec![speak(9), self.call("m")], StopReason::MaxTokens),
            10 => (vec![speak(9)], StopReason::PauseTurn),
            11 => (Vec::new(), StopReason::PauseTurn),
            12 => (self.searched(), StopReason::PauseTurn),
            13 => (vec![self.call("p"), speak(9)], StopReason::PauseTurn),
            14 => (self.out_of_place(), StopReason::EndTurn),
            15 => (vec![ContentBlock::text(""), self.call("e")], StopReason::EndTurn),
            16 => (self.compact(request), StopReason::ToolUse),
            17 => {
                self.state().lied = true;
                (vec![speak(9)], StopReason::ContextWindowExceeded)
            }
            18..38 => (vec![speak(200)], StopReason::EndTurn),
            _ => (self.calls(), StopReason::ToolUse),
        };
        let role = if numbers.once_in(200) { Role::User } else { Role::Assistant };
        Ok((Message::new(role, content), stop_reason))
    }

    fn failure(&self) -> ModelError {
        let window = self.world.window;
        match self.numbers.below(8) {
            0 => {
                let after = Some(Duration::from_secs(9));
                ModelError::new(ModelErrorKind::Retryable { after }, "wild")
            }
            // Without a known window, the session believes every statement about it, so this world
            // makes no false ones.
            1..6 if !self.world.named => ModelError::new(ModelErrorKind::Other, "wild"),
            1..4 => self.lie(None),
            4 => self.lie(Some(window - self.numbers.below(window / 4))),
            5 => self.lie(Some(0)),
            _ => ModelError::new(ModelErrorKind::Other, "wild"),
        }
    }

    /// Returns a false refusal for length.
    fn lie(&self, limit: Option<u64>) -> ModelError {
        let mut state = self.state();
        state.lied = true;
        let least = [state.stated, limit.filter(|limit| *limit > 0)].into_iter().flatten().min();
        state.stated = least;
        too_long(limit)
    }

    /// Returns some calls at once, usually after text, sometimes after reasoning.
    fn calls(&self) -> Vec<ContentBlock> {
        let thought = self.numbers.once_in(6).then(|| Thinking::new("Hm.", Some("c2ln".into())));
        let words = ContentBlock::text(self.numbers.words(20));
        let calls = (0..=self.numbers.below(4)).map(|place| self.call(&place.to_string()));
        let before = thought.map(ContentBlock::Thinking).into_iter().chain([words]);
        before.chain(calls).collect()
    }

    fn call(&self, place: &str) -> ContentBlock {
        let number = self.next_call();
        let id = match self.numbers.below(40) {
            // The same id as in an earlier turn, or in this one.
            0..4 => "again".to_owned(),
            4 => format!("odd.{number} §"),
            5 => "x".repeat(70),
            _ => format!("c{number}_{place}"),
        };
        let name = match self.numbers.below(40) {
            0..3 => "missing",
            3 => "compact_context",
            _ => "write",
        };
        let size = match self.numbers.once_in(80) {
            // Up to ten windows.
            true => self.numbers.below(self.world.bytes(1_000)),
            false => self.numbers.steep(self.world.bytes(100)),
        };
        let input = match self.numbers.below(30) {
            0 => ToolInput::from_text("{\"size\": 4, "),
            1 => ToolInput::from(json!([size])),
            2 => ToolInput::from_text(" "),
            3 => ToolInput::from_text(json!({ "size": size }).to_string()),
            _ => ToolInput::from(json!({ "size": size })),
        };
        ToolUse::new(id, name, input).into()
    }

    /// Returns a call of the tool `compact`, with ranges that may be inverted, overlapping or
    /// missing. A session without the tool answers with an error.
    fn compact(&self, request: &Request) -> Vec<ContentBlock> {
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        let mut ids: Vec<String> = blocks
            .filter_map(|block| match block {
                ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id.to_string()),
                _ => None,
            })
            .collect();
        ids.push("zzzzzz".into());
        let id = || ids.get(self.numbers.below(ids.len() as u64) as usize);
        let range = || {
            let summary = if self.numbers.once_in(4) { "" } else { "We wrote some lines." };
            match self.numbers.below(4) {
                0 => json!({ "from": id(), "summary": summary }),
                1 => json!({ "to": id(), "summary": summary }),
                _ => json!({ "from": id(), "to": id(), "summary": summary }),
            }
        };
        let ranges: Vec<_> = (0..=self.numbers.below(2)).map(|_| range()).collect();
        let id = format!("k{}", self.next_call());
        let call = ToolUse::new(id, "compact", json!({ "replacements": ranges }));
        let mut content = vec![ContentBlock::from(call)];
        content.extend(self.numbers.once_in(3).then(|| self.call("k")));
        content
    }

    /// Returns a search that the provider runs itself, sometimes with the result of another one.
    fn searched(&self) -> Vec<ContentBlock> {
        let id = format!("srv{}", self.next_call());
        let other = if self.numbers.once_in(4) { "srv" } else { &id };
        let call = ServerToolUse::new(id.as_str(), "web_search", json!({"query": "lines"}));
        let result = ServerToolResult::new(other, "web_search_tool_result", json!([]));
        vec![ContentBlock::ServerToolUse(call), ContentBlock::ServerToolResult(result)]
    }

    /// Returns blocks that a model cannot send.
    fn out_of_place(&self) -> Vec<ContentBlock> {
        let result = ToolResult::text("again", "I answer myself.");
        match self.numbers.below(2) {
            0 => vec![result.into()],
            _ => vec![ContentBlock::text("So."), result.into()],
        }
    }

    fn next_call(&self) -> u64 {
        let mut state = self.state();
        state.calls += 1;
        state.calls
    }

    /// Returns the usage that the provider reports: the truth, nothing, or nonsense.
    fn usage(&self, request: &Request, message: &Message) -> Option<Usage> {
        let input = ByteEstimate::TRIGGER.request(request);
        let output = ByteEstimate::TRIGGER.message(message);
        let spent = {
            let mut state = self.state();
            state.spent = state.spent.saturating_add(input);
            state.spent
        };
        if !self.world.is_calm() && self.numbers.once_in(20) {
            self.state().miscounted = true;
            return match self.numbers.below(5) {
                0 => None,
                1 => Some(Usage::default()),
                2 => Some(Usage::new(u64::MAX, u64::MAX)),
                3 => Some(Usage::new(spent, output)),
                _ => Some(Usage::new(1, 1)),
            };
        }
        match self.world.reports {
            Reports::Truth => Some(Usage::new(input, output)),
            Reports::Zero => Some(Usage::default()),
            Reports::Double => {
                self.state().miscounted = true;
                Some(Usage::new(input * 2, output * 2))
            }
            Reports::Nothing => None,
        }
    }
}

#[async_trait]
impl Model for Wild {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = stream::once(async move {
            self.numbers.nap().await;
            stream::iter(self.pieces(self.answer(&request)))
        });
        let nap = move |piece| async move {
            self.numbers.nap().await;
            piece
        };
        answer.flatten().then(nap).boxed()
    }
}

impl Wild {
    /// Returns the deltas of an answer, sometimes without the end.
    fn pieces(&self, answer: Result<Answer, ModelError>) -> Vec<Result<Delta, ModelError>> {
        let turn = match answer {
            Ok(turn) => turn,
            Err(error) => return vec![Err(error)],
        };
        let texts = turn.message.content.iter().filter_map(ContentBlock::as_text).cloned();
        let mut pieces: Vec<_> = texts.map(|text| Ok(Delta::Text { text })).collect();
        if self.world.is_calm() {
            pieces.push(Ok(Delta::Answer { answer: turn }));
            return pieces;
        }
        match self.numbers.below(60) {
            0 => {}
            1 => pieces.push(Err(ModelError::new(ModelErrorKind::Other, "reset by peer"))),
            _ => pieces.push(Ok(Delta::Answer { answer: turn })),
        }
        pieces
    }
}

/// Returns the summary of a model that works properly.
fn extract(request: &Request) -> Result<Answer, ModelError> {
    let none = || Err(ModelError::new(ModelErrorKind::Other, "it waits for nobody"));
    ExtractiveModel.complete(request.clone()).now_or_never().unwrap_or_else(none)
}

/// Returns the error for a request that is too long, with the window if the provider states it.
fn too_long(limit: Option<u64>) -> ModelError {
    let words = match limit {
        Some(limit) => format!("prompt is too long: {} tokens > {limit} maximum", u64::MAX),
        None => "prompt is too long".to_owned(),
    };
    classify_error(400, json!({ "error": { "message": words } }).to_string().as_bytes())
}

/// Returns the tokens of a request without everything removable: the overhead, the newest typed text,
/// and whatever else was typed since the last answer.
fn least(request: &Request) -> u64 {
    let typed = request.messages.iter().rposition(Message::is_typed).unwrap_or_default();
    let from = typed.min(legality::unread_from(&request.messages));
    let messages = request.messages.iter().skip(from).filter(|message| message.is_typed());
    let messages: Vec<Message> = messages.cloned().collect();
    ByteEstimate::TRIGGER.request(&Request { messages: messages.into(), ..request.clone() })
}
