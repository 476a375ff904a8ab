//! Reading and writing tool declarations.
//!
//! `tools` is a list of objects, each with any number of function declarations and of the
//! provider's own tools. Every declaration becomes a tool. The other fields of an object become one
//! more tool, without a schema. Each tool is marked with the number of its object.

use std::collections::HashMap;

use super::marks::*;
use crate::kit::*;
use serde_json::Value;

/// Reads `tools`; `None` if it is not an array of objects, or empty.
pub(super) fn read_all(raw: Raw<'_>) -> Option<Vec<ToolSpec>> {
    let mut tools = Vec::new();
    for (number, raw) in raw.items()?.into_iter().enumerate() {
        let mut fields = fields(raw)?;
        let declared = fields
            .take_as("functionDeclarations", |raw| raw.all(|raw| read_declaration(raw, number)));
        let any = declared.is_some();
        tools.extend(declared.into_iter().flatten());
        if !any || fields.is_marked() || fields.left() > 0 {
            tools.push(native(fields, number));
        }
    }
    Some(tools).filter(|tools| !tools.is_empty())
}

/// Whether a tool is a function of the host.
pub(super) fn is_function(tool: &ToolSpec) -> bool {
    tool.input_schema.is_object() || has_mark(&tool.extra, mark::SCHEMA)
}

/// Returns the list of tools. Other providers' own tools are reported as left out.
pub(super) fn write_all(tools: &[ToolSpec], notes: &mut Notes) -> Vec<Tree> {
    let mut groups: Vec<Group> = Vec::new();
    // The position of each object by its number. Functions without a number share one.
    let mut places: HashMap<Option<Text>, usize> = HashMap::new();
    for tool in tools {
        if !is_function(tool) && !is_own(&tool.extra) {
            let codec = tool.extra.codec().unwrap_or("another provider");
            notes.drop_block("tool", &format!("{} is a tool of {codec} only", tool.name));
            continue;
        }
        let place = *places.entry(marked(&tool.extra, mark::GROUP)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group::default());
        }
        let Some(group) = groups.get_mut(place) else { continue };
        if is_function(tool) {
            group.declared.push(declaration(tool, notes).into());
        } else {
            group.rest = wire_fields(&tool.extra, notes);
            group.extra = tool.extra.clone();
        }
    }
    groups.into_iter().map(Group::into_tree).collect()
}

/// An object of the list.
#[derive(Default)]
struct Group {
    declared: Vec<Tree>,
    /// The fields of the object other than functions, and its marks.
    rest: Object,
    extra: Extra,
}

impl Group {
    fn into_tree(self) -> Tree {
        let mut object = self.rest;
        if !self.declared.is_empty() {
            object.set("functionDeclarations", self.declared);
        }
        respell(&mut object, &self.extra);
        object.into()
    }
}

fn read_declaration(raw: Raw<'_>, group: usize) -> Option<ToolSpec> {
    let mut fields = fields(raw)?;
    let name = fields.take_text("name")?;
    fields.add_word(mark::GROUP, &group.to_string());
    let mut keys = ["parametersJsonSchema", "parameters"].into_iter();
    let key = keys.find(|key| fields.get(key).is_some_and(Raw::is_object));
    let schema = key.and_then(|key| fields.take_json(key));
    fields.add_word(mark::SCHEMA, key.unwrap_or("absent"));
    let ours = schema.as_ref().and_then(json_schema);
    if let (Some(_), Some(schema_as_read)) = (&ours, &schema) {
        fields.add(mark::CAME, schema_as_read.clone());
    }
    let description =
        fields.take_as("description", |raw| raw.text().filter(|text| !text.is_empty()));
    Some(ToolSpec {
        name,
        description: description.unwrap_or_default(),
        input_schema: ours.or(schema).unwrap_or_else(no_parameters),
        extra: fields.keep(CODEC),
    })
}

/// Returns the fields of an object other than functions, as a tool of the provider.
fn native(mut fields: Fields<'_>, group: usize) -> ToolSpec {
    let name = Text::from(fields.rest().next().map_or("", |(key, _)| key));
    fields.add_word(mark::GROUP, &group.to_string());
    ToolSpec { extra: fields.keep(CODEC), ..ToolSpec::new(name, "", Json::default()) }
}

