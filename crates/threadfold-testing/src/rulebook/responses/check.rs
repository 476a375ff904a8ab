//! Whether a request is legal.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::{
    bound::Bound,
    openai::{is_own, version, wrong},
    rule::{Found, Violation},
    vendor::{Incoming, items, word},
};
use super::{items::kind_of, rules};

/// The fields of a body: ResponseCreateParams and ResponseCompactParams, openai 3.57.0.
#[rustfmt::skip]
const FIELDS: [&str; 36] = [
    "access_programs", "background", "background_options", "context_management", "conversation",
    "image", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
    "model", "moderation", "parallel_tool_calls", "previous_response_id", "prompt",
    "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
    "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text",
    "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user", "generate",
    "client_metadata",
];

/// The types of items whose calls and outputs are paired.
const CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
];

/// The items of a request, each with its type.
struct Looked<'a> {
    request: &'a Incoming<'a>,
    bound: &'a Bound,
    items: Vec<(&'a str, &'a Value)>,
}

/// The first rule that a request breaks.
pub(super) fn violation(request: &Incoming<'_>, bound: &Bound) -> Found {
    let all = items(request.body.get("input"));
    let items = all.map(|item| (kind_of(item), item)).collect();
    let looked = Looked { request, bound, items };
    let checks: [fn(&Looked<'_>) -> Found; 9] =
        [fields, known, ids, pairs, reasoning, encrypted, trigger, tools, parameters];
    checks.iter().find_map(|check| check(&looked))
}

fn fields(looked: &Looked<'_>) -> Found {
    let request = looked.request;
    let fields = request.body.as_object().filter(|_| is_own(&request.model))?;
    let strange = fields.keys().find(|key| !FIELDS.contains(&key.as_str()))?;
    wrong(&rules::FIELDS, strange.clone(), format!("Unknown parameter: '{strange}'."))
}

fn known(looked: &Looked<'_>) -> Found {
    let body = &looked.request.body;
    let is_input = body.get("input").is_some_and(|input| input.is_string() || input.is_array());
    if !is_input && body.get("previous_response_id").is_none() {
        let message = "Missing required parameter: 'input'.";
        return wrong(&rules::ITEMS, "input", message);
    }
    for (index, (kind, item)) in looked.items.iter().enumerate() {
        let role = word(item, "role");
        if *kind == "message" && !matches!(role, "user" | "assistant" | "system" | "developer") {
            let message = format!(
                "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', \
                 and 'user'."
            );
            return wrong(&rules::ITEMS, format!("input[{index}].role"), message);
        }
        if kind.is_empty() {
            let message = format!("Missing required parameter: 'input[{index}].type'.");
            return wrong(&rules::ITEMS, format!("input[{index}].type"), message);
        }
        // A message of the assistant has the types of an output, every other one those of an input.
        let parts = items(item.get("content")).filter(|_| *kind == "message");
        for (place, part) in parts.enumerate() {
            let is_output = matches!(word(part, "type"), "output_text" | "refusal");
            if is_output != (role == "assistant") {
                let found = word(part, "type");
                let param = format!("input[{index}].content[{place}]");
                let message = format!("Invalid value: '{found}' in a message of {role}.");
                return wrong(&rules::ITEMS, param, message);
            }
        }
    }
    None
}

fn ids(looked: &Looked<'_>) -> Found {
    let mut seen = HashSet::new();
    for (index, (kind, item)) in looked.items.iter().enumerate() {
        let id = word(item, "id");
        let prefix = match *kind {
            "message" => "msg",
            "function_call" => "fc",
            "reasoning" => "rs",
            "custom_tool_call" => "ctc",
            _ => "",
        };
        if !id.is_empty() && !id.starts_with(prefix) {
            let message = format!(
                "Invalid 'input[{index}].id': '{id}'. Expected an ID that begins with '{prefix}'."
            );
            return wrong(&rules::ID_PREFIX, format!("input[{index}].id"), message);
        }
        if !id.is_empty() && !seen.insert(id) {
            let message = format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try \
                 again."
            );
            return wrong(&rules::UNIQUE, "input", message);
        }
        let is_paired = CALLS.contains(kind) || kind.ends_with("_call_output");
        let length = word(item, "call_id").chars().count();
        if is_paired && !(1..=64).contains(&length) {
            let message = format!(
                "Invalid 'input[{index}].call_id': string too long. Expected a string with maximum \
                 length 64, but got a string with length {length} instead."
            );
            return wrong(&rules::CALL_ID, format!("input[{index}].call_id"), message);
        }
    }
    None
}

fn pairs(looked: &Looked<'_>) -> Found {
    let mut calls: HashMap<&str, bool> = HashMap::new();
    let mut order = Vec::new();
    for (kind, item) in &looked.items {
        let id = word(item, "call_id");
        if CALLS.contains(kind) {
            calls.insert(id, false);
            order.push(id);
        } else if kind.ends_with("_call_output") {
            match calls.get_mut(id) {
                None => {
                    let message =
                        format!("No tool call found for function call output with call_id {id}.");
                    return wrong(&rules::ORPHANS, "input", message);
                }
                Some(true) => {
                    let message = format!("Duplicate function call output with call_id {id}.");
                    return wrong(&rules::ONE_OUTPUT, "input", message);
                }
                Some(answered) => *answered = true,
            }
        }
    }
    let open = order.into_iter().find(|id| calls.get(id) == Some(&false))?;
    wrong(&rules::OUTPUTS, "input", format!("No tool output found for function call {open}."))
}

fn reasoning(looked: &Looked<'_>) -> Found {
    let led = |kind: &str, item: &Value| match kind {
        "message" => word(item, "role") == "assistant",
        "reasoning" | "compaction" => true,
        kind => CALLS.contains(&kind) || kind.ends_with("_call"),
    };
    for (index, (kind, item)) in looked.items.iter().enumerate() {
        let next = looked.items.get(index + 1);
        if *kind == "reasoning" && !next.is_some_and(|(kind, item)| led(kind, item)) {
            let message = format!(
                "Item '{}' of type 'reasoning' was provided without its required following item.",
                word(item, "id")
            );
            return wrong(&rules::FOLLOWED, "input", message);
        }
    }
    let sent = looked.items.iter().filter(|(kind, _)| *kind == "reasoning");
    let sent: HashSet<&str> =
        sent.flat_map(|(_, item)| [word(item, "id"), word(item, "encrypted_content")]).collect();
    for (kind, item) in &looked.items {
        let id = word(item, "id");
        let Some(names) = looked.bound.led_to(id) else { continue };
        if !names.iter().any(|name| sent.contains(name.as_str())) {
            let first = names.first().map_or("", String::as_str);
            let message = format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: \
                 '{first}'."
            );
            return wrong(&rules::LED, "input", message);
        }
    }
    None
}

