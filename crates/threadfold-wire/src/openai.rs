//! What both dialects of OpenAI share: data URIs, inputs and failures that are texts, parameters.

use super::{
    contract::{Change, EncodeOptions},
    extras::{self, own_object},
    fields::{Fields, text},
    notes::{Notes, with_object},
    params::{Param, number, write_float},
    raw::Raw,
    rules::BLANK,
    schemas::no_parameters,
    tree::{Object, Tree},
};
use threadfold_core::message::{
    ContentBlock, Json, MediaSource, Request, Text, TextBlock, ToolChoice, ToolInput, ToolResult,
    ToolSpec, ToolUse,
};

/// Whether the body names a model to go on with the thread; without one it is a thread at rest.
pub(super) fn names_model(request: &Request, options: &EncodeOptions, codec: &str) -> bool {
    let own = request.extra.get(codec, "model");
    options.model.is_some() || own.is_some_and(|own| *own != Json::default())
}

/// Reads a data URI, if it is of the one form in which it is written.
pub(super) fn data_uri(uri: &str) -> Option<MediaSource> {
    let (media_type, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
    let plain = !media_type.is_empty() && !media_type.contains([';', ',']);
    plain.then(|| MediaSource::Base64 { media_type: media_type.into(), data: data.into() })
}

/// Returns a text of a result, with a mark if it is blank.
pub(super) fn result_text(codec: &'static str, text: Text, rest: &Fields<'_>) -> ContentBlock {
    let own = text.is_blank().then(|| extras::mark(BLANK, "came"));
    let extra = extras::keep(codec, rest, own.into_iter().collect());
    TextBlock { text, extra }.into()
}

/// Wraps an input of JSON that is no object. What came as text stays, whatever it is.
pub(super) fn fit_call(call: &ToolUse, notes: &mut Notes) -> Option<ToolUse> {
    match call.input {
        ToolInput::Json(_) => with_object(call, notes),
        ToolInput::Text(_) => None,
    }
}

/// Says in the text of a result that the tool failed: nothing else says so in these dialects.
pub(super) fn say_failure(codec: &str, result: &mut ToolResult) -> bool {
    const FAILED: &str = "Error:";
    if !result.is_error {
        return false;
    }
    let first = result.content.first_mut();
    let says =
        |text: &str| text.get(..FAILED.len()).is_some_and(|it| it.eq_ignore_ascii_case(FAILED));
    match first {
        Some(ContentBlock::Text(TextBlock { text, extra }))
            if own_object(codec, extra).len() == 0 =>
        {
            if !says(text) {
                *text = format!("{FAILED} {text}").into();
            }
        }
        _ => result.content.insert(0, ContentBlock::text(FAILED)),
    }
    true
}

/// Takes the description of a function and the schema of its parameters out. What is no such thing
/// stays.
pub(super) fn take_described(function: &mut Fields<'_>) -> (Text, Json) {
    let described = function.get("description").and_then(text).is_some_and(|text| !text.is_empty());
    let description = described.then(|| function.take_text("description")).flatten();
    let is_schema = function.get("parameters").is_some_and(|raw| raw.get().starts_with('{'));
    let schema = is_schema.then(|| function.take_json("parameters")).flatten();
    (description.unwrap_or_default(), schema.unwrap_or_else(no_parameters))
}

/// Sets the parameters of a function. As they came they stay until somebody gives the tool a schema.
pub(super) fn set_parameters(tool: &ToolSpec, as_it_came: bool, function: &mut Object) {
    let schema = Some(&tool.input_schema).filter(|schema| schema.is_object());
    let schema = schema.cloned().unwrap_or_else(no_parameters);
    if !as_it_came || schema != no_parameters() {
        function.set("parameters", schema);
    }
}

/// Writes the tools, each with this writer, and returns the names of those that only another
/// provider has.
pub(super) fn write_tools(
    request: &Request,
    body: &mut Object,
    mut write: impl FnMut(&ToolSpec) -> Option<Object>,
) -> Vec<Text> {
    let mut dropped = Vec::new();
    let mut written = Vec::new();
    for tool in &request.tools {
        match write(tool) {
            Some(object) => written.push(object),
            None => dropped.push(tool.name.clone()),
        }
    }
    if !written.is_empty() {
        body.set("tools", Tree::from_iter(written));
    }
    dropped
}

/// The choice among the tools, if there is one; of tools that are dropped it is noted as left out.
pub(super) fn possible_choice<'r>(
    request: &'r Request,
    dropped: &[Text],
    body: &Object,
    notes: &mut Notes,
) -> Option<&'r ToolChoice> {
    let wanted = request.tool_choice.as_ref()?;
    let gone = match wanted {
        ToolChoice::Tool(name) => dropped.contains(name),
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => {
            !dropped.is_empty() && body.get("tools").is_none()
        }
    };
    if gone {
        notes.note(Change::ParameterDropped { name: "tool_choice".into() });
    }
    Some(wanted).filter(|_| !gone)
}

/// Reads a choice among the tools: a word, or an object of a type that names a tool.
pub(super) fn choice(
    raw: Raw<'_>,
    name: impl FnOnce(&Fields<'_>, &str) -> Option<Text>,
) -> Option<ToolChoice> {
    if let Some(word) = text(raw) {
        return match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "required" => Some(ToolChoice::Required),
            "none" => Some(ToolChoice::None),
            _ => None,
        };
    }
    let fields = Fields::of(raw)?;
    let kind = fields.get("type").and_then(text)?;
    name(&fields, &kind).map(ToolChoice::Tool)
}

/// Writes a choice among the tools; one tool is named in this form.
pub(super) fn write_choice(
    choice: &ToolChoice,
    named: impl FnOnce(Text) -> Object,
) -> Option<Tree> {
    Some(match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Tool(name) => named(name.clone()).into(),
    })
}

/// Returns a limit in tokens under this key.
pub(super) const fn limit(key: &'static str, kept_as: &'static str) -> Param<u64> {
    Param { key, kept_as, read: number, write: |tokens| Some(Tree::from(*tokens)) }
}

/// The temperature in both dialects.
pub(super) const TEMPERATURE: Param<f64> =
    Param { key: "temperature", kept_as: "~temperature", read: number, write: write_float };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai_content::address;

    #[test]
    fn a_data_uri_is_taken_apart_only_where_it_can_be_put_together_again() {
        for uri in ["data:image/png;base64,AA==", "data:a/b;base64,", "data:a/b;base64,x;base64,y"]
        {
            let written = data_uri(uri).as_ref().and_then(address);
            assert_eq!(written.as_deref(), Some(uri));
        }
        for uri in
            ["https://x", "data:,x", "data:;base64,A", "data:a/b;c=d;base64,A", "DATA:a;base64,"]
        {
            assert_eq!(data_uri(uri), None, "{uri}");
        }
    }
}
