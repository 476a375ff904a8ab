//! Writing what stands before the thread: system prompt and tools.

use std::collections::BTreeSet;

use super::{
    forms::{self, NAME},
    write::Writer,
};
use crate::{
    message::{ContentBlock, Message, Request, Text, ToolSpec},
    wire::{
        contract::Change,
        schemas::typed_schema,
        tree::{Object, Tree},
    },
};

/// Writes the blocks of the system prompt.
pub(super) fn write_system(system: &[Message], writer: &mut Writer<'_>) -> Vec<Tree> {
    let mut bodies = Vec::new();
    for message in system {
        // A system prompt is a list of blocks here, so nothing beside them has a place. What this
        // codec itself keeps there are notes on forms.
        writer.notes.own_fields(&message.extra).for_each(drop);
        for block in &message.content {
            if block.as_text().is_some_and(|text| text.is_blank()) {
                writer.notes.drop_block(block.kind(), "blank text");
            } else {
                bodies.extend(writer.system_block(block));
            }
        }
    }
    bodies
}

/// Writes the tools. Those of other providers have no schema and no form. Where the thread calls
/// tools and none is declared, those that it calls are: the provider demands it.
pub(super) fn write_tools(
    request: &Request,
    messages: &[(usize, Message)],
    writer: &mut Writer<'_>,
) -> Vec<Tree> {
    let mut tools: Vec<Tree> =
        request.tools.iter().filter_map(|tool| write_tool(tool, writer)).collect();
    if tools.iter().any(is_tool) {
        return tools;
    }
    let called: BTreeSet<&Text> =
        messages.iter().flat_map(|(_, message)| message.content.iter()).filter_map(tool).collect();
    for name in called {
        writer.notes.note(Change::ToolDeclared { name: name.clone() });
        let schema = Object::default().with("json", Object::typed("object"));
        let spec = Object::default().with("name", name.clone()).with("inputSchema", schema);
        tools.push(Object::default().with("toolSpec", spec).into());
    }
    // A cache point alone is no tool.
    if tools.iter().any(is_tool) { tools } else { Vec::new() }
}

/// The tool of a call that is written.
fn tool(block: &ContentBlock) -> Option<&Text> {
    if let ContentBlock::ToolUse(call) = block { Some(&call.name) } else { None }
}

/// Whether it is a tool, not a cache point among them.
fn is_tool(tool: &Tree) -> bool {
    !matches!(tool, Tree::Object(object) if object.get("cachePoint").is_some())
}

fn write_tool(tool: &ToolSpec, writer: &mut Writer<'_>) -> Option<Tree> {
    if tool.input_schema.is_object() {
        let mut spec = Object::default().with("name", tool.name.clone());
        spec.set_some(
            "description",
            Some(&tool.description).filter(|text| !text.is_empty()).cloned(),
        );
        spec.set(
            "inputSchema",
            Object::default().with("json", typed_schema(tool, NAME, forms::SCHEMA)),
        );
        return Some(writer.finish("toolSpec", spec, &tool.extra));
    }
    if tool.extra.codec() != Some(NAME) {
        writer.notes.drop_block("tool", "it has no schema of its input");
        return None;
    }
    let mut object = Object::default();
    forms::add_rest(&mut object, tool.extra.of(NAME));
    Some(object.into())
}
