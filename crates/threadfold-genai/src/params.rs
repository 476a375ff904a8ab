//! Converting tools and parameters of a body to genai's types.

use genai::chat::{ChatOptions, Tool, ToolChoice, ToolName};
use serde_json::{Map, Value};
use threadfold::wire::Change;

use crate::{
    lift_anthropic::cache_control,
    notes::{Notes, object, take_text, text},
    target::Dialect,
};

/// Returns the tools. If genai has no form for one of them, all are passed on unchanged, provided
/// that the adapter can send them so.
pub(crate) fn tools(
    tools: Vec<Value>,
    dialect: Dialect,
    options: &mut ChatOptions,
    notes: &mut Notes,
) -> Option<Vec<Tool>> {
    if tools.is_empty() {
        return None;
    }
    let lifted: Vec<Option<Tool>> = tools.iter().map(|tool| lift(tool, dialect)).collect();
    if dialect.takes_parameters() && lifted.iter().any(Option::is_none) {
        set_extra(options, "tools", Value::Array(tools));
        return None;
    }
    for _ in lifted.iter().filter(|tool| tool.is_none()) {
        notes.drop_block("tool", "genai has no form for it");
    }
    Some(lifted.into_iter().flatten().collect()).filter(|tools: &Vec<Tool>| !tools.is_empty())
}

/// Returns a tool in genai's types; `None` if something would be lost.
fn lift(tool: &Value, dialect: Dialect) -> Option<Tool> {
    let mut fields = tool.as_object()?.clone();
    let kind = take_text(&mut fields, "type");
    let schema = if dialect == Dialect::Anthropic {
        if kind.is_some_and(|kind| kind != "custom") {
            return None;
        }
        "input_schema"
    } else {
        if kind.as_deref() != Some("function") {
            return None;
        }
        fields = object(fields.remove("function")?);
        "parameters"
    };
    // genai treats a tool of this name as the provider's own.
    let name = take_text(&mut fields, "name").filter(|name| name != "web_search")?;
    let mut lifted = Tool::new(ToolName::Custom(name));
    lifted.description = Some(take_text(&mut fields, "description").unwrap_or_default());
    lifted.schema = fields.remove(schema);
    lifted.strict = fields.remove("strict").and_then(|strict| strict.as_bool());
    lifted.cache_control = fields.remove("cache_control").and_then(|mark| cache_control(&mark));
    // genai would rewrite a strict schema.
    (fields.is_empty() && lifted.strict != Some(true)).then_some(lifted)
}

/// Sets the parameters.
pub(crate) fn options(
    mut body: Map<String, Value>,
    dialect: Dialect,
    options: &mut ChatOptions,
    notes: &mut Notes,
) {
    for key in ["model", "stream", "stream_options"] {
        body.remove(key);
    }
    let max = ["max_tokens", "max_completion_tokens"].iter().filter_map(|key| body.remove(*key));
    let max = max.filter_map(|max| max.as_u64()).last();
    options.max_tokens = max.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
    options.temperature = body.remove("temperature").and_then(|value| value.as_f64());
    if let Some(choice) = body.remove("tool_choice") {
        options.tool_choice = tool_choice(&choice);
        if options.tool_choice.is_none() {
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    for (key, value) in body {
        if dialect.takes_parameters() {
            set_extra(options, &key, value);
        } else {
            notes.note(Change::ParameterDropped { name: key.into() });
        }
    }
}

/// Returns a tool choice of either dialect in genai's types; `None` if something would be lost.
fn tool_choice(choice: &Value) -> Option<ToolChoice> {
    if let Some(word) = choice.as_str() {
        return named(word);
    }
    match (text(choice, "type")?, choice.as_object()?.len()) {
        (word, 1) => named(word),
        ("tool", 2) => text(choice, "name").map(ToolChoice::tool),
        ("function", 2) => text(choice.get("function")?, "name").map(ToolChoice::tool),
        _ => None,
    }
}

fn named(word: &str) -> Option<ToolChoice> {
    match word {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "any" | "required" => Some(ToolChoice::Required),
        _ => None,
    }
}

fn set_extra(options: &mut ChatOptions, key: &str, value: Value) {
    let extra = options.extra_body.get_or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(extra) = extra {
        extra.insert(key.to_owned(), value);
    }
}
