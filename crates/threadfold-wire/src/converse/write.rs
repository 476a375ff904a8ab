//! Writing request bodies: the thread is made legal first and written then.

use std::collections::BTreeSet;

use super::{forms::*, media, media::WRAPS, normal::*, params, params::*, target::*};
use crate::kit::*;

/// Writes a request body, and reports the changes.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let model = Model::new(request, options);
    let end = request.messages.len();
    let prefill = options.accepts_prefill && !thinks_manually(thinking_type(&request.extra));
    let (request, mut messages, mut notes) =
        names::begin(request, NAME, (&names::TOOLS, true), false);
    names::rewrite_ids(&mut messages, &IDS, |_| true, &mut notes);
    rewrite_titles(&mut messages, &mut notes);
    notes.turn_to(None);
    let mut system = rules::system(&model, &request.system, &mut notes);
    let marks = cache_rules(&model);
    system.iter_mut().for_each(|message| mark_points(message, &marks, &mut notes));
    let mut tools = fit_tools(&request.tools, &mut notes);
    let lost_marks = mark_tools(&mut tools);
    declare_called(&mut tools, &messages, &mut notes);
    note_dropped(lost_marks, &mut notes);
    let mut thread = rules::thread(&model, messages, &mut notes);
    rules::drop_unanswered(&mut thread, prefill, &mut notes);
    for (at, message) in &mut thread {
        notes.turn_to(*at);
        mark_points(message, &marks, &mut notes);
    }
    thread.retain(|(_, message)| !message.content.is_empty());
    results_first(&mut thread, KINDS, &mut notes);
    only_results(&mut thread, &model, &mut notes);
    merge_neighbours(&mut thread, &mut notes);
    text_beside_documents(&mut thread, &mut notes);
    let ending = Ending {
        at: end,
        stays: false,
        prefill,
        refuses_reasoning: model.family.is_claude && does_not_think(thinking_type(&request.extra)),
    };
    fit_end(&mut thread, &ending, KINDS, &mut notes);
    begin_with_user(&mut thread, end, |_| model.family.begins_with_answer, &mut notes);
    let parts = (&mut *tools, &mut *system, &mut thread);
    cache::fit(parts, &marks, request.cache, &mut notes);
    let body = assemble(&request, options, (&system, &tools, &thread), &mut notes);
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// Declares the tools that the thread calls if the request declares none, because the provider
/// demands declarations.
fn declare_called(tools: &mut Vec<ToolSpec>, thread: &Thread, notes: &mut Notes) {
    if !tools.is_empty() {
        return;
    }
    let calls = thread.iter().flat_map(|(_, message)| message.tool_uses());
    let called: BTreeSet<&Text> = calls.map(|call| &call.name).collect();
    for name in called {
        notes.note(Change::ToolDeclared { name: name.clone() });
        let schema = Object::typed("object").into_json();
        tools.push(ToolSpec::new(name.clone(), "", schema));
    }
}

fn assemble(
    request: &Request,
    options: &EncodeOptions,
    (system, tools, thread): (&[Message], &[ToolSpec], &Thread),
    notes: &mut Notes,
) -> Tree {
    let mut body = Object::default();
    notes.turn_to(None);
    // Over HTTP the address names the model; only bodies of SDKs hold it.
    let named =
        options.model.as_ref().filter(|_| extras::text_mark(NAME, &request.extra, MODEL).is_some());
    body.set_some(MODEL, named.cloned());
    let prompt = system.iter().flat_map(|message| blocks(Role::System, &message.content));
    let prompt: Vec<Tree> = prompt.collect();
    if !prompt.is_empty() {
        body.set("system", prompt);
    } else if request.system.is_empty() {
        body.set_some("system", request.extra.get(NAME, mark::SYSTEM).cloned());
    }
    let (may_force, model_fields) = fit_thinking(request, thread, notes);
    let messages = thread.iter().map(|(_, it)| message(it));
    body.set("messages", Tree::Array(messages.collect()));
    params::write(&mut body, request, notes);
    let tools = tools.iter().flat_map(tool).collect();
    params::write_tools(&mut body, request, tools, may_force, notes);
    let rest = notes.own_fields(&request.extra).filter(|(key, json)| {
        let is_section = ["inferenceConfig", "toolConfig"].contains(key) && json.is_object();
        !is_section && (*key != MODEL_FIELDS || model_fields.is_none())
    });
    add_rest(&mut body, rest);
    body.set_some(MODEL_FIELDS, model_fields.filter(|fields| fields.len() > 0));
    body.into()
}

/// Makes thinking with a fixed budget legal: it may not force a tool, and the provider refuses it
/// if a tool loop or an answer at the end has no reasoning. Returns whether a tool may be forced,
/// and, if thinking had to be left out, the remaining fields for the model.
fn fit_thinking(request: &Request, thread: &Thread, notes: &mut Notes) -> (bool, Option<Object>) {
    let fields = request.extra.get(NAME, MODEL_FIELDS).map(Json::as_str).and_then(Fields::parse);
    let thinks = thinks_manually(thinking_type(&request.extra));
    let Some(mut fields) = fields.filter(|_| thinks) else { return (true, None) };
    if !loop_has_no_reasoning(thread, KINDS) {
        return (false, None);
    }
    for key in THINKING {
        if fields.take(key).is_some() {
            notes.drop_parameter(key);
        }
    }
    (true, Some(fields.tree()))
}

