//! Writing what stands before the thread: system prompt and tools.

use super::{
    forms::{self, NAME},
    write::Writer,
};
use crate::{
    message::{Message, ToolSpec},
    wire::{
        schemas::typed_schema,
        tree::{Object, Tree},
    },
};

/// Writes the blocks of the system prompt.
pub(super) fn write_system(system: &[Message], writer: &mut Writer) -> Vec<Tree> {
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

/// Writes the tools. Those of other providers have no schema and no form.
pub(super) fn write_tools(tools: &[ToolSpec], writer: &mut Writer) -> Vec<Tree> {
    tools.iter().filter_map(|tool| write_tool(tool, writer)).collect()
}

fn write_tool(tool: &ToolSpec, writer: &mut Writer) -> Option<Tree> {
    let mut object = Object::default();
    if tool.input_schema.is_object() {
        object.set("name", tool.name.clone());
        let description = Some(&tool.description).filter(|text| !text.is_empty());
        object.set_some("description", description.cloned());
        forms::set_spelled(&mut object, &tool.extra, "description", forms::DESCRIPTION);
        object.set("input_schema", typed_schema(tool, NAME, forms::INPUT_SCHEMA));
    } else if tool.extra.codec() != Some(NAME) {
        writer.notes.drop_block("tool", "it has no schema of its input");
        return None;
    }
    forms::add_rest(&mut object, writer.notes.own_fields(&tool.extra));
    Some(object.into())
}
