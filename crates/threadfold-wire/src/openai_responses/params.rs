//! Request parameters, both ways.
//!
//! A parameter that has a field of its own in [`Request`] is taken out of the body. Where writing
//! the field would give another text (`1` for a temperature, a choice among `allowed_tools`), the
//! text is kept under a mark, and written for as long as it still means what the field says. A
//! parameter that does not read stays an unknown field.

use super::{
    marks::{CODEC, Field, keep, wire_fields},
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
use threadfold_core::message::{Json, Message, Request, Text, ToolChoice, ToolSpec};

const LIMIT: &str = "max_output_tokens";

/// The parameters that have the model go on from what the provider stored.
pub(super) const CHAINS: [&str; 2] = ["previous_response_id", "conversation"];

/// Whether one of the parameters has the model go on from what the provider stored.
pub(super) fn is_chained<'a>(param: impl Fn(&str) -> Option<&'a str>) -> bool {
    CHAINS.into_iter().any(|key| param(key).is_some_and(|raw| raw != "null"))
}

/// Returns the request of these messages with the parameters of the body.
pub(super) fn read(
    mut fields: Fields<'_>,
    system: Vec<Message>,
    messages: Vec<Message>,
    mut own: Vec<Field>,
) -> Request {
    let tools = fields.get("tools").and_then(tools::read_all);
    if tools.is_some() {
        fields.take("tools");
    }
    let temperature = temperature(fields.get("temperature"));
    take(&mut fields, "temperature", "~temperature", temperature.and_then(number), &mut own);
    let tool_choice = choice(fields.get("tool_choice"));
    let written = tool_choice.clone().map(|choice| write_choice(choice, "function"));
    take(&mut fields, "tool_choice", "~tool_choice", written, &mut own);
    let max_output = limit(fields.get(LIMIT));
    take(&mut fields, LIMIT, "~max_output_tokens", max_output.map(Tree::from), &mut own);
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

/// Returns the body but for its instructions and its input.
pub(super) fn write(request: &Request, options: &EncodeOptions, notes: &mut Notes) -> Object {
    notes.turn_to(None);
    let mut body = wire_fields(&request.extra, notes);
    body.set_some("model", options.model.clone());
    if let Some(tokens) = request.max_output {
        let came = own(request, "~max_output_tokens");
        let came = came.filter(|came| limit(Some(Raw::of(came))) == Some(tokens));
        body.set(LIMIT, came.cloned().map_or_else(|| tokens.into(), Tree::from));
    }
    write_temperature(request, own(request, "~temperature"), &mut body, notes);
    let dropped = write_tools(request, &mut body, |tool| tools::write(tool, notes));
    write_tool_choice(request, &dropped, &mut body, notes);
    body
}

fn write_tool_choice(request: &Request, dropped: &[Text], body: &mut Object, notes: &mut Notes) {
    let Some(wanted) = possible_choice(request, dropped, body, notes) else { return };
    let is_wanted =
        |tool: &ToolSpec| matches!(wanted, ToolChoice::Tool(name) if tool.name == *name);
    let custom = request.tools.iter().any(|tool| tools::is_custom(tool) && is_wanted(tool));
    let kind = if custom { "custom" } else { "function" };
    let came = own(request, "~tool_choice");
    let came = came.filter(|came| choice(Some(Raw::of(came))).as_ref() == Some(wanted));
    let written = || write_choice(wanted.clone(), kind);
    body.set("tool_choice", came.cloned().map_or_else(written, Tree::from));
}

fn own<'r>(request: &'r Request, mark: &str) -> Option<&'r Json> {
    request.extra.get(CODEC, mark)
}

fn choice(raw: Option<Raw<'_>>) -> Option<ToolChoice> {
    openai::choice(raw, |fields, kind| {
        let named = kind == "function" || kind == "custom";
        fields.get("name").and_then(text).filter(|_| named)
    })
}

fn write_choice(choice: ToolChoice, kind: &'static str) -> Tree {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Tool(name) => Object::typed(kind).with("name", name).into(),
    }
}