pub(super) fn message(message: &Message) -> Tree {
    let mut object = Object::of("role", message.role.as_str())
        .with("content", blocks(message.role, &message.content));
    add_rest(&mut object, message.extra.of(NAME));
    object.into()
}

/// Writes the blocks, each followed by its cache point if it is marked.
pub(super) fn blocks(role: Role, content: &[ContentBlock]) -> Vec<Tree> {
    let mut written = Vec::with_capacity(content.len());
    for it in content {
        written.push(block(role, it));
        written.extend(cache::mark(it, NAME, mark::CACHE_POINT).map(Tree::Raw));
    }
    written
}

/// Returns a tool, followed by its cache point if it is marked.
pub(super) fn tool(tool: &ToolSpec) -> impl Iterator<Item = Tree> + use<> {
    let mark = tool.extra.get(NAME, mark::CACHE_POINT).cloned();
    std::iter::once(specification(tool)).chain(mark.map(Tree::Raw))
}

fn specification(tool: &ToolSpec) -> Tree {
    if !tool.input_schema.is_object() {
        return own_object(NAME, &tool.extra).into();
    }
    let mut spec = Object::of("name", tool.name.clone());
    spec.set_unless_empty("description", &tool.description);
    let schema = typed_schema(tool, NAME, mark::SCHEMA);
    spec.set("inputSchema", Object::of("json", schema));
    finish("toolSpec", spec, &tool.extra)
}

fn block(role: Role, block: &ContentBlock) -> Tree {
    match block {
        blocks!(text) => {
            wire_text(role, block).map_or(Tree::Null, |(text, extra)| text_block(text, extra))
        }
        ContentBlock::Image(image) => {
            finish("image", media::write(&image.source, &image.extra), &image.extra)
        }
        ContentBlock::Document(document) => {
            let name = document.title.clone().unwrap_or_else(|| "document".into());
            let source = media::write(&document.source, &document.extra);
            let mut inner = Object::of("name", name).and(source);
            inner.set_some("context", document.context.clone());
            finish("document", inner, &document.extra)
        }
        ContentBlock::Thinking(thinking) => {
            let mut parts = Object::of("text", thinking.text.clone());
            parts.set_some("signature", thinking.signature.clone());
            let parts = parts.and(reopen(thinking.extra.get(NAME, "reasoningText")));
            let inner = Object::of("reasoningText", parts);
            finish("reasoningContent", inner, &thinking.extra)
        }
        ContentBlock::RedactedThinking(redacted) => {
            let inner = Object::of("redactedContent", redacted.data.clone());
            finish("reasoningContent", inner, &redacted.extra)
        }
        ContentBlock::ToolUse(call) => {
            finish("toolUse", call_of(&call.id, &call.name, (&call.input).into()), &call.extra)
        }
        ContentBlock::ServerToolUse(call) => {
            let kind = call.extra.get(NAME, mark::TYPE).cloned().map(Tree::Raw);
            let inner = call_of(&call.id, &call.name, call.input.clone().into());
            let inner = inner.with("type", kind.unwrap_or(Tree::Word("server_tool_use")));
            finish("toolUse", inner, &call.extra)
        }
        ContentBlock::ToolResult(result) => {
            finish("toolResult", tool_result(result), &result.extra)
        }
        ContentBlock::ServerToolResult(result) => {
            let inner = Object::of("toolUseId", result.tool_use_id.clone());
            let mut inner = inner.with("content", result.content.clone());
            let is_typed = result.kind != RESULT || result.extra.get(NAME, mark::TYPE).is_some();
            inner.set_some("type", is_typed.then(|| result.kind.clone()));
            finish("toolResult", inner, &result.extra)
        }
        ContentBlock::Opaque(opaque) if cache::mark(block, NAME, mark::CACHE_POINT).is_some() => {
            let mut unmarked = reopen(Some(&opaque.value));
            unmarked.remove(mark::CACHE_POINT);
            unmarked.into()
        }
        ContentBlock::Opaque(opaque) => opaque.value.clone().into(),
    }
}

/// Writes a text. With unchanged citations or guard it is written in these; one that was read as
/// JSON is written as JSON while it is valid.
fn text_block(text: Text, extra: &Extra) -> Tree {
    let mut object = Object::default();
    let wrap = WRAPS.into_iter().find(|key| extra.get(NAME, key).is_some());
    let came_as_json = extra.get(NAME, mark::JSON).is_some();
    if wrap.is_none() {
        match Json::parse(&text).ok().filter(|_| came_as_json) {
            Some(json) => object.set("json", json),
            None => object.set("text", text),
        }
    }
    add_rest(&mut object, extra.of(NAME));
    object.into()
}

fn call_of(id: &Text, name: &Text, input: Tree) -> Object {
    let object = Object::of("toolUseId", id.clone());
    object.with("name", name.clone()).with("input", input)
}

fn tool_result(result: &ToolResult) -> Object {
    let mut inner = Object::of("toolUseId", result.tool_use_id.clone())
        .with("content", blocks(Role::User, &result.content));
    let spelled = result.extra.get(NAME, mark::STATUS).cloned().map(Tree::Raw);
    let status = if result.is_error { Some(Tree::Word("error")) } else { spelled };
    inner.set_some("status", status);
    inner
}

/// Returns the block of this key, with the unknown fields in it and beside it.
fn finish(key: &'static str, mut inner: Object, extra: &Extra) -> Tree {
    add_rest(&mut inner, extra.of(NAME));
    Object::of(key, inner).and(reopen(extra.get(NAME, mark::BESIDE))).into()
}
