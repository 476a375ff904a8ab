//! Writing what is legal: messages, system prompt and tools.

use super::{
    forms::{self, NAME},
    media,
};
use crate::{
    json::{Object, Tree},
    schemas::typed_schema,
    texts::wire_text,
};
use threadfold_core::message::{
    ContentBlock, Extra, Json, Message, Role, Text, ToolInput, ToolResult, ToolSpec,
};

pub(super) fn message(message: &Message) -> Tree {
    let blocks = blocks(message.role, &message.content);
    let content = content(blocks, forms::came_as_string(&message.extra));
    let object = Object::default().with("role", message.role.as_str()).with("content", content);
    finish(object, &message.extra)
}

/// Returns the system prompt, if there is one.
pub(super) fn system(system: &[Message]) -> Option<Tree> {
    let bodies: Vec<Tree> =
        system.iter().flat_map(|message| blocks(Role::System, &message.content)).collect();
    let as_string = system.iter().all(|message| forms::came_as_string(&message.extra));
    (!bodies.is_empty()).then(|| content(bodies, as_string))
}

pub(super) fn tool(tool: &ToolSpec) -> Tree {
    let mut object = Object::default();
    if tool.input_schema.is_object() {
        object.set("name", tool.name.clone());
        let description = Some(&tool.description).filter(|text| !text.is_empty());
        object.set_some("description", description.cloned());
        forms::set_spelled(&mut object, &tool.extra, "description", forms::DESCRIPTION);
        object.set("input_schema", typed_schema(tool, NAME, forms::INPUT_SCHEMA));
    }
    finish(object, &tool.extra)
}

fn blocks(role: Role, blocks: &[ContentBlock]) -> Vec<Tree> {
    blocks.iter().map(|it| block(role, it)).collect()
}

fn block(role: Role, block: &ContentBlock) -> Tree {
    let (object, extra) = match block {
        ContentBlock::Text(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_) => {
            let Some((text, extra)) = wire_text(role, block) else { return Tree::Null };
            (Object::typed("text").with("text", text), extra)
        }
        ContentBlock::Image(image) => {
            (Object::typed("image").with("source", media::write(&image.source)), &image.extra)
        }
        ContentBlock::Document(document) => {
            let source = media::write(&document.source);
            let mut object = Object::typed("document").with("source", source);
            object.set_some("title", document.title.clone());
            object.set_some("context", document.context.clone());
            forms::set_spelled(&mut object, &document.extra, "title", forms::TITLE);
            forms::set_spelled(&mut object, &document.extra, "context", forms::CONTEXT);
            (object, &document.extra)
        }
        ContentBlock::Thinking(thinking) => {
            let mut object = Object::typed("thinking").with("thinking", thinking.text.clone());
            object.set_some("signature", thinking.signature.clone());
            (object, &thinking.extra)
        }
        ContentBlock::RedactedThinking(redacted) => {
            let object = Object::typed("redacted_thinking").with("data", redacted.data.clone());
            (object, &redacted.extra)
        }
        ContentBlock::ToolUse(call) => {
            let input = match &call.input {
                ToolInput::Json(json) => Tree::from(json.clone()),
                ToolInput::Text(text) => text.clone().into(),
            };
            (call_of("tool_use".into(), &call.id, &call.name, input), &call.extra)
        }
        ContentBlock::ServerToolUse(call) => {
            let kind = call.extra.get(NAME, forms::TYPE).cloned().map(Tree::Raw);
            let kind = kind.unwrap_or(Tree::Word("server_tool_use"));
            (call_of(kind, &call.id, &call.name, call.input.clone().into()), &call.extra)
        }
        ContentBlock::ToolResult(result) => (tool_result(result), &result.extra),
        ContentBlock::ServerToolResult(result) => {
            let mut object = Object::default().with("type", result.kind.clone());
            object.set("tool_use_id", result.tool_use_id.clone());
            let had_none = result.extra.get(NAME, forms::CONTENT).is_some();
            if result.content != Json::default() || !had_none {
                object.set("content", result.content.clone());
            }
            (object, &result.extra)
        }
        ContentBlock::Opaque(opaque) => return opaque.value.clone().into(),
    };
    finish(object, extra)
}

fn call_of(kind: Tree, id: &Text, name: &Text, input: Tree) -> Object {
    let object = Object::default().with("type", kind).with("id", id.clone());
    object.with("name", name.clone()).with("input", input)
}

fn tool_result(result: &ToolResult) -> Object {
    let mut object = Object::typed("tool_result").with("tool_use_id", result.tool_use_id.clone());
    let bodies = blocks(Role::User, &result.content);
    if !bodies.is_empty() {
        object.set("content", content(bodies, forms::came_as_string(&result.extra)));
    }
    if result.is_error {
        object.set("is_error", true);
    }
    forms::set_spelled(&mut object, &result.extra, "is_error", forms::IS_ERROR);
    object
}

/// Returns blocks as a content: one string if it came so and can be one, else a list.
fn content(bodies: Vec<Tree>, as_string: bool) -> Tree {
    match bodies.as_slice() {
        [Tree::Object(object)] if as_string && object.len() == 2 => match object.get("text") {
            Some(text) => text.clone(),
            None => Tree::Array(bodies),
        },
        _ => Tree::Array(bodies),
    }
}

fn finish(mut object: Object, extra: &Extra) -> Tree {
    forms::add_rest(&mut object, extra.of(NAME));
    object.into()
}
