//! Assembling an answer from the events of its stream.
//!
//! `response.output_item.done` has a whole item, and the event that ends the stream has the other
//! fields in its `response`. Together they are a response body, which is read like any other, so a
//! streamed answer equals the whole one. The other events are only reported as deltas.
//!
//! An item is identified by its `output_index`. Where that is missing, or another item has it
//! already, it is identified by its id, and a new one follows the items so far. The text of an item
//! that arrives without its text is the one that was streamed.

use std::collections::BTreeMap;

use super::{kinds, kinds::Label, read};
use crate::kit::*;

/// An answer that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// The complete items, by their position in the answer.
    items: BTreeMap<u64, Json>,
    /// The parts of each item that were reported.
    shown: BTreeMap<u64, Shown>,
    /// The whole body, once the stream has ended.
    body: Option<Json>,
}

/// The parts of an item that were reported.
#[derive(Debug, Default)]
struct Shown {
    call_id: Option<Text>,
    /// Whether any of its text or input was reported.
    any: bool,
    /// The id of the item.
    id: Text,
    /// The text that was reported.
    text: String,
}

impl Assembly for Response {
    fn take(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        read_event((name, data), &["response."], |fields, data| {
            let kind = fields.text("type").unwrap_or_else(|| name.into());
            self.known(&kind, &fields, data, out)
        })
    }

    fn body(&mut self, _: bool) -> Option<Json> {
        self.body.clone()
    }
}

impl Response {
    fn known(&mut self, kind: &str, fields: &Fields<'_>, data: &str, out: &mut Output) -> Taken {
        match kind {
            "response.output_item.added" => {
                if let Some((index, raw)) = self.item(fields) {
                    self.show_call(index, raw, out);
                }
            }
            "response.output_item.done" => self.done(fields, out),
            "response.reasoning_summary_part.added" => self.next_part(fields, out),
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                return self.complete(fields, out);
            }
            "response.failed" => return Err(failed(fields, data, out)),
            "error" => return Err(provider_error(data)),
            // Proxies send errors without a type.
            "" if fields.value("error").is_some() => {
                return Err(provider_error(data));
            }
            _ => self.delta(kind, fields, out),
        }
        Ok(())
    }

    /// Reports a piece of an item, if it is one of a known kind.
    fn delta(&mut self, kind: &str, fields: &Fields<'_>, out: &mut Output) {
        let text = fields.text("delta").filter(|text| !text.is_empty());
        let Some((text, index)) = text.zip(self.place_of_piece(fields)) else { return };
        let shown = self.shown.entry(index).or_default();
        match (kind, &shown.call_id) {
            ("response.output_text.delta" | "response.refusal.delta", _) => {
                shown.text.push_str(&text);
                out.text(text);
            }
            ("response.reasoning_summary_text.delta" | "response.reasoning_text.delta", _) => {
                out.thinking(text);
            }
            (
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
                Some(id),
            ) => out.input(id, text),
            // Pieces of a call that has not begun are reported with the whole call.
            (_, _) => return,
        }
        shown.any = true;
    }

    /// Reports the beginning of a call, once.
    fn show_call(&mut self, index: u64, raw: Raw<'_>, out: &mut Output) {
        let Some(item) = Fields::of(raw) else { return };
        let label = Label::of(&item);
        if ![kinds::FUNCTION, kinds::CUSTOM].contains(&label.kind.as_str()) {
            return;
        }
        let shown = self.shown.entry(index).or_default();
        if let Some((id, name)) = label.call_id.zip(item.text("name"))
            && shown.call_id.is_none()
        {
            out.call(&id, name);
            shown.call_id = Some(id);
        }
    }

    /// Takes a complete item, and reports it if none of its pieces was.
    fn done(&mut self, fields: &Fields<'_>, out: &mut Output) {
        let Some((index, raw)) = self.item(fields) else { return };
        self.show_call(index, raw, out);
        let shown = self.shown.entry(index).or_default();
        if !std::mem::replace(&mut shown.any, true) {
            whole(raw, shown.call_id.as_ref(), out);
        }
        let with_text = with_text(raw, &shown.text).unwrap_or_else(|| raw.json());
        self.items.insert(index, with_text);
    }

    /// The position and the item of an event.
    fn item<'a>(&mut self, fields: &Fields<'a>) -> Option<(u64, Raw<'a>)> {
        let raw = fields.get("item")?;
        let id = Fields::of(raw).map(|item| item.text_or_empty("id")).unwrap_or_default();
        let place = self.place(fields.number("output_index"), &id);
        let shown = self.shown.entry(place).or_default();
        if shown.id.is_empty() {
            shown.id = id;
        }
        Some((place, raw))
    }

    /// The position of an item with this index and id: of a known one, or after all others.
    fn place(&self, index: Option<u64>, id: &str) -> u64 {
        let fits = |shown: &Shown| shown.id.is_empty() || id.is_empty() || shown.id == id;
        // A complete item whose id is unknown cannot be told from the next one.
        let is_open = |place: &u64| !self.items.contains_key(place) || !id.is_empty();
        let stated = index.filter(|place| self.shown.get(place).is_none_or(fits) && is_open(place));
        let known = || {
            let mut shown = self.shown.iter();
            shown.find(|(_, shown)| !id.is_empty() && shown.id == id).map(|(place, _)| *place)
        };
        let open = || {
            let last = self.shown.keys().next_back().copied().filter(|_| index.is_none());
            last.filter(|place| !self.items.contains_key(place))
                .filter(|place| self.shown.get(place).is_some_and(fits))
        };
        let next = || self.shown.keys().next_back().map_or(0, |last| last.saturating_add(1));
        known().or(stated).or_else(open).unwrap_or_else(next)
    }

    /// The position of the item that a piece belongs to.
    fn place_of_piece(&self, fields: &Fields<'_>) -> Option<u64> {
        let id = fields.text_or_empty("item_id");
        let mut shown = self.shown.iter();
        let known = shown.find(|(_, shown)| !id.is_empty() && shown.id == id);
        let last = || self.shown.keys().next_back().copied();
        known.map(|(place, _)| *place).or_else(|| fields.number("output_index")).or_else(last)
    }

    /// Reports the separator before a further part of a summary, as in the whole reasoning.
    fn next_part(&self, fields: &Fields<'_>, out: &mut Output) {
        let is_first = fields.get("summary_index").is_none_or(|raw| raw.get() == "0");
        let shown = self.place_of_piece(fields).and_then(|place| self.shown.get(&place));
        if !is_first && shown.is_some_and(|shown| shown.any) {
            out.thinking("\n\n".into());
        }
    }

    /// Takes the last event, whose `response` gets the items as its output.
    fn complete(&mut self, fields: &Fields<'_>, out: &mut Output) -> Taken {
        let response = fields.object("response").unwrap_or_default();
        out.usage = usage(&response);
        let listed = response.items("output").map_or(0, |items| items.len());
        let mut body = response.tree();
        // Some servers send the last event without output.
        if listed <= self.items.len() {
            let is_shown = |shown: &Shown| shown.any || shown.call_id.is_some();
            let mut shown = self.shown.iter().filter(|(_, shown)| is_shown(shown));
            if shown.any(|(index, _)| !self.items.contains_key(index)) {
                return Err(unreadable("an item has no end"));
            }
            let items = std::mem::take(&mut self.items).into_values().map(Tree::Raw);
            body.set("output", items.collect::<Vec<_>>());
        }
        self.body = Some(body.into_json());
        out.is_complete = true;
        Ok(())
    }
}

