//! Building an answer of the events of its stream: the body that the whole answer would have had,
//! which is then read as one.

use std::collections::BTreeMap;

use super::{
    parts::{Part, Unreadable},
    response,
};
use crate::{
    assembly::Assembly,
    classify::classify_error,
    json::{Fields, Object, Tree},
    stream::StreamEvent,
};
use threadfold_core::message::{Delta, Json, ModelError, ModelErrorKind, Usage};

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    role: Option<Json>,
    /// The blocks by their index. A map, because a hostile index may be huge.
    parts: BTreeMap<u64, Part>,
    /// The fields of the end event.
    end: Option<Object>,
    metadata: Option<Object>,
    usage: Usage,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        let delta = if event.name.is_empty() {
            // SDKs put the name of the event into its data.
            let fields = Fields::parse(event.data);
            let named = fields.as_ref().and_then(|fields| fields.rest().next());
            named.map_or(Ok(None), |(name, raw)| self.named(name, raw.get()))
        } else {
            self.named(event.name, event.data)
        };
        Ok(delta?.into_iter().collect())
    }

    fn is_complete(&self) -> bool {
        self.end.is_some() && self.metadata.is_some()
    }

    /// The body that the whole answer would have had.
    fn body(&mut self) -> Option<Json> {
        let end = self.end.clone()?;
        let parts = std::mem::take(&mut self.parts);
        let content: Vec<Tree> = parts.into_values().map(Part::into_tree).collect();
        let role = self.role.take().map_or(Tree::Word("assistant"), Tree::Raw);
        let message = Object::default().with("role", role).with("content", content);
        let mut body = Object::default().with("output", Object::default().with("message", message));
        body.extend_unset(end);
        body.extend_unset(self.metadata.clone().unwrap_or_default());
        Some(Tree::from(body).into_json())
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.usage)
    }
}

impl Response {
    fn named(&mut self, name: &str, data: &str) -> Result<Option<Delta>, ModelError> {
        let fields = || Fields::parse(data).ok_or(Unreadable("an event that is no object"));
        match name {
            "messageStart" => self.role = fields()?.take_json("role").or(self.role.take()),
            "contentBlockStart" => return self.begin(&fields()?),
            "contentBlockDelta" => return self.add(&fields()?),
            "messageStop" => self.end = Some(beside(fields()?)),
            "metadata" => {
                let fields = fields()?;
                let usage = fields.get("usage").and_then(|raw| response::USAGE.read(raw));
                self.usage = usage.unwrap_or(self.usage);
                self.metadata = Some(beside(fields));
            }
            exception if exception.ends_with("Exception") => {
                return Err(exception_error(exception, data));
            }
            // `contentBlockStop` adds nothing: the next block ends this one.
            _ => {}
        }
        Ok(None)
    }

    fn begin(&mut self, event: &Fields<'_>) -> Result<Option<Delta>, ModelError> {
        let start = event.get("start").ok_or(Unreadable("a block without its start"))?;
        let (part, begins) = Part::begin(start)?;
        match self.parts.insert(index(event)?, part) {
            None => Ok(begins),
            Some(_) => Err(Unreadable("a block that begins twice").into()),
        }
    }

    fn add(&mut self, event: &Fields<'_>) -> Result<Option<Delta>, ModelError> {
        let delta = event.object("delta");
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
}

fn index(event: &Fields<'_>) -> Result<u64, Unreadable> {
    let index = event.get("contentBlockIndex");
    let index = index.and_then(|raw| serde_json::from_str(raw.get()).ok());
    index.ok_or(Unreadable("a piece that does not say where it belongs"))
}

/// The fields of an event, without the padding that hides how long it is.
fn beside(mut fields: Fields<'_>) -> Object {
    fields.take("p");
    fields.tree()
}

/// Returns the error of an exception within the stream. Its name is its code.
fn exception_error(name: &str, data: &str) -> ModelError {
    let mut body = Object::default().with("type", name.to_owned());
    match Fields::parse(data) {
        Some(fields) => body.extend_unset(fields.tree()),
        None => body.set("message", data.to_owned()),
    }
    let mut error = classify_error(0, Tree::from(body).into_json().as_str().as_bytes());
    // The provider asks to try again, in its documentation and not in the event.
    if name == "modelStreamErrorException" && error.kind == ModelErrorKind::Other {
        error.kind = ModelErrorKind::Retryable { after: None };
    }
    error
}
