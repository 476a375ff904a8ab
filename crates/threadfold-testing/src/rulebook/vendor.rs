//! What differs between the APIs.

use serde_json::Value;
use threadfold::message::Timestamp;

use super::{
    bound::{Bound, End, Strictness, VoidReason},
    cache::{CacheRules, CacheUse},
    call::{HttpCall, Reply},
    event::Event,
    held::Held,
    numbers::Numbers,
    options::BookOptions,
    piece::Piece,
    rule::{Found, Rule, Violation},
    script::Said,
};

/// The rules of an API.
pub(super) trait Vendor: std::fmt::Debug + Send {
    /// All rules with their sources.
    fn rules(&self) -> &'static [&'static Rule];

    /// What a path asks for; `None` if the API has no such path.
    fn wants(&self, call: &HttpCall<'_>, body: &Value) -> Option<Wants>;

    /// The model that a request names, in most APIs in its body.
    fn model(&self, call: &HttpCall<'_>, body: &Value) -> String {
        let _ = call;
        word(body, "model").to_owned()
    }

    /// Puts what the server holds of the thread before the messages of the body.
    fn resume(&self, request: &mut Incoming<'_>, held: &mut Held) -> Result<(), Violation> {
        let _ = (request, held);
        Ok(())
    }

    /// The first rule that a request breaks.
    fn violation(&self, request: &Incoming<'_>, bound: &Bound) -> Found;

    /// The prompt.
    fn pieces(&self, request: &Incoming<'_>) -> Vec<Piece>;

    /// How reasoning is checked; by default it is not.
    fn strictness(&self, model: &str, options: &BookOptions) -> Strictness {
        let _ = (model, options);
        Strictness { prefix: false, gaps: false, roles: false }
    }

    /// Whether a model can read the reasoning of another.
    fn reads(&self, model: &str, of: &str) -> bool {
        let _ = (model, of);
        true
    }

    /// The refusal of void reasoning; `None` if it is dropped.
    fn refuses_void(&self, request: &Incoming<'_>, piece: &Piece, reason: VoidReason) -> Found {
        let _ = (request, piece, reason);
        None
    }

    fn cache(&self, model: &str) -> CacheRules;

    /// The tokens of the answer that a request asks for.
    fn answer_limit(&self, body: &Value) -> u64;

    /// The refusal of a prompt, or of a prompt and its answer, over the window.
    fn overflow(&self, size: Size) -> Violation;

    /// The body of an error.
    fn error(&self, violation: &Violation, numbers: &mut Numbers) -> Value;

    /// Headers of an error besides its type.
    fn error_headers(&self, violation: &Violation) -> Vec<(String, String)> {
        let _ = violation;
        Vec::new()
    }

    /// The reply that refuses inside of a stream of status 200; `None` if the API has no stream.
    fn in_stream(&self, request: &Incoming<'_>, why: &Violation, error: &Value) -> Option<Reply>;

    /// The reply to a request for a count.
    fn count(&self, tokens: u64) -> Value;

    /// Writes an answer, and remembers what it signed.
    fn reply(&self, request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply;
}

/// What a request wants of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Answer,
    /// The vendor's compaction instead of an answer.
    Compaction,
    Count,
}

/// A request that was parsed.
#[derive(Clone, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) call: &'a HttpCall<'a>,
    pub(super) model: String,
    pub(super) wants: Wants,
    pub(super) body: Value,
    pub(super) now: Timestamp,
}

/// A prompt that does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) prompt: u64,
    pub(super) answer: u64,
    pub(super) window: u64,
}

/// What an answer is written with.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    pub(super) numbers: &'a mut Numbers,
    pub(super) bound: &'a mut Bound,
    pub(super) held: &'a mut Held,
    pub(super) pieces: &'a [Piece],
    /// The void reasoning of the prompt, which was dropped.
    pub(super) void: &'a [(usize, VoidReason)],
    pub(super) end: End,
    pub(super) used: CacheUse,
    /// The tokens of the answer.
    pub(super) output: u64,
}

impl Incoming<'_> {
    /// Whether a list of the body holds this word, or a header does.
    pub(super) fn has_beta(&self, name: &str) -> bool {
        let header = self.call.header("anthropic-beta").unwrap_or_default();
        let in_header = header.split(',').any(|beta| beta.trim() == name);
        let in_body = texts(self.body.get("betas")).any(|beta| beta == name);
        in_header || in_body
    }

    pub(super) fn streams(&self) -> bool {
        self.body.get("stream").and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The items of an array; none if it is no array.
pub(super) fn items(value: Option<&Value>) -> impl DoubleEndedIterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

/// A text field of an object.
pub(super) fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The events of a stream of server-sent events.
pub(super) fn stream(events: Vec<Event>) -> Reply {
    Reply::of(200, "text/event-stream", super::call::ReplyBody::Events(events))
}

/// Two parts of a text, as a stream sends it.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let (first, second) = text.split_at(middle);
    [first, second]
}

/// The error body of OpenAI.
pub(super) fn openai_error(violation: &Violation) -> Value {
    serde_json::json!({"error": {
        "message": violation.message, "type": "invalid_request_error",
        "param": violation.param, "code": violation.code,
    }})
}
