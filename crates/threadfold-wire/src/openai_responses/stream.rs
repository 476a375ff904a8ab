//! Building an answer of the events of its stream.
//!
//! The items come whole in `response.output_item.done`, and everything else in the `response` of
//! the event that ends the stream. Put together they are a response body, which is read as any
//! other: what was streamed cannot differ from what came at once. The pieces in between are only
//! shown.

use std::collections::BTreeMap;

use super::{
    kinds::{self, Label},
    read,
};
use crate::kit::*;

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// The items that are complete, by their place in the answer.
    items: BTreeMap<u64, Json>,
    /// What was shown of each item.
    shown: BTreeMap<u64, Shown>,
    usage: Usage,
    /// The whole answer, once the stream ended with it.
    body: Option<Json>,
}

/// What was shown of an item.
#[derive(Debug, Default)]
struct Shown {
    call_id: Option<Text>,
    /// Whether some text or input of it was shown.
    any: bool,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        read_event(event, &["response."], |fields, data| {
            let kind = fields.text("type").unwrap_or_else(|| event.name.into());
            self.known(&kind, &fields, data)
        })
    }

    fn is_complete(&self) -> bool {
        self.body.is_some()
    }

    fn body(&mut self) -> Option<Json> {
        self.body.clone()
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.usage)
    }
}

impl Response {
    fn known(
        &mut self,
        kind: &str,
        fields: &Fields<'_>,
        data: &str,
    ) -> Result<Vec<Delta>, ModelError> {
        let index = || fields.number("output_index");
        match kind {
            "response.output_item.added" => Ok(self.begins(index(), fields)),
            "response.output_item.done" => Ok(self.done(index(), fields)),
            "response.output_text.delta" | "response.refusal.delta" => {
                Ok(self.piece(index(), fields, |text, _| Some(Delta::Text { text })))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                Ok(self.piece(index(), fields, |text, _| Some(Delta::Thinking { text })))
            }
            "response.reasoning_summary_part.added" => Ok(self.next_part(index(), fields)),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                Ok(self.piece(index(), fields, |text, call| {
                    Some(Delta::ToolInput { id: call?.clone(), text })
                }))
            }
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                self.complete(fields);
                Ok(Vec::new())
            }
            "response.failed" => self.failed(fields, data),
            "error" => Err(provider_error(data)),
            // Servers in between send their errors without a type.
            "" if fields.get("error").is_some_and(|raw| raw.get() != "null") => {
                Err(provider_error(data))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// An item begins: if it is a call, that is shown.
    fn begins(&mut self, index: Option<u64>, fields: &Fields<'_>) -> Vec<Delta> {
        let Some((index, raw)) = index.zip(fields.get("item")) else { return Vec::new() };
        self.show_call(index, raw).into_iter().collect()
    }

    /// Shows that a call begins, once.
    fn show_call(&mut self, index: u64, raw: Raw<'_>) -> Option<Delta> {
        let mut item = Fields::of(raw)?;
        let label = Label::of(&item);
        if label.kind != kinds::FUNCTION && label.kind != kinds::CUSTOM {
            return None;
        }
        let shown = self.shown.entry(index).or_default();
        if shown.call_id.is_some() {
            return None;
        }
        let (id, name) = (label.call_id?, item.take_text("name")?);
        shown.call_id = Some(id.clone());
        Some(Delta::ToolUse { id, name })
    }

    /// An item is complete: it is kept, and shown where nothing of it was.
    fn done(&mut self, index: Option<u64>, fields: &Fields<'_>) -> Vec<Delta> {
        let Some((index, raw)) = index.zip(fields.get("item")) else { return Vec::new() };
        let mut deltas: Vec<Delta> = self.show_call(index, raw).into_iter().collect();
        let shown = self.shown.entry(index).or_default();
        if !shown.any {
            shown.any = true;
            deltas.extend(whole(raw, shown.call_id.as_ref()));
        }
        self.items.insert(index, raw.json());
        deltas
    }

    /// A piece of an item.
    fn piece(
        &mut self,
        index: Option<u64>,
        fields: &Fields<'_>,
        delta: fn(Text, Option<&Text>) -> Option<Delta>,
    ) -> Vec<Delta> {
        let text = fields.text("delta").filter(|text| !text.is_empty());
        let Some((index, text)) = index.zip(text) else { return Vec::new() };
        let shown = self.shown.entry(index).or_default();
        let delta = delta(text, shown.call_id.as_ref());
        shown.any |= delta.is_some();
        delta.into_iter().collect()
    }

    /// Another part of a summary: parts stand apart, as they do in the whole thought.
    fn next_part(&mut self, index: Option<u64>, fields: &Fields<'_>) -> Vec<Delta> {
        let first = fields.get("summary_index").is_none_or(|raw| raw.get() == "0");
        let shown = index.and_then(|index| self.shown.get(&index)).is_some_and(|shown| shown.any);
        let delta = (!first && shown).then(|| Delta::Thinking { text: "\n\n".into() });
        delta.into_iter().collect()
    }

    /// The stream ends with the response; the items that came whole are its output.
    fn complete(&mut self, fields: &Fields<'_>) {
        let response = fields.get("response").map(Raw::json);
        let mut body = reopen(response.as_ref());
        self.note_usage(&body);
        let listed = match body.get("output") {
            Some(Tree::Raw(json)) => Raw::of(json).items().map_or(0, |items| items.len()),
            Some(_) | None => 0,
        };
        // Some servers leave the output of the last event empty.
        if listed <= self.items.len() {
            let items = std::mem::take(&mut self.items).into_values().map(Tree::Raw);
            body.set("output", items.collect::<Vec<_>>());
        }
        self.body = Some(Tree::from(body).into_json());
    }

    fn failed(&mut self, fields: &Fields<'_>, data: &str) -> Result<Vec<Delta>, ModelError> {
        let response = fields.get("response").map(Raw::json);
        let response = reopen(response.as_ref());
        self.note_usage(&response);
        Err(match response.get("error") {
            Some(Tree::Raw(error)) if error.is_object() => {
                let body = Tree::from(Object::default().with("error", error.clone())).into_json();
                provider_error(body.as_str())
            }
            Some(_) | None => provider_error(data),
        })
    }

    fn note_usage(&mut self, response: &Object) {
        if let Some(Tree::Raw(json)) = response.get("usage") {
            self.usage = read::USAGE.read(Raw::of(json)).unwrap_or(self.usage);
        }
    }
}

/// Shows a whole item of which no piece came.
fn whole(raw: Raw<'_>, call_id: Option<&Text>) -> Vec<Delta> {
    let Some(mut item) = Fields::of(raw) else { return Vec::new() };
    if let Some(id) = call_id {
        let input = item.take_text("arguments").or_else(|| item.take_text("input"));
        let input = input.filter(|text| !text.is_empty());
        let delta = input.map(|text| Delta::ToolInput { id: id.clone(), text });
        return delta.into_iter().collect();
    }
    if !Label::of(&item).is_message() {
        return Vec::new();
    }
    let parts = item.items("content").unwrap_or_default();
    let texts = parts.into_iter().filter_map(|raw| {
        let mut part = Fields::of(raw)?;
        let text = part.take_text("text").or_else(|| part.take_text("refusal"))?;
        (!text.is_empty()).then_some(Delta::Text { text })
    });
    texts.collect()
}
