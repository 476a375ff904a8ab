//! Tool declarations, both ways.

use super::marks::{CODEC, inner, keep, mark, marked, reopen, wire_fields};
use crate::{
    fields::{Fields, items, text},
    notes::Notes,
    openai::{set_parameters, take_described},
    raw::Raw,
    tree::Object,
};
use threadfold_core::message::{Json, Text, ToolSpec};

/// Reads `tools`; `None` if it is not an array of objects, or empty.
pub(super) fn read_all(raw: Raw<'_>) -> Option<Vec<ToolSpec>> {
    let tools: Option<Vec<ToolSpec>> =
        items(raw)?.into_iter().map(|raw| read(raw).or_else(|| read_native(raw))).collect();
    tools.filter(|tools| !tools.is_empty())
}

/// Returns a tool as it is declared; `None` for one that only another provider has, which is noted.
pub(super) fn write(tool: &ToolSpec, notes: &mut Notes) -> Option<Object> {
    if !tool.input_schema.is_object() {
        let foreign = tool.extra.codec().filter(|codec| *codec != CODEC);
        if let Some(codec) = foreign {
            notes.drop_block("tool", &format!("{} is a tool of {codec} only", tool.name));
            return None;
        }
        if !tool.extra.is_empty() {
            return Some(wire_fields(&tool.extra, notes));
        }
    }
    let mut object = wire_fields(&tool.extra, notes);
    object.set("type", "function");
    object.set("function", function(tool));
    Some(object)
}

/// Reads a function.
fn read(raw: Raw<'_>) -> Option<ToolSpec> {
    let mut fields = Fields::of(raw)?;
    if fields.take_text("type")? != "function" {
        return None;
    }
    let mut function = Fields::of(fields.take("function")?)?;
    let name = function.take_text("name")?;
    let mut own = Vec::new();
    if function.get("parameters").is_none() {
        own.push(mark("~parameters", "absent"));
    }
    let (description, input_schema) = take_described(&mut function);
    own.extend(inner("function", &function));
    Some(ToolSpec { name, description, input_schema, extra: keep(&fields, own) })
}

/// Reads a tool of another type. It is kept whole, and has no schema.
fn read_native(raw: Raw<'_>) -> Option<ToolSpec> {
    let fields = Fields::of(raw)?;
    let kind = fields.get("type").and_then(text).unwrap_or_default();
    let body = fields.get(&kind).and_then(Fields::of);
    let field = |key: &str| body.as_ref()?.get(key).or_else(|| fields.get(key)).and_then(text);
    let (name, description) = (field("name"), field("description"));
    Some(ToolSpec {
        name: name.unwrap_or(kind),
        description: description.unwrap_or_default(),
        input_schema: Json::default(),
        extra: keep(&fields, Vec::new()),
    })
}

fn function(tool: &ToolSpec) -> Object {
    let mut function = reopen(tool.extra.get(CODEC, "function"));
    function.set("name", tool.name.clone());
    if !tool.description.is_empty() {
        function.set("description", tool.description.clone());
    }
    // Parameters that are absent or no schema stay so until somebody gives the tool a schema.
    let absent = marked(&tool.extra, "~parameters") == Some(Text::from("absent"));
    let as_it_came = absent || function.get("parameters").is_some();
    set_parameters(tool, as_it_came, &mut function);
    function
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{notes, tree::Tree};

    #[test]
    fn every_form_of_a_tool_goes_back_as_it_came() {
        for tool in [
            r#"{"type":"function","function":{"name":"f"}}"#,
            r#"{"type":"function","function":{"description":null,"parameters":null,"name":"f"}}"#,
            r#"{"type":"function","function":{"strict":true,"name":"f","parameters":{"b":1,"a":2}}}"#,
            r#"{"type":"function","function":{"description":"","name":"f","parameters":{}}}"#,
            r#"{"type":"function","function":{"name":7}}"#,
            r#"{"type":"custom","custom":{"name":"c","format":{"type":"text"}}}"#,
        ] {
            let list = format!("[{tool}]");
            let (_, mut notes) = notes::prepare(&[], CODEC);
            let read = read_all(serde_json::from_str(&list).unwrap()).unwrap().remove(0);
            let written = Tree::from(write(&read, &mut notes).unwrap()).into_json();
            assert_eq!(
                written.to_value().unwrap(),
                serde_json::from_str::<serde_json::Value>(tool).unwrap()
            );
        }
    }
}
