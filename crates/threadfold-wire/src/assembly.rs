//! Building answers from streams: the part that all dialects share.
//!
//! An answer builder assembles the body of the whole answer from the events of a stream and passes it
//! to the reader of whole answers, so that streamed and whole answers are equal by construction. A
//! stream whose events are out of order is refused: half an answer is never taken for a whole one.

use std::fmt;

use serde_json::Value;

use super::{
    classify::{classify_error, error_within},
    contract::WireError,
    json::*,
    stream::*,
};
use threadfold_core::message::{Answer, Delta, Json, ModelError, ModelErrorKind, Text, Usage};

/// The part of a stream builder that depends on the dialect. It assembles the *response body*, and
/// the codec then reads that body like any other, so a streamed answer equals the whole one.
pub(super) trait Assembly: fmt::Debug + Send {
    /// Takes the name and the data of the next event and reports what it adds to the answer.
    fn take(&mut self, name: &str, data: &str, out: &mut Output) -> Taken;

    /// The body; `None` while parts of the answer are missing. Called once. `is_complete` is true
    /// if an event announced the end.
    fn body(&mut self, is_complete: bool) -> Option<Json>;
}

/// The additions of one event to the answer.
#[derive(Debug, Default)]
pub(super) struct Output {
    deltas: Vec<Delta>,
    /// The usage so far; `None` if the event does not change it.
    pub(super) usage: Option<Usage>,
    /// Whether the stream announced its end.
    pub(super) is_complete: bool,
}

impl Output {
    pub(super) fn text(&mut self, text: Text) {
        self.piece(Delta::Text { text });
    }

    pub(super) fn thinking(&mut self, text: Text) {
        self.piece(Delta::Thinking { text });
    }

    pub(super) fn input(&mut self, id: &Text, text: Text) {
        self.piece(Delta::ToolInput { id: id.clone(), text });
    }

    pub(super) fn call(&mut self, id: &Text, name: Text) {
        self.deltas.push(Delta::ToolUse { id: id.clone(), name });
    }

    fn piece(&mut self, piece: Delta) {
        if let Delta::Text { text } | Delta::Thinking { text } | Delta::ToolInput { text, .. } =
            &piece
            && !text.is_empty()
        {
            self.deltas.push(piece);
        }
    }
}

/// Reads the fields of a whole response body.
pub(super) type Decode = fn(Fields<'_>) -> Result<Answer, WireError>;

/// Reads a whole response body with this function. A body that holds an error is refused.
pub(super) fn read_answer(body: &[u8], decode: Decode) -> Result<Answer, WireError> {
    let (body, _) = without_halves(body);
    read_whole(&body, |raw| {
        let fields = Fields::read(raw, Path::Body)?;
        let error = fields.value("error").map(|error| {
            let path = Path::Field(&Path::Body, "error");
            path.mismatch("an answer without an error", error)
        });
        error.map_or_else(|| decode(fields), Err)
    })
}

/// The stream builder of a codec. It finishes once: after an error every call returns that error,
/// and a finished answer does not change.
#[derive(Debug)]
pub(super) struct Builder<A> {
    assembly: A,
    decode: Decode,
    usage: Usage,
    is_complete: bool,
    end: Option<Result<Answer, ModelError>>,
}

impl<A: Assembly + Default + 'static> Builder<A> {
    pub(super) fn boxed(decode: Decode) -> Box<dyn AnswerBuilder> {
        let (assembly, usage) = (A::default(), Usage::default());
        Box::new(Self { assembly, decode, usage, is_complete: false, end: None })
    }
}

impl<A: Assembly> Builder<A> {
    fn ended(&mut self) -> Result<Answer, ModelError> {
        let body = self.assembly.body(self.is_complete).ok_or_else(ModelError::cut_short)?;
        let answer = read_answer(body.as_str().as_bytes(), self.decode);
        answer.map_err(|error| unreadable(&error.to_string()).with_source(error))
    }
}

impl<A: Assembly> AnswerBuilder for Builder<A> {
    fn handle(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError> {
        if let Some(Err(error)) = &self.end {
            return Err(error.clone());
        }
        // Ignore events after the end, which some gateways send.
        if self.end.is_some() || self.is_complete {
            return Ok(Vec::new());
        }
        let mut out = Output::default();
        let taken = if has_half_a_character(data) {
            Err(unreadable("an event holds half a character"))
        } else {
            self.assembly.take(name, data, &mut out)
        };
        self.usage = out.usage.unwrap_or(self.usage);
        self.is_complete = out.is_complete;
        taken.map(|()| out.deltas).map_err(|error| {
            let error = error.with_usage(self.usage);
            self.end = Some(Err(error.clone()));
            error
        })
    }

    fn is_complete(&self) -> bool {
        !matches!(self.end, Some(Err(_))) && self.is_complete
    }

    fn finish(&mut self) -> Result<Answer, ModelError> {
        if let Some(end) = &self.end {
            return end.clone();
        }
        let ended = self.ended().map_err(|error| error.with_usage(self.usage));
        self.end.insert(ended).clone()
    }
}

/// Whether a text contains an unpaired UTF-16 surrogate. Servers that split text by UTF-16 units
/// send such halves; they cannot be decoded, so the answer would lose a character.
fn has_half_a_character(data: &str) -> bool {
    let escaped = data.contains("\\ud") || data.contains("\\uD");
    escaped && Fields::parse(data).is_some() && serde_json::from_str::<Value>(data).is_err()
}

/// Reads the data of an event as JSON. `names` are the prefixes of the dialect's own event names;
/// other events, which proxies add, may hold anything and are ignored.
pub(super) fn read_event(
    (name, data): (&str, &str),
    names: &[&str],
    take: impl FnOnce(Fields<'_>, &str) -> Taken,
) -> Taken {
    let trimmed = data.trim();
    let read = |raw: Raw<'_>| {
        let fields = Fields::read(raw, Path::Body)?;
        let error = untyped_error(&fields, trimmed);
        Ok(error.map_or_else(|| take(fields, trimmed), Err))
    };
    if let Ok(taken) = read_whole(trimmed.as_bytes(), read) {
        return taken;
    }
    let is_ours =
        ["", "message"].contains(&name) || names.iter().any(|prefix| name.starts_with(prefix));
    match name {
        "error" => Err(provider_error(data)),
        _ if is_ours && !["", "[DONE]"].contains(&trimmed) => {
            Err(unreadable("an event is no JSON object"))
        }
        _ => Ok(()),
    }
}

/// The error of an event without a type, or of the type `error`, which gateways send within the
/// streams of any dialect.
fn untyped_error(fields: &Fields<'_>, data: &str) -> Option<ModelError> {
    let is_error = fields.text("type").is_none_or(|kind| kind == "error")
        && ["error", "errors"].iter().any(|key| fields.value(key).is_some());
    is_error.then(|| error_within(data.as_bytes())).flatten()
}

/// The input of a call whose text is complete; `None` if there is none. An input that was cut off
/// is not JSON, so it is kept as text.
pub(super) fn input(text: &str) -> Option<Tree> {
    if text.trim().is_empty() {
        return None;
    }
    Some(Json::parse(text).map_or_else(|_| text.to_owned().into(), Tree::Raw))
}

/// Returns the error that a provider sent within the stream.
pub(super) fn provider_error(data: &str) -> ModelError {
    classify_error(0, data.as_bytes())
}

/// The error of a stream that violates the dialect.
pub(super) fn unreadable(words: &str) -> ModelError {
    let kind = ModelErrorKind::Retryable { after: None };
    ModelError::new(kind, format!("the answer cannot be read: {words}"))
}
