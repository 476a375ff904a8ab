//! Building answers from streams: what all dialects share.

use std::{collections::HashMap, fmt};

use serde_json::Value;

use super::{
    classify::classify_error,
    contract::WireError,
    fields::Fields,
    raw::{Raw, Scanned},
    stream::{StreamEvent, TurnBuilder},
    tree::{Object, Tree},
    usage::Counts,
};
use threadfold_core::message::{Delta, Json, ModelError, ModelErrorKind, Turn, Usage};

/// A codec's part of a builder: it puts the *response body* together, which the codec then reads as
/// it reads any. So an answer is the same whether it came whole or in pieces.
pub(super) trait Assembly: fmt::Debug + Send {
    /// Takes the next event and returns what it adds to the answer.
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError>;

    /// Whether the stream said that nothing follows.
    fn is_complete(&self) -> bool;

    /// The body; `None` while parts of the answer are missing. Asked for once.
    fn body(&mut self) -> Option<Json>;

    /// What was spent, as far as the stream has said.
    fn usage(&self) -> Option<Usage>;
}

/// Reads a whole response body.
type Decode = fn(&[u8]) -> Result<Turn, WireError>;

/// The builder of a codec. It ends once, however often it is asked: nothing comes after an error, and
/// the answer stays what it was.
#[derive(Debug)]
pub(super) struct Builder<A> {
    assembly: A,
    decode: Decode,
    end: Option<Result<Turn, ModelError>>,
}

impl<A: Assembly> Builder<A> {
    pub(super) fn new(assembly: A, decode: Decode) -> Self {
        Self { assembly, decode, end: None }
    }

    fn ended(&mut self) -> Result<Turn, ModelError> {
        let body = self.assembly.body().ok_or_else(ModelError::cut_short)?;
        let turn = (self.decode)(body.as_str().as_bytes());
        turn.map_err(|error| unreadable(&error.to_string()).with_source(error))
    }

    /// Adds to an error what was spent.
    fn spent(&self, error: ModelError) -> ModelError {
        error.with_usage(self.assembly.usage().unwrap_or_default())
    }
}

impl<A: Assembly> TurnBuilder for Builder<A> {
    fn handle(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        if let Some(Err(error)) = &self.end {
            return Err(error.clone());
        }
        // Some gateways go on after the end.
        if self.end.is_some() || self.assembly.is_complete() {
            return Ok(Vec::new());
        }
        let taken = if has_half_a_character(event.data) {
            Err(unreadable("an event holds half a character"))
        } else {
            self.assembly.take(event)
        };
        taken.map_err(|error| {
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

/// Whether a text is divided within a character, as servers do that count in UTF-16. No text can
/// hold half of one, so the rest of the answer would lack it.
fn has_half_a_character(data: &str) -> bool {
    let escaped = data.contains("\\ud") || data.contains("\\uD");
    escaped && Fields::parse(data).is_some() && serde_json::from_str::<Value>(data).is_err()
}

/// Reads the data of an event. Names of the dialect's own events begin so; servers in between send
/// events of their own, whose data may be anything.
pub(super) fn read(
    event: StreamEvent<'_>,
    names: &[&str],
    take: impl FnOnce(Fields<'_>, &str) -> Result<Vec<Delta>, ModelError>,
) -> Result<Vec<Delta>, ModelError> {
    let data = event.data.trim();
    let scanned = Scanned::new(data.as_bytes());
    if let Ok(fields) = Fields::body(&scanned) {
        return take(fields, data);
    }
    let is_ours = ["", "message"].contains(&event.name)
        || names.iter().any(|prefix| event.name.starts_with(prefix));
    match event.name {
        "error" => Err(said(event.data)),
        _ if is_ours && !["", "[DONE]"].contains(&data) => {
            Err(unreadable("an event is no JSON object"))
        }
        _ => Ok(Vec::new()),
    }
}

/// The error that a provider sent within the stream.
pub(super) fn said(data: &str) -> ModelError {
    classify_error(0, data.as_bytes())
}

/// The error of a stream that does not keep to the dialect.
pub(super) fn unreadable(words: &str) -> ModelError {
    let kind = ModelErrorKind::Retryable { after: None };
    ModelError::new(kind, format!("the answer cannot be read: {words}"))
}

/// The fields of an object that comes in several pieces. A later value replaces an earlier one,
/// but `null` replaces nothing: it says that there is nothing new.
#[derive(Debug, Default)]
pub(super) struct Merged {
    fields: Vec<(String, Json)>,
    places: HashMap<String, usize>,
}

impl Merged {
    /// Takes counts, each of which is that of the whole answer so far.
    pub(super) fn count(&mut self, usage: Option<Raw<'_>>) {
        if let Some(usage) = usage.and_then(Fields::of) {
            self.merge(&usage);
        }
    }

    /// What was spent, as far as the counts say.
    pub(super) fn usage(&self, counts: &Counts) -> Option<Usage> {
        let usage = Tree::from(self.object()?).into_json();
        counts.read(Raw::of(&usage))
    }

    /// Takes the fields of one more piece that were not taken.
    pub(super) fn merge(&mut self, piece: &Fields<'_>) {
        for (key, raw) in piece.rest() {
            // Most pieces repeat most fields.
            let known = self.get(key).is_some_and(|before| before.as_str() == raw.get());
            if !known && (raw.get() != "null" || !self.places.contains_key(key)) {
                self.set(key, raw.json());
            }
        }
    }

    /// Sets a field, in its place if it is there, else at the end.
    pub(super) fn set(&mut self, key: &str, value: Json) {
        let place = self.places.get(key).and_then(|place| self.fields.get_mut(*place));
        match place {
            Some((_, before)) => *before = value,
            None => {
                self.places.insert(key.to_owned(), self.fields.len());
                self.fields.push((key.to_owned(), value));
            }
        }
    }

    /// One field.
    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        let place = self.places.get(key)?;
        self.fields.get(*place).map(|(_, value)| value)
    }

    /// The fields, in the order in which they came first.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.fields.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The object; `None` if nothing came.
    pub(super) fn object(&self) -> Option<Object> {
        let mut object = Object::default();
        self.add_to(&mut object);
        (!self.fields.is_empty()).then_some(object)
    }

    /// Adds the fields to an object that has none of them.
    pub(super) fn add_to(&self, object: &mut Object) {
        self.fields.iter().for_each(|(key, value)| object.push(key.clone(), value.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_says_nothing_new() {
        let mut merged = Merged::default();
        for piece in [r#"{"b":1,"a":null}"#, r#"{"b":null,"a":2,"c":null}"#, r#"{"b":3.0}"#] {
            merged.merge(&Fields::parse(piece).unwrap());
        }
        let object = Tree::from(merged.object().unwrap()).into_json();
        assert_eq!(object.as_str(), r#"{"b":3.0,"a":2,"c":null}"#);
        assert!(Merged::default().object().is_none());
    }
}
