//! Assembling an answer from the events of its stream.
//!
//! `response.output_item.done` has a whole item, and the event that ends the stream has the other
//! fields in its `response`. Together they are a response body, which is read like any other, so a
//! streamed answer equals the whole one. The other events are only reported as deltas.
//!
//! An item is identified by its `output_index`. Where that is missing, or another item has it, its
//! id counts, and a new item follows the items so far. Some servers give an item a new id in every
//! event: then the index counts. The text or the input of an item that ends without it is the one
//! that was streamed.

use std::collections::BTreeMap;

use super::{kinds, kinds::Label, read};
use crate::kit::*;

/// The position of an item: its index, or one after all indexes so far.
type Place = u128;

/// An answer that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// The items so far, by their position in the answer.
    items: BTreeMap<Place, Item>,
    /// The whole body, once the stream has ended.
    body: Option<Json>,
}

/// An item that is being received.
#[derive(Debug, Default)]
struct Item {
    id: Text,
    /// The id of the call, once its beginning was reported.
    call_id: Option<Text>,
    /// The item as the event of its beginning has it.
    begun: Option<Json>,
    /// The item as the event of its end has it.
    ended: Option<Json>,
    /// Whether any of its text or input was reported.
    is_reported: bool,
    /// The text or input that arrived in pieces.
    pieces: String,
    /// The text or input as the events after the pieces repeat it.
    repeated: String,
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
                if let Some((place, item, json)) = self.item(fields, Event::Begins) {
                    self.show_call(place, &item, out);
                    self.items.entry(place).or_default().begun = Some(json);
                }
            }
            "response.output_item.done" => self.done(fields, out),
            "response.reasoning_summary_part.added" => self.next_part(fields, out),
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                return self.complete(fields, out);
            }
            "response.failed" => return Err(failed(fields, data, out)),
            "error" => return Err(provider_error(data)),
            _ => self.piece(kind, fields, out),
        }
        Ok(())
    }

    /// Takes a piece of an item, or the repetition of all its pieces, and reports what it adds.
    fn piece(&mut self, kind: &str, fields: &Fields<'_>, out: &mut Output) {
        let keys: &[&str] = match kind.rsplit_once('.') {
            Some((_, "delta")) => &["delta"],
            Some((_, "done")) => &["text", "refusal", "arguments", "input"],
            Some(_) | None => return,
        };
        let text = keys.iter().find_map(|key| fields.text(key)).filter(|text| !text.is_empty());
        let Some((text, place)) = text.zip(self.place_of_piece(fields)) else { return };
        let item = self.items.entry(place).or_default();
        match (kind, &item.call_id) {
            ("response.output_text.delta" | "response.refusal.delta", _) => {
                item.pieces.push_str(&text);
                out.text(text);
            }
            ("response.reasoning_summary_text.delta" | "response.reasoning_text.delta", _) => {
                out.thinking(text);
            }
            (
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
                call_id,
            ) => {
                item.pieces.push_str(&text);
                // Pieces of a call that has not begun are reported with the whole call.
                let Some(id) = call_id else { return };
                out.input(id, text);
            }
            (
                "response.output_text.done"
                | "response.refusal.done"
                | "response.function_call_arguments.done"
                | "response.custom_tool_call_input.done",
                _,
            ) => return item.repeated.push_str(&text),
            (_, _) => return,
        }
        item.is_reported = true;
    }

    /// Reports the beginning of a call, once.
    fn show_call(&mut self, place: Place, fields: &Fields<'_>, out: &mut Output) {
        let label = Label::of(fields);
        if ![kinds::FUNCTION, kinds::CUSTOM].contains(&label.kind.as_str()) {
            return;
        }
        let item = self.items.entry(place).or_default();
        if let Some((id, name)) = label.call_id.zip(fields.text("name"))
            && item.call_id.is_none()
        {
            out.call(&id, name);
            item.call_id = Some(id);
        }
    }

    /// Takes a complete item, and reports it if none of its pieces was.
    fn done(&mut self, fields: &Fields<'_>, out: &mut Output) {
        let Some((place, fields, json)) = self.item(fields, Event::Ends) else { return };
        self.show_call(place, &fields, out);
        let item = self.items.entry(place).or_default();
        item.ended = Some(json);
        if !std::mem::replace(&mut item.is_reported, true) {
            item.report(out);
        }
    }

    /// The position and the item of an event.
    fn item<'a>(&mut self, fields: &Fields<'a>, event: Event) -> Option<(Place, Fields<'a>, Json)> {
        let raw = fields.get("item")?;
        let fields_of_item = Fields::of(raw).filter(|item| item.text("type").is_some())?;
        let (id, json) = (fields_of_item.text_or_empty("id"), raw.json());
        let call_id = fields_of_item.text("call_id");
        let is_same = |item: &Item| {
            (!id.is_empty() && item.id == id)
                || (call_id.is_some() && item.call_id == call_id)
                || [&item.begun, &item.ended].into_iter().flatten().any(|known| *known == json)
        };
        let place = self.place(fields.number("output_index"), &id, event, is_same);
        let item = self.items.entry(place).or_default();
        if item.id.is_empty() {
            item.id = id;
        }
        Some((place, fields_of_item, json))
    }

    /// The position of an item: of a known one, or after all others.
    fn place(
        &self,
        index: Option<u64>,
        id: &Text,
        event: Event,
        is_same: impl Fn(&Item) -> bool,
    ) -> Place {
        let stated = index.map(Place::from);
        if let Some(place) = stated.filter(|place| self.items.get(place).is_none_or(&is_same)) {
            return place;
        }
        if let Some((place, _)) = self.items.iter().find(|(_, item)| is_same(item)) {
            return *place;
        }
        let last = self.items.keys().next_back().copied();
        let may_be_this = |item: &Item| {
            let is_open = item.ended.is_none() && (event == Event::Ends || item.begun.is_none());
            is_open && (stated.is_some() || item.id.is_empty() || id.is_empty())
        };
        let open = stated.or(last).filter(|place| self.items.get(place).is_some_and(may_be_this));
        open.unwrap_or_else(|| last.map_or(0, |last| last + 1))
    }

    /// The position of the item that a piece belongs to.
    fn place_of_piece(&self, fields: &Fields<'_>) -> Option<Place> {
        let id = fields.text_or_empty("item_id");
        let mut items = self.items.iter();
        let known = items.find(|(_, item)| !id.is_empty() && item.id == id);
        let stated = || fields.number("output_index").map(Place::from);
        let last = || self.items.keys().next_back().copied();
        known.map(|(place, _)| *place).or_else(stated).or_else(last)
    }

    /// Reports the separator before a further part of a summary, as in the whole reasoning.
    fn next_part(&self, fields: &Fields<'_>, out: &mut Output) {
        let is_first = fields.get("summary_index").is_none_or(|raw| raw.get() == "0");
        let item = self.place_of_piece(fields).and_then(|place| self.items.get(&place));
        if !is_first && item.is_some_and(|item| item.is_reported) {
            out.thinking("\n\n".into());
        }
    }

    /// Takes the last event, whose `response` gets the items as its output.
    fn complete(&mut self, fields: &Fields<'_>, out: &mut Output) -> Taken {
        let response = fields.object("response").unwrap_or_default();
        out.usage = usage(&response);
        let listed = response.items("output").map_or(0, |items| items.len());
        let mut body = response.tree();
        let items: Vec<Json> = self.items.values().filter_map(Item::whole).collect();
        // Some servers send the last event without output.
        if listed <= items.len() {
            if self.items.values().any(Item::lacks_end) {
                return Err(unreadable("an item has no end"));
            }
            body.set("output", items.into_iter().map(Tree::Raw).collect::<Vec<_>>());
        }
        self.body = Some(body.into_json());
        out.is_complete = true;
        Ok(())
    }
}

