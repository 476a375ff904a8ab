//! Writing request bodies.
//!
//! The thread is repaired, then written message by message, then the rules that look at several
//! contents are applied to what was written, then the parts are put together.

use std::collections::HashMap;

use super::{
    calls,
    draft::Draft,
    marks::{CODEC, SYSTEM, Spelling, marked, wire_fields},
    order, params, signatures, tools,
    write::Writer,
};
use crate::{
    contract::{EncodeOptions, Encoded},
    names, notes,
    tree::{Object, Tree},
};
use threadfold_core::message::{Request, Text};

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let model = options.model.clone().or_else(|| marked(&request.extra, "model"));
    let at_rest = options.traits.accepts_prefill && model.is_none();
    let end = request.messages.len();
    let (mut messages, mut notes) = notes::prepare(&request.messages, CODEC);
    if !at_rest {
        notes::answer_open_calls(&mut messages, end, &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&calls::TOOLS, false), &mut notes);
    let mut writer = Writer { notes, calls: HashMap::new(), count: 0 };
    let drafts = messages.iter().map(|(at, message)| writer.message(*at, message)).collect();
    let mut drafts = order::arrange(drafts, &mut writer.notes);
    order::begin_and_end(&mut drafts, end, options.traits.accepts_prefill, &mut writer.notes);
    let demanded = model.as_deref().is_some_and(signatures::are_demanded);
    signatures::sign(&mut drafts, demanded, &mut writer.notes);

    let functions = request.tools.iter().filter(|tool| tools::is_function(tool));
    let functions: Vec<Text> = functions.map(|tool| tool.name.clone()).collect();
    let mut body = params::write(request, options, &functions, &mut writer.notes);
    write_system(request, &mut body, &mut writer);
    body.set("contents", Tree::Array(drafts.into_iter().map(Draft::into_tree).collect()));
    let tools = tools::write_all(&request.tools, &mut writer.notes);
    if !tools.is_empty() {
        body.set("tools", tools);
    }
    Encoded { body: Tree::from(body).into_json(), adjustments: writer.notes.finish() }
}

/// Writes the system messages as one prompt, with the fields of the first.
fn write_system(request: &Request, body: &mut Object, writer: &mut Writer) {
    let mut prompt: Option<Object> = None;
    let mut parts = Vec::new();
    for message in &request.system {
        let fields = wire_fields(&message.extra, &mut writer.notes);
        prompt.get_or_insert(fields);
        parts.extend(message.content.iter().filter_map(|block| writer.system_block(block)));
    }
    let Some(prompt) = prompt.filter(|_| !parts.is_empty()) else { return };
    for key in [SYSTEM.camel, SYSTEM.snake] {
        body.remove(key);
    }
    let first = request.system.first();
    let spelling = first.map(|message| Spelling::of(&message.extra)).unwrap_or_default();
    body.set(spelling.key(SYSTEM), prompt.with("parts", parts));
}
