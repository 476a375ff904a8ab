//! Writing what is legal: messages, system prompt and tools.

use super::{
    blocks::RESULT,
    forms::{self, BESIDE, NAME},
    media::{self, WRAPS},
    normal::MARK,
};
use crate::{
    cache,
    json::{Object, Tree},
    schemas::typed_schema,
    texts::wire_text,
};
use threadfold_core::message::{
    ContentBlock, Extra, Json, Message, Role, Text, ToolInput, ToolResult, ToolSpec,
};

pub(super) fn message(message: &Message) -> Tree {
    let mut object = Object::default()
        .with("role", message.role.as_str())
        .with("content", blocks(message.role, &message.content));
    forms::add_rest(&mut object, message.extra.of(NAME));
    object.into()
}

pub(super) fn blocks(role: Role, content: &[ContentBlock]) -> Vec<Tree> {
    let mut written = Vec::with_capacity(content.len());
    for it in content {
        let mark = cache::mark(it, NAME, MARK);
        if matches!(it, ContentBlock::Opaque(_)) && mark.is_some() {
            let mut unmarked = it.clone();
            cache::set(&mut unmarked, NAME, MARK, None);
            written.push(block(role, &unmarked));
        } else {
            written.push(block(role, it));
        }
        written.extend(mark.map(Tree::Raw));
    }
    written
}

/// Returns a tool, and the cache point after it if it is marked.
pub(super) fn tool(tool: &ToolSpec) -> impl Iterator<Item = Tree> + use<> {
    let mark = tool.extra.get(NAME, MARK).cloned();
    std::iter::once(specification(tool)).chain(mark.map(Tree::Raw))
}

fn specification(tool: &ToolSpec) -> Tree {
    if !tool.input_schema.is_object() {
        let mut object = Object::default();
        forms::add_rest(&mut object, tool.extra.of(NAME));
        return object.into();
    }
    let mut spec = Object::default().with("name", tool.name.clone());
    let description = Some(&tool.description).filter(|text| !text.is_empty());
    spec.set_some("description", description.cloned());
    let schema = typed_schema(tool, NAME, forms::SCHEMA);
    spec.set("inputSchema", Object::default().with("json", schema));
    finish("toolSpec", spec, &tool.extra)
}

fn block(role: Role, block: &ContentBlock) -> Tree {
    match block {
        ContentBlock::Text(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_) => {
            wire_text(role, block).map_or(Tree::Null, |(text, extra)| text_block(text, extra))
        }
        ContentBlock::Image(image) => {
            finish("image", media::write(&image.source, &image.extra), &image.extra)
        }
        ContentBlock::Document(document) => {
            let name = document.title.clone().unwrap_or_else(|| "document".into());
            let mut inner = Object::default().with("name", name);
            inner.extend_unset(media::write(&document.source, &document.extra));
            inner.set_some("context", document.context.clone());
            finish("document", inner, &document.extra)
        }
        ContentBlock::Thinking(thinking) => {
            let mut parts = Object::default().with("text", thinking.text.clone());
            parts.set_some("signature", thinking.signature.clone());
            parts.extend_unset(forms::reopen(thinking.extra.get(NAME, "reasoningText")));
            let inner = Object::default().with("reasoningText", parts);
            finish("reasoningContent", inner, &thinking.extra)
        }
        ContentBlock::RedactedThinking(redacted) => {
            let inner = Object::default().with("redactedContent", redacted.data.clone());
            finish("reasoningContent", inner, &redacted.extra)
        }
        ContentBlock::ToolUse(call) => {
            let input = match &call.input {
                ToolInput::Json(json) => Tree::from(json.clone()),
                ToolInput::Text(text) => text.clone().into(),
            };
            finish("toolUse", call_of(&call.id, &call.name, input), &call.extra)
        }
        ContentBlock::ServerToolUse(call) => {
            let kind = call.extra.get(NAME, forms::TYPE).cloned().map(Tree::Raw);
            let inner = call_of(&call.id, &call.name, call.input.clone().into());
            let inner = inner.with("type", kind.unwrap_or(Tree::Word("server_tool_use")));
            finish("toolUse", inner, &call.extra)
        }
        ContentBlock::ToolResult(result) => {
            finish("toolResult", tool_result(result), &result.extra)
        }
        ContentBlock::ServerToolResult(result) => {
            let inner = Object::default().with("toolUseId", result.tool_use_id.clone());
            let mut inner = inner.with("content", result.content.clone());
            let is_typed = result.kind != RESULT || result.extra.get(NAME, forms::TYPE).is_some();
            inner.set_some("type", is_typed.then(|| result.kind.clone()));
            finish("toolResult", inner, &result.extra)
        }
        ContentBlock::Opaque(opaque) => opaque.value.clone().into(),
    }
}

/// A text that came with its citations, or guarded, goes back with them; one that came as JSON goes
/// back so while it is some.
fn text_block(text: Text, extra: &Extra) -> Tree {
    let mut object = Object::default();
    let wrap = WRAPS.into_iter().find(|key| extra.get(NAME, key).is_some());
    let came_as_json = extra.get(NAME, forms::JSON).is_some();
    if wrap.is_none() {
        match Json::parse(&text).ok().filter(|_| came_as_json) {
            Some(json) => object.set("json", json),
            None => object.set("text", text),
        }
    }
    forms::add_rest(&mut object, extra.of(NAME));
    object.into()
}

fn call_of(id: &Text, name: &Text, input: Tree) -> Object {
    let object = Object::default().with("toolUseId", id.clone());
    object.with("name", name.clone()).with("input", input)
}

fn tool_result(result: &ToolResult) -> Object {
    let mut inner = Object::default()
        .with("toolUseId", result.tool_use_id.clone())
        .with("content", blocks(Role::User, &result.content));
    let spelled = result.extra.get(NAME, forms::STATUS).cloned().map(Tree::Raw);
    let status = if result.is_error { Some(Tree::Word("error")) } else { spelled };
    inner.set_some("status", status);
    inner
}

/// Returns the block of this key, with the unknown fields in it and beside it.
fn finish(key: &'static str, mut inner: Object, extra: &Extra) -> Tree {
    forms::add_rest(&mut inner, extra.of(NAME));
    let mut outer = Object::default().with(key, inner);
    outer.extend_unset(forms::reopen(extra.get(NAME, BESIDE)));
    outer.into()
}
