//! Calls and results that the agent logged without an id.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::lines::{Imported, text};

/// Gives an id to each call without one, and the ids of such calls to the results without one, in
/// their order: a call and its result cannot be matched otherwise.
pub(super) fn name(imported: &mut Imported) {
    let mut calls = Calls::default();
    for message in &mut imported.messages {
        match message.value.get_mut("content") {
            Some(Value::Array(blocks)) => blocks.iter_mut().for_each(|block| calls.name(block)),
            _ => calls.name(&mut message.value),
        }
    }
}

/// The calls that were given an id and have no result yet.
#[derive(Default)]
struct Calls {
    count: usize,
    open: VecDeque<String>,
}

impl Calls {
    fn name(&mut self, block: &mut Value) {
        let (field, is_call) = match text(block, "type") {
            "tool_use" => ("id", true),
            "tool_result" => ("tool_use_id", false),
            "function_call" | "custom_tool_call" => ("call_id", true),
            "function_call_output" | "custom_tool_call_output" => ("call_id", false),
            _ => return,
        };
        if !text(block, field).is_empty() {
            return;
        }
        let id = if is_call {
            self.count += 1;
            let id = format!("imported_{}", self.count);
            self.open.push_back(id.clone());
            Some(id)
        } else {
            self.open.pop_front()
        };
        if let (Some(id), Some(fields)) = (id, block.as_object_mut()) {
            fields.insert(field.to_owned(), json!(id));
        }
    }
}
