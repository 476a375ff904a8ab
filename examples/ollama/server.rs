//! A server with the native API of Ollama, as a value: it counts the tokens of each prompt itself,
//! and breaks connections, drops requests and fails now and then.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use serde_json::{Value, json};
use threadfold::{Message, Model, Request, Role, testing::ExtractiveModel};

use super::adapter::{Bytes, Client};

/// The server, and what it has seen.
#[derive(Debug)]
pub(crate) struct Server {
    /// The largest window that it gives a model, whatever `num_ctx` asks for.
    pub(crate) most: u64,
    /// `false` for a version that ignores `truncate` and cuts a long prompt silently.
    pub(crate) knows_truncate: bool,
    /// Whether requests fail now and then.
    pub(crate) has_faults: bool,
    pub(crate) seen: Mutex<Vec<Seen>>,
}

/// A request as the server counted it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) tokens: u64,
    pub(crate) window: u64,
    /// A request for a summary, not one of the conversation.
    pub(crate) is_summary: bool,
    pub(crate) outcome: Outcome,
    pub(crate) body: String,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    /// The beginning of the prompt was left out silently.
    PromptCut,
    Refused,
    /// No answer came.
    Dropped,
    /// The server answered with an error.
    Failed,
    /// The answer broke off.
    AnswerCut,
}

impl Client for Server {
    fn post(&self, body: String) -> BoxFuture<'_, io::Result<(u16, Bytes)>> {
        async move { self.answer(body) }.boxed()
    }
}

impl Server {
    /// Returns a server of today's version without faults.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, knows_truncate: true, has_faults: false, seen: Mutex::default() }
    }

    fn answer(&self, text: String) -> io::Result<(u16, Bytes)> {
        let body: Value = serde_json::from_str(&text)?;
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let window = body["options"]["num_ctx"].as_u64().unwrap_or(4_096).min(self.most);
        let tools = tokens(&body["tools"].to_string());
        let total = tools + messages.iter().map(cost).sum::<u64>();
        let is_summary = messages.last().is_some_and(|it| words(it).contains("<user_rules>"));
        let refuses = self.knows_truncate && body["truncate"] == false;
        let number = self.lock().len();
        let mut outcome = self.fault(number);
        if outcome == Outcome::Answered && total > window {
            outcome = if refuses { Outcome::Refused } else { Outcome::PromptCut };
        }
        self.lock().push(Seen { tokens: total, window, is_summary, outcome, body: text });
        let kept =
            if total > window { newest(&messages, window.saturating_sub(tools)) } else { messages };
        let lines = || {
            let counted = tools + kept.iter().map(cost).sum::<u64>();
            answer(&kept, is_summary, counted, number)
        };
        Ok(match outcome {
            Outcome::Answered | Outcome::PromptCut => (200, pieces(lines().as_bytes(), None)),
            Outcome::Refused => error(400, "the input length exceeds the context length"),
            Outcome::Failed => error(500, "model runner has unexpectedly stopped"),
            Outcome::Dropped => return Err(io::ErrorKind::ConnectionReset.into()),
            Outcome::AnswerCut => {
                let lines = lines();
                let half = lines.as_bytes().get(..lines.len() / 2).unwrap_or_default();
                // Half of the cuts look like an end.
                (
                    200,
                    pieces(half, number.is_multiple_of(2).then_some(io::ErrorKind::UnexpectedEof)),
                )
            }
        })
    }

    /// What happens to a request by chance; no two in a row fail.
    fn fault(&self, number: usize) -> Outcome {
        let chance = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        let failed = |seen: &Seen| !matches!(seen.outcome, Outcome::Answered | Outcome::PromptCut);
        if !self.has_faults || self.lock().last().is_some_and(failed) {
            return Outcome::Answered;
        }
        match chance {
            0 | 1 => Outcome::AnswerCut,
            2 => Outcome::Failed,
            3 => Outcome::Dropped,
            _ => Outcome::Answered,
        }
    }

    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server's own count: four letters of a word, or one other character, are a token.
