//! The model: an agent at work and whoever sums up for it, with everything that models, servers and
//! networks do wrong.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde_json::json;
use threadfold::{
    ContentBlock, Message, Model, Request, Role, TokenCounter, Turn, Usage, async_trait,
    message::{
        Delta, ModelErrorKind, ServerToolResult, ServerToolUse, StopReason, Thinking, ToolInput,
        ToolResult, ToolUse,
    },
    model::{self, ModelError},
    tokens::ByteEstimate,
};

use super::{checks::Checks, kept::Kept, numbers::Numbers};

/// What an answer is, before somebody counted its tokens.
type Said = Result<(Message, StopReason), ModelErrorKind>;

/// So often one request may be sent to a provider that refuses it.
pub(super) const MAX_SENDS: u64 = 3;

/// The model. It looks at every request before it answers.
#[derive(Debug)]
pub(super) struct Wild {
    numbers: Arc<Numbers>,
    store: Arc<Kept>,
    window: u64,
    state: Mutex<State>,
}

/// What the model has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Requests of the conversation.
    pub(super) requests: u64,
    /// Requests for summaries.
    pub(super) summaries: u64,
    /// The estimated tokens of the fullest request.
    pub(super) fullest: u64,
    /// What was wrong with a request.
    pub(super) fault: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    checks: Checks,
    seen: Seen,
    calls: u64,
    /// Answers in a row that said that the request was too long, in this turn.
    refused: u64,
    /// Tokens of all requests so far, for servers that count so.
    spent: u64,
}

impl Wild {
    pub(super) fn new(numbers: Arc<Numbers>, store: Arc<Kept>, window: u64) -> Self {
        Self { numbers, store, window, state: Mutex::default() }
    }

    /// A turn begins.
    pub(super) fn begin(&self) {
        self.state().refused = 0;
    }

    /// What was seen since this was asked last.
    pub(super) fn take_seen(&self) -> Seen {
        mem::take(&mut self.state().seen)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request) -> Result<Turn, ModelError> {
        let for_summary = request.max_output.is_some();
        self.look(request, for_summary);
        let said = if for_summary { self.summary() } else { self.said(request) };
        if !for_summary {
            self.count(matches!(said, Err(ModelErrorKind::Overflow { .. })));
        }
        let (message, stop_reason) = said.map_err(|kind| ModelError::new(kind, "wild"))?;
        let usage = self.usage(request, &message);
        Ok(Turn::new(message, stop_reason, usage))
    }

    fn look(&self, request: &Request, for_summary: bool) {
        let mut state = self.state();
        let fault = match for_summary {
            true => state.checks.summary(request, self.window),
            false => state
                .checks
                .conversation(request, self.window)
                .or_else(|| self.store.differs(&request.messages)),
        };
        state.seen.fault = state.seen.fault.take().or(fault);
        state.seen.requests += u64::from(!for_summary);
        state.seen.summaries += u64::from(for_summary);
        state.seen.fullest = state.seen.fullest.max(ByteEstimate::TRIGGER.request(request));
    }

    /// A request that was refused is compacted and sent again, and not for ever.
    fn count(&self, refused: bool) {
        let mut state = self.state();
        state.refused = if refused { state.refused + 1 } else { 0 };
        if state.refused > MAX_SENDS {
            let fault = format!("a request that was refused {} times", state.refused);
            state.seen.fault = state.seen.fault.take().or(Some(fault));
        }
    }

    fn summary(&self) -> Said {
        let text = |text: String, stop_reason| Ok((Message::assistant(text), stop_reason));
        match self.numbers.below(12) {
            0 => Err(ModelErrorKind::Other),
            1 => text(" ".into(), StopReason::EndTurn),
            // As long as a provider lets it be.
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
            17 => (vec![speak(9)], StopReason::ContextWindowExceeded),
            18..38 => (vec![speak(200)], StopReason::EndTurn),
            _ => (self.calls(), StopReason::ToolUse),
        };
        let role = if numbers.once_in(200) { Role::User } else { Role::Assistant };
        Ok((Message::new(role, content), stop_reason))
    }

    fn failure(&self) -> ModelErrorKind {
        match self.numbers.below(8) {
            0 => ModelErrorKind::Retryable { after: Some(Duration::from_secs(9)) },
            1..4 => ModelErrorKind::Overflow { limit: None, found: None, output: None },
            4 => {
                let limit = self.window - self.numbers.below(self.window / 4);
                ModelErrorKind::Overflow { limit: Some(limit), found: Some(u64::MAX), output: None }
            }
            5 => ModelErrorKind::Overflow { limit: Some(0), found: Some(0), output: None },
            _ => ModelErrorKind::Other,
        }
    }

    /// Some calls at once, mostly behind words, now and then behind a thought.
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
            // The same as in a turn before, or in this one.
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
        let size = self.numbers.steep(30_000);
        let input = match self.numbers.below(30) {
            0 => ToolInput::from_text("{\"size\": 4, "),
            1 => ToolInput::from(json!([size])),
            2 => ToolInput::from_text(" "),
            3 => ToolInput::from_text(json!({ "size": size }).to_string()),
            _ => ToolInput::from(json!({ "size": size })),
        };
        ToolUse::new(id, name, input).into()
    }

    /// A call of the checkpoint tool, with ranges that may be upside down, overlap, or be none. A
    /// session without that tool answers that there is none.
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

    /// A search that the provider carries out itself, now and then with a result of another one.
    fn searched(&self) -> Vec<ContentBlock> {
        let id = format!("srv{}", self.next_call());
        let other = if self.numbers.once_in(4) { "srv" } else { &id };
        let call = ServerToolUse::new(id.as_str(), "web_search", json!({"query": "lines"}));
        let result = ServerToolResult::new(other, "web_search_tool_result", json!([]));
        vec![ContentBlock::ServerToolUse(call), ContentBlock::ServerToolResult(result)]
    }

    /// Blocks that a model cannot send.
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

    /// What a provider says that it cost: the truth, nothing, or nonsense.
    fn usage(&self, request: &Request, message: &Message) -> Option<Usage> {
        let input = ByteEstimate::TRIGGER.request(request);
        let output = ByteEstimate::TRIGGER.message(message);
        let spent = {
            let mut state = self.state();
            state.spent = state.spent.saturating_add(input);
            state.spent
        };
        match self.numbers.below(40) {
            0..10 => None,
            10 => Some(Usage::default()),
            11 => Some(Usage::new(u64::MAX, u64::MAX)),
            12 => Some(Usage::new(spent, output)),
            13 => Some(Usage::new(1, 1)),
            _ => Some(Usage::new(input, output)),
        }
    }
}

#[async_trait]
impl Model for Wild {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        model::turn_of(self.stream(request)).await
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
    /// The answer as a stream gives it, which breaks off now and then.
    fn pieces(&self, answer: Result<Turn, ModelError>) -> Vec<Result<Delta, ModelError>> {
        let turn = match answer {
            Ok(turn) => turn,
            Err(error) => return vec![Err(error)],
        };
        let texts = turn.message.content.iter().filter_map(ContentBlock::as_text).cloned();
        let mut pieces: Vec<_> = texts.map(|text| Ok(Delta::Text { text })).collect();
        match self.numbers.below(60) {
            0 => {}
            1 => pieces.push(Err(ModelError::new(ModelErrorKind::Other, "reset by peer"))),
            _ => pieces.push(Ok(Delta::Turn { turn })),
        }
        pieces
    }
}
