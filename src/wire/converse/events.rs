//! Building an answer of the events of its stream: the body that the whole answer would have had,
//! which is then read as one.

use std::collections::BTreeMap;

use super::{
    forms,
    parts::{Part, Unreadable},
    response,
};
use crate::{
    message::{Delta, Json, ModelError, ModelErrorKind, Turn, Usage},
    wire::{
        classify::classify_error,
        fields::Fields,
        stream::{StreamEvent, TurnBuilder},
        tree::{Object, Tree},
    },
};

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Builder {
    role: Option<Json>,
    /// The blocks by their index. A map, because an index may be anything.
    parts: BTreeMap<u64, Part>,
    /// What stands beside the message: of the end of the answer, and of what was spent.
    end: Option<Object>,
    metadata: Option<Object>,
    usage: Usage,
}

/// Why an event ends the answer.
enum Broken {
    Unreadable(Unreadable),
    /// The provider says so.
    Said(ModelError),
}

impl From<Unreadable> for Broken {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
}

impl TurnBuilder for Builder {
    fn handle(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        self.take(event).map(Vec::from_iter).map_err(|broken| {
            let error = match broken {
                Broken::Unreadable(Unreadable(what)) => {
                    retryable(format!("the stream holds {what}"))
                }
                Broken::Said(error) => error,
            };
            error.with_usage(self.usage)
        })
    }

    fn is_complete(&self) -> bool {
        self.end.is_some() && self.metadata.is_some()
    }

    fn finish(&mut self) -> Result<Turn, ModelError> {
        let failed = match self.end.take() {
            None => retryable("the stream ended before the answer was complete".to_owned()),
            Some(end) => match response::turn(self.body(end).as_str().as_bytes()) {
                Ok(turn) => return Ok(turn),
                Err(error) => retryable(error.to_string()),
            },
        };
        Err(failed.with_usage(self.usage))
    }
}

impl Builder {
    /// Takes an event in; some have their name in the data.
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Option<Delta>, Broken> {
        if !event.name.is_empty() {
            return self.named(event.name, event.data);
        }
        let Some(fields) = Fields::parse(event.data) else { return Ok(None) };
        let Some((name, raw)) = fields.rest().next() else { return Ok(None) };
        self.named(name, raw.get())
    }

    fn named(&mut self, name: &str, data: &str) -> Result<Option<Delta>, Broken> {
        let fields = || Fields::parse(data).ok_or(Unreadable("an event that is no object"));
        match name {
            "messageStart" => self.role = fields()?.take_json("role").or(self.role.take()),
            "contentBlockStart" => return self.begin(&fields()?),
            "contentBlockDelta" => return self.add(&fields()?),
            "messageStop" => self.end = Some(beside(fields()?)),
            "metadata" => {
                let fields = fields()?;
                let usage = fields.get("usage").and_then(response::read_usage);
                self.usage = usage.unwrap_or(self.usage);
                self.metadata = Some(beside(fields));
            }
            exception if exception.ends_with("Exception") => {
                return Err(Broken::Said(said(exception, data)));
            }
            // A block ends where another begins, so nothing hangs on `contentBlockStop`.
            _ => {}
        }
        Ok(None)
    }

    fn begin(&mut self, event: &Fields<'_>) -> Result<Option<Delta>, Broken> {
        let start = event.get("start").ok_or(Unreadable("a block without its start"))?;
        let (part, begins) = Part::begin(start)?;
        match self.parts.insert(index(event)?, part) {
            None => Ok(begins),
            Some(_) => Err(Unreadable("a block that begins twice").into()),
        }
    }

    fn add(&mut self, event: &Fields<'_>) -> Result<Option<Delta>, Broken> {
        let delta = event.get("delta").and_then(Fields::of);
        let delta = delta.ok_or(Unreadable("a piece that is no object"))?;
        let index = index(event)?;
        if let Some(part) = self.parts.get_mut(&index) {
            return Ok(part.add(&delta)?);
        }
        let Some(mut part) = Part::for_delta(&delta)? else { return Ok(None) };
        let added = part.add(&delta)?;
        self.parts.insert(index, part);
        Ok(added)
    }

    /// The body that the whole answer would have had.
    fn body(&mut self, end: Object) -> Json {
        let parts = std::mem::take(&mut self.parts);
        let content: Vec<Tree> = parts.into_values().map(Part::into_tree).collect();
        let role = self.role.take().map_or(Tree::Word("assistant"), Tree::Raw);
        let message = Object::default().with("role", role).with("content", content);
        let mut body = Object::default().with("output", Object::default().with("message", message));
        body.extend_unset(end);
        body.extend_unset(self.metadata.take().unwrap_or_default());
        Tree::from(body).into_json()
    }
}

fn index(event: &Fields<'_>) -> Result<u64, Unreadable> {
    let index = event.get("contentBlockIndex");
    let index = index.and_then(|raw| serde_json::from_str(raw.get()).ok());
    index.ok_or(Unreadable("a piece that does not say where it belongs"))
}

/// The fields of an event, without the padding that hides how long it is.
fn beside(mut fields: Fields<'_>) -> Object {
    fields.take("p");
    forms::object(&fields)
}

/// What the provider says when it breaks an answer off. The name of the exception is its code.
fn said(name: &str, data: &str) -> ModelError {
    let mut body = Object::default().with("type", name.to_owned());
    match Fields::parse(data) {
        Some(fields) => body.extend_unset(forms::object(&fields)),
        None => body.set("message", data.to_owned()),
    }
    let mut error = classify_error(0, Tree::from(body).into_json().as_str().as_bytes());
    // The provider asks to try again, in its documentation and not in the event.
    if name == "modelStreamErrorException" && error.kind == ModelErrorKind::Other {
        error.kind = ModelErrorKind::Retryable { after: None };
    }
    error
}

fn retryable(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Retryable { after: None }, message)
}
