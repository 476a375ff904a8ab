//! Putting a response together from the chunks of its stream.
//!
//! | of a chunk | becomes |
//! |---|---|
//! | `choices`, of the first one: `delta` | its `message`; see `stream_message` |
//! | `finish_reason` and other fields of the choice | the last that came; lists of `logprobs` are joined |
//! | `usage`, also in a choice and in `x_groq` | the last counts that came |
//! | `id`, `model` and other fields | the last that came; `obfuscation` is left out |
//! | `error` | a failure |
//!
//! The answer is complete with `[DONE]`. Not every server sends it, so an answer with a reason why
//! it finished is whole too when the stream ends.

use super::{response, stream_message::Message};
use crate::{
    assembly::{Assembly, provider_error, read, unreadable},
    growing::Merged,
    json::{Fields, Object, Raw, Tree},
    stream::StreamEvent,
};
use serde_json::Value;
use threadfold_core::message::{Delta, Json, ModelError, Usage};

/// A response in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    head: Merged,
    usage: Merged,
    choice: Merged,
    logprobs: Vec<(String, Vec<Json>)>,
    message: Option<Message>,
    done: bool,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        self.done |= event.data.trim() == "[DONE]";
        read(event, &[], |fields, data| self.read(event.name, fields, data))
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn body(&mut self) -> Option<Json> {
        let finished = self.choice.get("finish_reason").is_some_and(|why| why.as_str() != "null");
        let message = self.message.as_ref().filter(|_| self.done || finished)?;
        let mut choice = self.choice.object().unwrap_or_default();
        if !self.logprobs.is_empty() {
            choice.set("logprobs", self.logprobs());
        }
        choice.set("message", message.tree());
        let mut body = self.head.object().unwrap_or_default();
        if body.get("object").is_some() {
            body.set("object", "chat.completion");
        }
        body.push("choices", Tree::Array(vec![choice.into()]));
        body.set_some("usage", self.usage.object());
        Some(Tree::from(body).into_json())
    }

    fn usage(&self) -> Option<Usage> {
        self.usage.usage(&response::USAGE)
    }
}

impl Response {
    fn read(
        &mut self,
        name: &str,
        mut fields: Fields<'_>,
        data: &str,
    ) -> Result<Vec<Delta>, ModelError> {
        if name == "error" || is_error(&fields) {
            return Err(provider_error(data));
        }
        let choices = fields.take("choices").and_then(Raw::items);
        let usage = fields.take("usage");
        if choices.is_none() && usage.is_none() {
            return Ok(Vec::new());
        }
        fields.take("obfuscation");
        self.usage.count(usage);
        self.head(fields);
        let choices = choices.into_iter().flatten().filter_map(Fields::of);
        let mut deltas = Vec::new();
        for choice in choices.filter(is_first) {
            deltas.extend(self.choice(choice)?);
        }
        Ok(deltas)
    }

    /// Takes what a chunk says beside its choices.
    fn head(&mut self, mut fields: Fields<'_>) {
        if let Some(groq) = fields.object("x_groq")
            && let Some(usage) = groq.get("usage")
        {
            fields.take("x_groq");
            self.usage.count(Some(usage));
        }
        self.head.merge(&fields);
    }

    fn choice(&mut self, mut choice: Fields<'_>) -> Result<Vec<Delta>, ModelError> {
        self.usage.count(choice.take("usage"));
        if let Some(logprobs) = choice.take_as("logprobs", Fields::of) {
            self.add_logprobs(&logprobs);
        }
        let delta = choice.take("delta").filter(|raw| raw.get() != "null");
        self.choice.merge(&choice);
        let Some(delta) = delta else { return Ok(Vec::new()) };
        let delta = Fields::of(delta);
        let delta = delta.ok_or_else(|| unreadable("a delta is no JSON object"))?;
        let id = self.head.get("id").and_then(|id| Raw::of(id).text()).unwrap_or_default();
        Ok(self.message.get_or_insert_default().add(delta, &id))
    }

    fn add_logprobs(&mut self, logprobs: &Fields<'_>) {
        // Known forms have two lists. The limit keeps a hostile stream from adding many.
        for (key, raw) in logprobs.rest().take(8) {
            let more = raw.items().into_iter().flatten().map(Raw::json);
            let full = self.logprobs.len() >= 8;
            match self.logprobs.iter_mut().find(|(name, _)| name == key) {
                Some((_, list)) => list.extend(more),
                None if full => {}
                None => self.logprobs.push((key.to_owned(), more.collect())),
            }
        }
    }

    fn logprobs(&self) -> Object {
        let list = |list: &[Json]| match list {
            [] => Tree::Null,
            list => Tree::Array(list.iter().cloned().map(Tree::from).collect()),
        };
        let mut object = Object::default();
        for (key, items) in &self.logprobs {
            object.push(key.clone(), list(items));
        }
        object
    }
}

/// Whether it is an error, in any of the forms that servers give it within a stream.
fn is_error(fields: &Fields<'_>) -> bool {
    let error =
        fields.get("error").is_some_and(|error| !matches!(error.get(), "null" | "false" | "\"\""));
    error || fields.text("object").is_some_and(|object| object == "error")
}

/// Whether it is the first choice, the only one that is read.
fn is_first(choice: &Fields<'_>) -> bool {
    let index = choice.get("index").map(|raw| serde_json::from_str::<Value>(raw.get()));
    !matches!(index, Some(Ok(Value::Number(number))) if number.as_u64() != Some(0))
}
