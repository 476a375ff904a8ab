//! Request parameters, both ways.
//!
//! A parameter that has a field of its own in [`Request`] is taken out of the body. Where writing
//! the field would give another text (`1` for a temperature, `max_tokens` for the limit, a choice
//! among `allowed_tools`), the text is kept under a mark, and written for as long as it still means
//! what the field says. A parameter that does not read stays an unknown field.

use super::{
    marks::{CODEC, keep, wire_fields},
    tools,
};
use crate::{
    contract::EncodeOptions,
    fields::{Fields, text},
    notes::Notes,
    openai::{
        self, limit, number, possible_choice, take, temperature, write_temperature, write_tools,
    },
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Extra, Json, Message, Request, Text, ToolChoice};

const NEW_LIMIT: &str = "max_completion_tokens";
const OLD_LIMIT: &str = "max_tokens";

/// Returns the request of these messages with the parameters of the body.
pub(super) fn read(
    mut fields: Fields<'_>,
    system: Vec<Message>,
    messages: Vec<Message>,
) -> Request {
    let tools = fields.get("tools").and_then(tools::read_all);
    if tools.is_some() {
        fields.take("tools");
    }
    let mut own = Vec::new();
    let temperature = temperature(fields.get("temperature"));
    take(&mut fields, "temperature", "~temperature", temperature.and_then(number), &mut own);
    let tool_choice = choice(fields.get("tool_choice"));
    let written = tool_choice.clone().map(write_choice);
    take(&mut fields, "tool_choice", "~tool_choice", written, &mut own);
    let mut max_output = limit(fields.get(NEW_LIMIT));
    take(&mut fields, NEW_LIMIT, "~max_completion_tokens", max_output.map(Tree::from), &mut own);
    if max_output.is_none() {
        max_output = limit(fields.get(OLD_LIMIT));
        let came = max_output.and_then(|_| fields.take_json(OLD_LIMIT));
        own.extend(came.map(|json| ("~max_tokens", json)));
    }
    Request {
        system: system.into(),
        tools: tools.unwrap_or_default().into(),
        tool_choice,
        max_output,
        temperature,
        extra: keep(&fields, own),
        ..Request::new(messages)
    }
}

/// Returns the body but for its messages.
pub(super) fn write(request: &Request, options: &EncodeOptions, notes: &mut Notes) -> Object {
    notes.turn_to(None);
    let mut body = wire_fields(&request.extra, notes);
    body.set_some("model", options.model.clone());
    write_limit(request, &mut body);
    write_temperature(request, request.extra.get(CODEC, "~temperature"), &mut body, notes);
    let dropped = write_tools(request, &mut body, |tool| tools::write(tool, notes));
    write_tool_choice(request, &dropped, &mut body, notes);
    body
}

fn write_limit(request: &Request, body: &mut Object) {
    let Some(tokens) = request.max_output else { return };
    let (new, old) =
        (own(&request.extra, "~max_completion_tokens"), own(&request.extra, "~max_tokens"));
    let key = if old.is_some() { OLD_LIMIT } else { NEW_LIMIT };
    let came = new.or(old).filter(|came| limit(Some(Raw::of(came))) == Some(tokens));
    body.set(key, came.map_or_else(|| tokens.into(), Tree::from));
}

fn write_tool_choice(request: &Request, dropped: &[Text], body: &mut Object, notes: &mut Notes) {
    let Some(wanted) = possible_choice(request, dropped, body, notes) else { return };
    let came = own(&request.extra, "~tool_choice");
    let came = came.filter(|came| choice(Some(Raw::of(came))).as_ref() == Some(wanted));
    body.set("tool_choice", came.map_or_else(|| write_choice(wanted.clone()), Tree::from));
}

fn own(extra: &Extra, mark: &str) -> Option<Json> {
    extra.get(CODEC, mark).cloned()
}

fn choice(raw: Option<Raw<'_>>) -> Option<ToolChoice> {
    openai::choice(raw, |fields, kind| {
        let named = Fields::of(fields.get(kind)?)?;
        named.get("name").and_then(text)
    })
}

fn write_choice(choice: ToolChoice) -> Tree {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Tool(name) => {
            let function = Object::default().with("name", name);
            Object::typed("function").with("function", function).into()
        }
    }
}