fn tokens(text: &str) -> u64 {
    let words = text.split(|char: char| !char.is_alphanumeric());
    let words: usize = words.map(|word| word.len().div_ceil(4)).sum();
    let marks =
        text.chars().filter(|char| !char.is_alphanumeric() && !char.is_whitespace()).count();
    (words + marks) as u64
}

/// The tokens of a message, with those that its template adds.
fn cost(message: &Value) -> u64 {
    let beside = ["thinking", "tool_calls", "tool_name"].map(|key| &message[key]);
    let beside = beside.into_iter().filter(|value| !value.is_null());
    6 + tokens(words(message)) + beside.map(|value| tokens(&value.to_string())).sum::<u64>()
}

fn words(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// What is left of a prompt that is too long: the system messages and the newest messages that fit.
fn newest(messages: &[Value], window: u64) -> Vec<Value> {
    let (system, thread): (Vec<&Value>, Vec<&Value>) =
        messages.iter().partition(|message| message["role"] == "system");
    let mut room = window.saturating_sub(system.iter().map(|it| cost(it)).sum());
    let mut kept: Vec<&Value> = Vec::new();
    for message in thread.into_iter().rev() {
        match room.checked_sub(cost(message)) {
            Some(left) => room = left,
            None if kept.is_empty() => room = 0,
            None => break,
        }
        kept.push(message);
    }
    system.into_iter().chain(kept.into_iter().rev()).cloned().collect()
}

/// The lines of an answer: a summary, a call after a question, and words after a result.
fn answer(messages: &[Value], is_summary: bool, counted: u64, number: usize) -> String {
    let last = messages.last().cloned().unwrap_or_default();
    let mut message = json!({"role": "assistant", "content": ""});
    if is_summary {
        message["content"] = summary(messages).into();
    } else if last["role"] == "tool" {
        let found: String = words(&last).chars().take(60).collect();
        message["thinking"] = "Let me look at what it says.".into();
        message["content"] =
            format!("I read it. It begins with {found:?}; that is answer {number}.").into();
    } else {
        let path = words(&last).split_whitespace().find(|word| word.ends_with(".rs"));
        let arguments = json!({"path": path.unwrap_or("src/main.rs")});
        message["tool_calls"] = json!([{"function": {"name": "read", "arguments": arguments}}]);
    }
    let text = words(&message).to_owned();
    let (one, other) = text.split_at(text.char_indices().nth(20).map_or(text.len(), |(at, _)| at));
    let mut first = message.clone();
    first["content"] = one.into();
    let line = |message: Value| json!({"model": "qwen3", "message": message, "done": false});
    let second = line(json!({"role": "assistant", "content": other}));
    let end = json!({"model": "qwen3", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": "stop", "prompt_eval_count": counted, "eval_count": tokens(&text) + 8});
    format!("{}\n{second}\n{end}\n", line(first))
}

/// A summary of the messages, with quotes of the user's rules.
fn summary(messages: &[Value]) -> String {
    let read = messages.iter().map(|message| match message["role"].as_str() {
        Some("assistant") => Message::assistant(words(message)),
        Some("system") => Message::system(words(message)),
        Some("tool") => {
            Message::new(Role::Assistant, vec![threadfold::ContentBlock::text(words(message))])
        }
        _ => Message::user(words(message)),
    });
    let request = Request { max_output: Some(600), ..Request::new(read.collect::<Vec<_>>()) };
    let answer = ExtractiveModel.complete(request).now_or_never();
    answer.and_then(Result::ok).map(|answer| answer.text()).unwrap_or_default()
}

/// The bytes of an answer in pieces, and the failure after them.
fn pieces(bytes: &[u8], failure: Option<io::ErrorKind>) -> Bytes {
    let pieces: Vec<io::Result<Vec<u8>>> =
        bytes.chunks(37).map(|piece| Ok(piece.to_vec())).collect();
    stream::iter(pieces.into_iter().chain(failure.map(|kind| Err(kind.into())))).boxed()
}

fn error(status: u16, words: &str) -> (u16, Bytes) {
    (status, pieces(json!({"error": words}).to_string().as_bytes(), None))
}