/// An event that has an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Begins,
    Ends,
}

impl Item {
    /// Whether a part of the item was reported and its end did not arrive.
    fn lacks_end(&self) -> bool {
        self.ended.is_none() && (self.is_reported || self.call_id.is_some())
    }

    /// The item, with the text or input that was streamed if it ends without its own; `None` before
    /// its end.
    fn whole(&self) -> Option<Json> {
        let ended = self.ended.as_ref()?;
        let streamed = if self.pieces.is_empty() { &self.repeated } else { &self.pieces };
        Some(with_streamed(ended, streamed).unwrap_or_else(|| ended.clone()))
    }

    /// Reports a whole item of which no piece was reported.
    fn report(&self, out: &mut Output) {
        let Some(whole) = self.whole() else { return };
        let Some(item) = Fields::of(Raw::of(&whole)) else { return };
        if let Some(id) = &self.call_id {
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
}

/// Returns a message or a call with the text or input that was streamed; `None` if it has its own,
/// or none was streamed.
fn with_streamed(ended: &Json, streamed: &str) -> Option<Json> {
    let item = Fields::of(Raw::of(ended)).filter(|_| !streamed.is_empty())?;
    let label = Label::of(&item);
    if !label.is_message() {
        let key = match label.kind.as_str() {
            kinds::FUNCTION => "arguments",
            kinds::CUSTOM => "input",
            _ => return None,
        };
        let is_missing =
            item.value(key).is_none_or(|own| own.text().is_some_and(|own| own.is_empty()));
        let mut call = item.tree();
        call.set(key, streamed.to_owned());
        return is_missing.then(|| call.into_json());
    }
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