/// The error of a response that failed.
fn failed(fields: &Fields<'_>, data: &str, out: &mut Output) -> ModelError {
    let response = fields.object("response").unwrap_or_default();
    out.usage = usage(&response);
    match response.get("error").filter(|error| error.is_object()) {
        Some(error) => provider_error(Object::of("error", error.json()).into_json().as_str()),
        None => provider_error(data),
    }
}

fn usage(response: &Fields<'_>) -> Option<Usage> {
    response.get("usage").and_then(|usage| read::USAGE.read(usage))
}

/// Returns a message with the text that was streamed; `None` if it has a text of its own, or none
/// was streamed.
fn with_text(raw: Raw<'_>, streamed: &str) -> Option<Json> {
    let item =
        Fields::of(raw).filter(|item| !streamed.is_empty() && Label::of(item).is_message())?;
    let mut parts = item.items("content").unwrap_or_default().into_iter().filter_map(Fields::of);
    let lacks_text = |part: &Fields<'_>| {
        part.text_or_empty("text").is_empty() && part.text_or_empty("refusal").is_empty()
    };
    if !parts.all(|part| lacks_text(&part)) {
        return None;
    }
    let annotations = Tree::Array(Vec::new());
    let part = Object::typed("output_text")
        .with("annotations", annotations)
        .with("text", streamed.to_owned());
    let mut message = item.tree();
    message.set("content", vec![Tree::from(part)]);
    Some(message.into_json())
}

/// Reports a whole item of which no piece arrived.
fn whole(raw: Raw<'_>, call_id: Option<&Text>, out: &mut Output) {
    let Some(item) = Fields::of(raw) else { return };
    if let Some(id) = call_id {
        let input = item.text("arguments").or_else(|| item.text("input"));
        return out.input(id, input.unwrap_or_default());
    }
    if !Label::of(&item).is_message() {
        return;
    }
    for part in item.items("content").unwrap_or_default().into_iter().filter_map(Fields::of) {
        out.text(part.text("text").or_else(|| part.text("refusal")).unwrap_or_default());
    }
}
