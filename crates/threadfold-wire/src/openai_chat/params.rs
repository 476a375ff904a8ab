//! Request parameters, both ways. A parameter that does not read stays an unknown field.

use super::{
    marks::{CODEC, keep, wire_fields},
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

const LIMIT: Param<u64> = limit("max_completion_tokens", "~max_completion_tokens");
const OLD_LIMIT: Param<u64> = limit("max_tokens", "~max_tokens");
const TOOL_CHOICE: Param<ToolChoice> =
    Param { key: "tool_choice", kept_as: "~tool_choice", read: choice, write: write_choice };

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
    let temperature = TEMPERATURE.take(&mut fields, &mut own);
    let tool_choice = TOOL_CHOICE.take(&mut fields, &mut own);
    let mut max_output = LIMIT.take(&mut fields, &mut own);
    if max_output.is_none() {
        // Always noted: the note says under which name the limit goes back.
        max_output = fields.get(OLD_LIMIT.key).and_then(OLD_LIMIT.read);
        let came = max_output.and_then(|_| fields.take_json(OLD_LIMIT.key));
        own.extend(came.map(|json| (OLD_LIMIT.kept_as, json)));
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
    let is_old = request.extra.get(CODEC, OLD_LIMIT.kept_as).is_some();
    let limit = if is_old { OLD_LIMIT } else { LIMIT };
    if request.max_output.is_some() {
        limit.set(&mut body, &request.extra, request.max_output.as_ref(), notes);
    }
    TEMPERATURE.set(&mut body, &request.extra, request.temperature.as_ref(), notes);
    let dropped = write_tools(request, &mut body, |tool| tools::write(tool, notes));
    let choice = possible_choice(request, &dropped, &body, notes);
    if choice.is_some() || request.tool_choice.is_none() {
        TOOL_CHOICE.set(&mut body, &request.extra, choice, notes);
    }
    body
}

fn choice(raw: Raw<'_>) -> Option<ToolChoice> {
    openai::choice(raw, |fields, kind| {
        let named = Fields::of(fields.get(kind)?)?;
        named.get("name").and_then(text)
    })
}

fn write_choice(choice: &ToolChoice) -> Option<Tree> {
    openai::write_choice(choice, |name| {
        let function = Object::default().with("name", name);
        Object::typed("function").with("function", function)
    })
}
