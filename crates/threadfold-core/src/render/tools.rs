//! Inputs and results of tools.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use serde::de::IgnoredAny;

use super::{body::Body, links, marks::heading, options::RenderOptions};
use crate::message::{ContentBlock, ServerToolResult, ToolInput, ToolResult};

/// `true` if an input is a JSON object. A blank text counts as an empty object.
pub(super) fn is_object(input: &ToolInput) -> bool {
    match input {
        ToolInput::Json(json) => json.is_object(),
        ToolInput::Text(text) => {
            let is_object = text.trim_start().starts_with('{');
            text.is_blank() || is_object && serde_json::from_str::<IgnoredAny>(text).is_ok()
        }
    }
}

/// Adds the JSON input of a call to a body.
pub(super) fn push_input<'a>(body: &mut Body<'a>, json: &'a str, options: &RenderOptions) {
    body.push(if json.trim().is_empty() { "{}" } else { json });
    body.cap(options.tool_input_cap);
}

/// Adds the content of a tool result to a body.
pub(super) fn push_result<'a>(
    body: &mut Body<'a>,
    result: &'a ToolResult,
    options: &RenderOptions,
) {
    let shown = result.content.iter().filter_map(|block| item(block, options));
    shown.filter(|text| !text.is_empty()).for_each(|text| body.push(text));
}

/// Returns the text for a block in a tool result; `None` if the options hide it. Blocks other than
/// texts and documents are only named.
fn item<'a>(block: &'a ContentBlock, options: &RenderOptions) -> Option<Cow<'a, str>> {
    match block {
        ContentBlock::Text(block) => Some(Cow::Borrowed(&block.text)),
        ContentBlock::Summary(block) => Some(Cow::Borrowed(&block.text)),
        ContentBlock::ContextUpdate(block) => Some(Cow::Borrowed(&block.text)),
        ContentBlock::Thinking(block) => options.thinking.then_some(Cow::Borrowed(&block.text)),
        ContentBlock::SystemReminder(block) => {
            options.reminders.then_some(Cow::Borrowed(&block.text))
        }
        ContentBlock::Document(document) => Some(match &document.title {
            Some(title) => Cow::Owned(format!("[document: {title}]")),
            None => Cow::Borrowed("[document]"),
        }),
        ContentBlock::Image(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Opaque(_) => Some(Cow::Owned(format!("[{}]", block.kind()))),
    }
}

/// Writes the result of a provider's own tool.
pub(super) fn server_result<'a>(
    result: &'a ServerToolResult,
    options: &RenderOptions,
    body: &mut Body<'a>,
    out: &mut impl Write,
) -> fmt::Result {
    let Some(readable) = links::readable(&result.content) else {
        let size = format!("{} bytes", result.content.as_str().len());
        return heading(out, "server_tool_result", &result.kind, [size.as_str()]);
    };
    heading(out, "server_tool_result", &result.kind, readable.is_error.then_some("error"))?;
    body.clear();
    body.push(readable.text);
    body.cap(options.tool_result_cap);
    body.write(out, "")
}