fn declaration(tool: &ToolSpec, notes: &mut Notes) -> Object {
    let mut object = wire_fields(&tool.extra, notes);
    object.set("name", tool.name.clone());
    object.set_unless_empty("description", &tool.description);
    let schema_as_read = tool.extra.get(CODEC, mark::CAME);
    let untouched = schema_as_read
        .filter(|schema_as_read| json_schema(schema_as_read).as_ref() == Some(&tool.input_schema));
    let schema = untouched.unwrap_or(&tool.input_schema);
    match marked(&tool.extra, mark::SCHEMA).as_deref() {
        // A tool that was read without a schema gets one only if the host sets it.
        Some("absent") if *schema == no_parameters() => {}
        Some("parameters") if schema_as_read.is_none() || untouched.is_some() => {
            object.set("parameters", schema.clone());
        }
        Some(_) | None => object.set("parametersJsonSchema", schema.clone()),
    }
    respell(&mut object, &tool.extra);
    object
}

/// Returns a schema of this dialect, whose types are in upper case, with types in lower case;
/// `None` if nothing changes.
fn json_schema(schema: &Json) -> Option<Json> {
    let mut value = schema.to_value().ok()?;
    lower_types(&mut value).then(|| value.into())
}

/// Writes the types of a schema in lower case, and returns whether any changed. The depth of a
/// parsed value is bounded.
fn lower_types(schema: &mut Value) -> bool {
    const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];
    let Value::Object(fields) = schema else { return false };
    let mut changed = false;
    for (key, value) in fields {
        changed |= match (key.as_str(), value) {
            ("type", Value::String(word)) if TYPES.contains(&word.as_str()) => {
                *word = word.to_ascii_lowercase();
                true
            }
            ("properties", Value::Object(all)) => {
                all.values_mut().fold(false, |any, one| lower_types(one) | any)
            }
            ("anyOf" | "prefixItems", Value::Array(all)) => {
                all.iter_mut().fold(false, |any, one| lower_types(one) | any)
            }
            ("items" | "additionalProperties", one) => lower_types(one),
            (_, _) => false,
        };
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    fn again(tools: &str, change: impl FnOnce(&mut Vec<ToolSpec>)) -> Value {
        let raw = serde_json::from_str(tools).unwrap();
        let mut read = read_all(raw).unwrap();
        change(&mut read);
        let (_, mut notes) = notes::prepare(&[], CODEC);
        Tree::from(write_all(&read, &mut notes)).into_json().to_value().unwrap()
    }

    #[test]
    fn every_form_of_a_tool_goes_back_as_it_came() {
        for tools in [
            r#"[{"functionDeclarations":[{"name":"f"},{"name":"g","description":""}]}]"#,
            r#"[{"function_declarations":[{"name":"f","parameters_json_schema":{"b":1.0}}]}]"#,
            r#"[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING","enum":["OBJECT"]}}}}],"googleSearch":{}},{"codeExecution":{}}]"#,
            r#"[{"functionDeclarations":[]},{},{"functionDeclarations":[{"name":7}]}]"#,
            r#"[{"functionDeclarations":[{"name":"f","parameters":null,"behavior":"BLOCKING"}]}]"#,
        ] {
            let schema_as_read: Value = serde_json::from_str(tools).unwrap();
            assert_eq!(again(tools, |_| {}), schema_as_read);
        }
    }

    #[test]
    fn a_changed_schema_goes_where_json_schemas_go() {
        let tools = r#"[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]"#;
        let schema = serde_json::json!({"type": "object", "additionalProperties": false});
        let written = again(tools, |tools| {
            assert_eq!(tools[0].input_schema.as_str(), r#"{"type":"object"}"#);
            tools[0].input_schema = (&schema).into();
        });
        assert_eq!(written[0]["functionDeclarations"][0]["parametersJsonSchema"], schema);
    }

    #[test]
    fn new_functions_share_one_object() {
        let tools = r#"[{"googleSearch":{}}]"#;
        let written = again(tools, |tools| {
            for name in ["f", "g"] {
                tools.push(ToolSpec::new(name, "", serde_json::json!({"type": "object"})));
            }
        });
        assert_eq!(written[1]["functionDeclarations"][1]["name"], "g");
    }
}
