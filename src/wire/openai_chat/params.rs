//! Request parameters, both ways.
//!
//! A parameter that has a field of its own in [`Request`] is taken out of the body only if writing
//! the field gives the same text again. Otherwise (`1` for a temperature, `max_tokens` for the
//! limit, a choice among `allowed_tools`) it stays in the extra fields as well, and is written from
//! there for as long as it still means what the field says.

use serde_json::{Number, value::RawValue};

use super::{
    marks::{CODEC, keep, wire_fields},
    tools,
};
use crate::{
    message::{Extra, Json, Message, Request, Text, ToolChoice},
    wire::{
        contract::{Change, EncodeOptions},
        fields::{Fields, text},
        notes::Notes,
        tree::{Object, Tree},
    },
};

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
    let temperature = temperature(fields.get("temperature"));
    take_if_same(&mut fields, "temperature", temperature.and_then(number));
    let tool_choice = choice(fields.get("tool_choice"));
    take_if_same(&mut fields, "tool_choice", tool_choice.clone().map(write_choice));
    let max_output = limit(fields.get(NEW_LIMIT), fields.get(OLD_LIMIT));
    if fields.get(OLD_LIMIT).is_none() {
        take_if_same(&mut fields, NEW_LIMIT, max_output.map(Tree::from));
    }
    Request {
        system: system.into(),
        tools: tools.unwrap_or_default().into(),
        tool_choice,
        max_output,
        temperature,
        extra: keep(&fields, Vec::new()),
        ..Request::new(messages)
    }
}

/// Takes a field out that is written the same again.
fn take_if_same(fields: &mut Fields<'_>, key: &str, written: Option<Tree>) {
    let written = written.map(Tree::into_json);
    let came = fields.get(key).map(Json::from_raw);
    if written == came {
        fields.take(key);
    }
}

/// Returns the body but for its messages.
pub(super) fn write(request: &Request, options: &EncodeOptions, notes: &mut Notes) -> Object {
    notes.turn_to(None);
    let mut body = wire_fields(&request.extra, notes);
    body.set_some("model", options.model.clone());
    write_limit(request, &mut body);
    write_temperature(request, &mut body, notes);
    let dropped = write_tools(request, &mut body, notes);
    write_tool_choice(request, &dropped, &mut body, notes);
    body
}

fn write_limit(request: &Request, body: &mut Object) {
    let came = |key| own(&request.extra, key);
    if limit(came(NEW_LIMIT), came(OLD_LIMIT)) == request.max_output {
        return;
    }
    let old = came(OLD_LIMIT).is_some() && came(NEW_LIMIT).is_none();
    body.remove(OLD_LIMIT);
    body.remove(NEW_LIMIT);
    body.set_some(if old { OLD_LIMIT } else { NEW_LIMIT }, request.max_output);
}

fn write_temperature(request: &Request, body: &mut Object, notes: &mut Notes) {
    if temperature(own(&request.extra, "temperature")) == request.temperature {
        return;
    }
    body.remove("temperature");
    let number = request.temperature.and_then(number);
    if request.temperature.is_some() && number.is_none() {
        notes.note(Change::ParameterDropped { name: "temperature".into() });
    }
    body.set_some("temperature", number);
}

/// Writes the tools, and returns the names of those that only another provider has.
fn write_tools(request: &Request, body: &mut Object, notes: &mut Notes) -> Vec<Text> {
    let mut dropped = Vec::new();
    let mut written = Vec::new();
    for tool in &request.tools {
        match tools::write(tool, notes) {
            Some(object) => written.push(object),
            None => dropped.push(tool.name.clone()),
        }
    }
    if !written.is_empty() {
        body.set("tools", Tree::from_iter(written));
    }
    dropped
}

fn write_tool_choice(request: &Request, dropped: &[Text], body: &mut Object, notes: &mut Notes) {
    let gone = match &request.tool_choice {
        None => false,
        Some(ToolChoice::Tool(name)) => dropped.contains(name),
        Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::None) => {
            !dropped.is_empty() && body.get("tools").is_none()
        }
    };
    if gone {
        body.remove("tool_choice");
        notes.note(Change::ParameterDropped { name: "tool_choice".into() });
    } else if choice(own(&request.extra, "tool_choice")) != request.tool_choice {
        body.remove("tool_choice");
        body.set_some("tool_choice", request.tool_choice.clone().map(write_choice));
    }
}

fn own<'e>(extra: &'e Extra, key: &str) -> Option<&'e RawValue> {
    extra.get(CODEC, key).map(|json| json.as_raw())
}

fn temperature(raw: Option<&RawValue>) -> Option<f64> {
    serde_json::from_str(raw?.get()).ok()
}

fn limit(new: Option<&RawValue>, old: Option<&RawValue>) -> Option<u64> {
    let read = |raw: Option<&RawValue>| serde_json::from_str(raw?.get()).ok();
    read(new).or_else(|| read(old))
}

fn choice(raw: Option<&RawValue>) -> Option<ToolChoice> {
    let raw = raw?;
    if let Some(word) = text(raw) {
        return match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "required" => Some(ToolChoice::Required),
            "none" => Some(ToolChoice::None),
            _ => None,
        };
    }
    let fields = Fields::parse(raw.get())?;
    let kind = fields.get("type").and_then(text)?;
    let named = Fields::parse(fields.get(&kind)?.get())?;
    named.get("name").and_then(text).map(ToolChoice::Tool)
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

fn number(value: f64) -> Option<Tree> {
    Number::from_f64(value).map(Tree::Number)
}