fn encrypted(looked: &Looked<'_>) -> Found {
    for (kind, item) in &looked.items {
        let content = word(item, "encrypted_content");
        let id = word(item, "id");
        let is_known = match *kind {
            "reasoning" if content.is_empty() => {
                if looked.bound.made(id).is_none() {
                    let message = format!(
                        "Item with id '{id}' not found. Items are not persisted when `store` is set \
                         to false. Try again with `store` set to true, or remove this item from your \
                         input."
                    );
                    return wrong(&rules::FOUND, "input", message);
                }
                true
            }
            "reasoning" => looked.bound.made(content).is_some(),
            "compaction" => looked.bound.is_compaction(content),
            _ => true,
        };
        if !is_known {
            let start: String = content.chars().take(4).collect();
            let message = format!(
                "The encrypted content {start}... could not be verified. Reason: Encrypted content \
                 could not be decrypted or parsed."
            );
            let violation = Violation::new(&rules::ENCRYPTED, message);
            return Some(violation.coded("invalid_encrypted_content"));
        }
    }
    None
}

fn trigger(looked: &Looked<'_>) -> Found {
    let place = looked.items.iter().position(|(kind, _)| *kind == "compaction_trigger")?;
    (place + 1 < looked.items.len())
        .then(|| Violation::new(&rules::TRIGGER, "compaction_trigger must be the last input item"))
}

fn tools(looked: &Looked<'_>) -> Found {
    let mut names = HashSet::new();
    for (index, tool) in items(looked.request.body.get("tools")).enumerate() {
        if !matches!(word(tool, "type"), "function" | "custom") {
            continue;
        }
        let name = word(tool, "name");
        let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
        if !(1..=64).contains(&name.len()) || !is_plain {
            let message = format!(
                "Invalid 'tools[{index}].name': string does not match pattern. Expected a string that \
                 matches the pattern '^[a-zA-Z0-9_-]+$'."
            );
            return wrong(&rules::TOOLS, format!("tools[{index}].name"), message);
        }
        if !names.insert(name) {
            let message = format!("Duplicate function name: {name}");
            return wrong(&rules::TOOLS, "tools", message);
        }
    }
    None
}

fn parameters(looked: &Looked<'_>) -> Found {
    let Incoming { body, model, .. } = looked.request;
    let limit = body.get("max_output_tokens").and_then(Value::as_u64);
    if let Some(limit) = limit.filter(|limit| *limit < 16) {
        let message = format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got \
             {limit} instead."
        );
        return wrong(&rules::LIMIT, "max_output_tokens", message);
    }
    if version(model).is_none_or(|version| version < (6, 2)) {
        return None;
    }
    for field in ["temperature", "top_p"] {
        let value = body.get(field).and_then(Value::as_f64);
        if value.is_some_and(|value| value != 1.0) {
            let message =
                format!("Unsupported parameter: '{field}' is not supported with this model.");
            return wrong(&rules::SAMPLING, field, message);
        }
    }
    let effort = word(body.get("reasoning").unwrap_or(&Value::Null), "effort");
    if effort == "none" {
        let message = "Unsupported value: 'none' is not supported with this model.";
        return wrong(&rules::EFFORT, "reasoning.effort", message);
    }
    None
}
