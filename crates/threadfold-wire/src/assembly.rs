//! Building answers from streams: what all dialects share.

use std::fmt;

use serde_json::Value;

use super::{
    classify::classify_error,
    contract::WireError,
    json::{Fields, Scanned},
    stream::{StreamEvent, Taken, TurnBuilder},
};
use threadfold_core::message::{Delta, Json, ModelError, ModelErrorKind, Text, Turn, Usage};

/// The part of a stream builder that depends on the dialect. It assembles the *response body*, and
/// the codec then reads that body like any other, so a streamed answer equals the whole one.
pub(super) trait Assembly: fmt::Debug + Send {
    /// Takes the next event and reports what it adds to the answer.
    fn take(&mut self, event: StreamEvent<'_>, out: &mut Deltas) -> Taken;

    /// Whether the stream has announced its end.
    fn is_complete(&self) -> bool;

    /// The body; `None` while parts of the answer are missing. Called once.
    fn body(&mut self) -> Option<Json>;

    /// The usage that the stream has reported so far.
    fn usage(&self) -> Option<Usage>;
}

/// The deltas of one event. Empty texts are not reported.
#[derive(Debug, Default)]
pub(super) struct Deltas(Vec<Delta>);

impl Deltas {
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
        self.0.push(Delta::ToolUse { id: id.clone(), name });
    }

    fn piece(&mut self, piece: Delta) {
        if let Delta::Text { text } | Delta::Thinking { text } | Delta::ToolInput { text, .. } =
            &piece
            && !text.is_empty()
        {
            self.0.push(piece);
        }
    }
}

/// Reads a whole response body.
pub(super) type Decode = fn(&[u8]) -> Result<Turn, WireError>;

/// The stream builder of a codec. It finishes once: after an error every call returns that error,
/// and a finished answer does not change.
#[derive(Debug)]
pub(super) struct Builder<A> {
    assembly: A,
    decode: Decode,
    end: Option<Result<Turn, ModelError>>,
}

impl<A: Assembly + Default + 'static> Builder<A> {
    pub(super) fn boxed(decode: Decode) -> Box<dyn TurnBuilder> {
        Box::new(Self { assembly: A::default(), decode, end: None })
    }
}

impl<A: Assembly> Builder<A> {
    fn ended(&mut self) -> Result<Turn, ModelError> {
        let body = self.assembly.body().ok_or_else(ModelError::cut_short)?;
        let turn = (self.decode)(body.as_str().as_bytes());
        turn.map_err(|error| unreadable(&error.to_string()).with_source(error))
    }

    /// Adds the usage reported so far to an error.
    fn spent(&self, error: ModelError) -> ModelError {
        error.with_usage(self.assembly.usage().unwrap_or_default())
    }
}

impl<A: Assembly> TurnBuilder for Builder<A> {
    fn handle(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError> {
        if let Some(Err(error)) = &self.end {
            return Err(error.clone());
        }
        // Some gateways send events after the end.
        if self.end.is_some() || self.assembly.is_complete() {
            return Ok(Vec::new());
        }
        let mut out = Deltas::default();
        let taken = if has_half_a_character(data) {
            Err(unreadable("an event holds half a character"))
        } else {
            self.assembly.take(StreamEvent { name, data }, &mut out)
        };
        taken.map(|()| out.0).map_err(|error| {
            let error = self.spent(error);
            self.end = Some(Err(error.clone()));
            error
        })
    }

    fn is_complete(&self) -> bool {
        !matches!(self.end, Some(Err(_))) && self.assembly.is_complete()
    }

    fn finish(&mut self) -> Result<Turn, ModelError> {
        if let Some(end) = &self.end {
            return end.clone();
        }
        let ended = self.ended().map_err(|error| self.spent(error));
        self.end.insert(ended).clone()
    }
}

/// Whether a text contains an unpaired UTF-16 surrogate, as servers send that split text in UTF-16
/// units. It cannot be decoded, so the answer would lose a character.
fn has_half_a_character(data: &str) -> bool {
    let escaped = data.contains("\\ud") || data.contains("\\uD");
    escaped && Fields::parse(data).is_some() && serde_json::from_str::<Value>(data).is_err()
}

/// Reads the data of an event as JSON. `names` are the prefixes of the dialect's own event names;
/// proxies add events of their own, whose data may be anything and is ignored.
pub(super) fn read_event(
    event: StreamEvent<'_>,
    names: &[&str],
    take: impl FnOnce(Fields<'_>, &str) -> Taken,
) -> Taken {
    let data = event.data.trim();
    let scanned = Scanned::new(data.as_bytes());
    if let Ok(fields) = Fields::body(&scanned) {
        return take(fields, data);
    }
    let is_ours = ["", "message"].contains(&event.name)
        || names.iter().any(|prefix| event.name.starts_with(prefix));
    match event.name {
        "error" => Err(provider_error(event.data)),
        _ if is_ours && !["", "[DONE]"].contains(&data) => {
            Err(unreadable("an event is no JSON object"))
        }
        _ => Ok(()),
    }
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
