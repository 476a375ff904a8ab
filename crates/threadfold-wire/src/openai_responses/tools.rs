//! Tool declarations, both ways.

use super::marks::{CODEC, keep, mark, marked, wire_fields};
use crate::{
    fields::{Fields, items, text},
    notes::Notes,
    openai::{set_parameters, take_described},
    raw::Raw,
    tree::Object,
};
use threadfold_core::message::{Json, ToolSpec};

/// Reads `tools`; `None` if it is not an array of objects, or empty.
pub(super) fn read_all(raw: Raw<'_>) -> Option<Vec<ToolSpec>> {
    let tools: Option<Vec<ToolSpec>> =
        items(raw)?.into_iter().map(|raw| read(raw).or_else(|| read_native(raw))).collect();
    tools.filter(|tools| !tools.is_empty())
}

/// Returns a tool as it is declared; `None` for one that only another provider has, which is noted.
pub(super) fn write(tool: &ToolSpec, notes: &mut Notes) -> Option<Object> {
    let own = tool.extra.codec() == Some(CODEC);
    if !tool.input_schema.is_object() {
        if let Some(codec) = tool.extra.codec().filter(|_| !own) {
            notes.drop_block("tool", &format!("{} is a tool of {codec} only", tool.name));
            return None;
        }
        if own && marked(&tool.extra, "~strict").is_none() {
            return Some(wire_fields(&tool.extra, notes));
        }
    }
    let mut object = wire_fields(&tool.extra, notes);
    // A schema that nobody wrote for strict inputs is refused as one: that is what absence means.
    if !own {
        object.set("strict", false);
    }
    object.set("type", "function");
    object.set("name", tool.name.clone());
    if !tool.description.is_empty() {
        object.set("description", tool.description.clone());
    }
    // Parameters that are absent or no schema stay so until somebody gives the tool a schema.
    let absent = marked(&tool.extra, "~parameters").is_some();
    let as_it_came = absent || object.get("parameters").is_some();
    set_parameters(tool, as_it_came, &mut object);
    Some(object)
}

/// The name, if a tool is a custom one, whose input is text.
pub(super) fn is_custom(tool: &ToolSpec) -> bool {
    let kind = tool.extra.get(CODEC, "type").map(Raw::of).and_then(text);
    kind.is_some_and(|kind| kind == "custom")
}

/// Reads a function.
fn read(raw: Raw<'_>) -> Option<ToolSpec> {
    let mut fields = Fields::of(raw)?;
    if fields.take_text("type")? != "function" {
        return None;
    }
    let name = fields.take_text("name")?;
    // There is always a mark, so that a function of this provider is known from one of others.
    let strict = if fields.get("strict").is_none() { "absent" } else { "said" };
    let mut own = vec![mark("~strict", strict)];
    if fields.get("parameters").is_none() {
        own.push(mark("~parameters", "absent"));
    }
    let (description, input_schema) = take_described(&mut fields);
    Some(ToolSpec { name, description, input_schema, extra: keep(&fields, own) })
}

/// Reads a tool of another type. It is kept whole, and has no schema.
fn read_native(raw: Raw<'_>) -> Option<ToolSpec> {
    let fields = Fields::of(raw)?;
    let field = |key: &str| fields.get(key).and_then(text);
    let kind = field("type").unwrap_or_default();
    let name = field("name").or_else(|| field("server_label"));
    Some(ToolSpec {
        name: name.unwrap_or(kind),
        description: field("description").unwrap_or_default(),
        input_schema: Json::default(),
        extra: keep(&fields, Vec::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{notes, tree::Tree};

    #[test]
    fn every_form_of_a_tool_goes_back_as_it_came() {
        for tool in [
            r#"{"type":"function","name":"f"}"#,
            r#"{"description":null,"parameters":null,"type":"function","name":"f","strict":null}"#,
            r#"{"strict":true,"type":"function","name":"f","parameters":{"b":1,"a":2}}"#,
            r#"{"description":"","type":"function","name":"f","parameters":{}}"#,
            r#"{"type":"function","name":7}"#,
            r#"{"type":"custom","name":"c","format":{"type":"text"}}"#,
            r#"{"type":"mcp","server_label":"s","server_url":"https://example.org"}"#,
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

    #[test]
    fn a_tool_of_others_is_not_strict() {
        let tool = ToolSpec::new("f", "", serde_json::json!({"type": "object"}));
        let (_, mut notes) = notes::prepare(&[], CODEC);
        let written = Tree::from(write(&tool, &mut notes).unwrap()).into_json();
        let expected =
            r#"{"strict":false,"type":"function","name":"f","parameters":{"type":"object"}}"#;
        assert_eq!(written.as_str(), expected);
    }
}
