//! Request parameters, both ways. A parameter that does not read stays an unknown field.

use super::{
    marks::{Field, keep, wire_fields},
    tools,
};
use crate::{
    contract::EncodeOptions,
    fields::{Fields, text},
    notes::Notes,
    openai::{self, TEMPERATURE, limit, possible_choice, write_tools},
    params::Param,
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Message, Request, ToolChoice};

const LIMIT: Param<u64> = limit("max_output_tokens", "~max_output_tokens");
const TOOL_CHOICE: Param<ToolChoice> = Param {
    key: "tool_choice",
    kept_as: "~tool_choice",
    read: choice,
    write: |choice| {
        openai::write_choice(choice, |name| Object::typed("function").with("name", name))
    },
};

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
    Request {
        system: system.into(),
        tools: tools.unwrap_or_default().into(),
        temperature: TEMPERATURE.take(&mut fields, &mut own),
        tool_choice: TOOL_CHOICE.take(&mut fields, &mut own),
        max_output: LIMIT.take(&mut fields, &mut own),
        extra: keep(&fields, own),
        ..Request::new(messages)
    }
}

/// Returns the body but for its instructions and its input.
pub(super) fn write(request: &Request, options: &EncodeOptions, notes: &mut Notes) -> Object {
    notes.turn_to(None);
    let mut body = wire_fields(&request.extra, notes);
    body.set_some("model", options.model.clone());
    LIMIT.set(&mut body, &request.extra, request.max_output.as_ref(), notes);
    TEMPERATURE.set(&mut body, &request.extra, request.temperature.as_ref(), notes);
    let dropped = write_tools(request, &mut body, |tool| tools::write(tool, notes));
    let choice = possible_choice(request, &dropped, &body, notes);
    if choice.is_some() || request.tool_choice.is_none() {
        TOOL_CHOICE.set(&mut body, &request.extra, choice, notes);
    }
    let custom =
        |name: &str| request.tools.iter().any(|it| it.name == name && tools::is_custom(it));
    if let Some(ToolChoice::Tool(name)) = choice
        && let Some(Tree::Object(object)) = body.get_mut(TOOL_CHOICE.key)
        && custom(name)
    {
        object.set("type", "custom");
    }
    body
}

fn choice(raw: Raw<'_>) -> Option<ToolChoice> {
    openai::choice(raw, |fields, kind| {
        let named = kind == "function" || kind == "custom";
        fields.get("name").and_then(text).filter(|_| named)
    })
}
