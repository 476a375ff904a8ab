//! Whether a request is legal.

use serde_json::Value;

use super::super::{
    bound::Bound,
    rule::{Found, Violation, wrong},
    vendor::{Incoming, items, word},
};
use super::rules;

/// The fields of a body, in camel case.
#[rustfmt::skip]
const FIELDS: [&str; 10] = [
    "contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig",
    "cachedContent", "labels", "model", "serviceTier",
];

/// The kinds of data of a part.
#[rustfmt::skip]
const DATA: [&str; 9] = [
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
];

/// The signature of a call that the API did not make, as it is and in Base64.
const STAND_INS: [&str; 2] =
    ["skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="];

/// The first rule that a request breaks.
pub(super) fn violation(request: &Incoming<'_>, bound: &Bound) -> Found {
    let contents: Vec<&Value> = items(request.body.get("contents")).collect();
    fields(request)
        .or_else(|| parts(&contents))
        .or_else(|| order(&contents))
        .or_else(|| signatures(request, &contents, bound))
        .or_else(|| tools(request))
}

/// A field by its name in camel case, which may be written in snake case.
pub(super) fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).or_else(|| value.get(snake(name)))
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for char in name.chars() {
        if char.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(char.to_ascii_lowercase());
    }
    snake
}

/// The signature of a part.
pub(super) fn signature(part: &Value) -> Option<&str> {
    field(part, "thoughtSignature").and_then(Value::as_str)
}

/// Whether a signature stands in for one of the API's.
pub(super) fn is_stand_in(signature: &str) -> bool {
    STAND_INS.contains(&signature)
}

/// Gemini 3 or later.
pub(super) fn is_third(model: &str) -> bool {
    let rest = model.split_once("gemini-").map(|(_, rest)| rest);
    let major = rest.and_then(|rest| rest.split(['.', '-']).next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= 3)
}

fn fields(request: &Incoming<'_>) -> Found {
    let fields = request.body.as_object()?;
    let is_known = |key: &str| FIELDS.iter().any(|known| *known == key || snake(known) == key);
    let strange = fields.keys().find(|key| !is_known(key))?;
    let message =
        format!("Invalid JSON payload received. Unknown name \"{strange}\": Cannot find field.");
    wrong(&rules::FIELDS, message)
}

fn parts(contents: &[&Value]) -> Found {
    if contents.is_empty() {
        return wrong(
            &rules::NON_EMPTY,
            "* GenerateContentRequest.contents: contents is not specified",
        );
    }
    for (at, content) in contents.iter().enumerate() {
        if !matches!(word(content, "role"), "user" | "model" | "") {
            return wrong(&rules::ALTERNATE, "Please use a valid role: user, model.");
        }
        let mut parts = items(content.get("parts")).enumerate().peekable();
        if parts.peek().is_none() {
            let message = "Unable to submit request because it must include at least one parts field, \
                           which describes the prompt input.";
            return wrong(&rules::NON_EMPTY, message);
        }
        for (number, part) in parts {
            let data: Vec<&&str> = DATA.iter().filter(|name| field(part, name).is_some()).collect();
            let is_blank = part.get("text").is_some_and(|text| text.as_str() == Some(""));
            if data.len() != 1 || (is_blank && signature(part).is_none()) {
                let message = format!(
                    "* GenerateContentRequest.contents[{at}].parts[{number}].data: required oneof \
                     field 'data' must have one initialized field"
                );
                return wrong(&rules::PARTS, message);
            }
        }
    }
    None
}

/// The calls or responses of a content.
fn of_kind<'v>(content: &'v Value, kind: &str) -> Vec<&'v Value> {
    items(content.get("parts")).filter_map(|part| field(part, kind)).collect()
}

fn order(contents: &[&Value]) -> Found {
    let mut before: Option<&Value> = None;
    for content in contents {
        let is_model = word(content, "role") == "model";
        let was_model = before.map(|before| word(before, "role") == "model");
        let responses = of_kind(content, "functionResponse");
        let calls = before.map(|before| of_kind(before, "functionCall")).unwrap_or_default();
        let had_responses =
            before.is_some_and(|before| !of_kind(before, "functionResponse").is_empty());
        if was_model == Some(is_model) && (is_model || (!had_responses && responses.is_empty())) {
            return wrong(
                &rules::ALTERNATE,
                "Please ensure that multiturn requests alternate between user and model.",
            );
        }
        if is_model && before.is_none() && !of_kind(content, "functionCall").is_empty() {
            let message = "Please ensure that function call turn comes immediately after a user turn \
                           or after a function response turn.";
            return wrong(&rules::CALL_TURN, message);
        }
        if calls.is_empty() && !responses.is_empty() {
            let message = "Please ensure that function response turn comes immediately after a \
                           function call turn.";
            return wrong(&rules::RESPONSE_TURN, message);
        }
        let named = |of: &[&Value]| {
            let mut names: Vec<(String, String)> = of
                .iter()
                .map(|it| (word(it, "name").to_owned(), word(it, "id").to_owned()))
                .collect();
            names.sort();
            names
        };
        if calls.len() != responses.len() || named(&calls) != named(&responses) {
            let message = "Please ensure that the number of function response parts is equal to the \
                           number of function call parts of the function call turn.";
            return wrong(&rules::RESPONSES, message);
        }
        before = Some(content);
    }
    let last = before?;
    (word(last, "role") == "model").then(|| {
        let message =
            "Please ensure that multiturn requests ends with a user role or a function response.";
        Violation::new(&rules::LAST, message)
    })
}

fn signatures(request: &Incoming<'_>, contents: &[&Value], bound: &Bound) -> Found {
    for (at, content) in contents.iter().enumerate() {
        for (number, part) in items(content.get("parts")).enumerate() {
            let signature = signature(part);
            let is_known = |text: &str| bound.made(text).is_some() || is_stand_in(text);
            if signature.is_some_and(|text| !is_known(text)) {
                let message =
                    format!("Invalid thought signature in contents[{at}].parts[{number}]");
                return wrong(&rules::SIGNATURES, message);
            }
        }
    }
    if !is_third(&request.model) {
        return None;
    }
    let is_typed = |content: &&Value| {
        word(content, "role") != "model" && of_kind(content, "functionResponse").is_empty()
    };
    let from = contents.iter().rposition(is_typed).map_or(0, |place| place + 1);
    for (at, content) in contents.iter().enumerate().skip(from) {
        let mut calls =
            items(content.get("parts")).filter(|part| field(part, "functionCall").is_some());
        if let Some(first) = calls.next()
            && signature(first).is_none()
        {
            let name = word(field(first, "functionCall").unwrap_or(&Value::Null), "name");
            let message = format!(
                "Function call is missing a thought_signature in functionCall parts. This is required \
                 for tools to work correctly, and missing thought_signature may lead to degraded model \
                 performance. Additional data, function call `default_api:{name}` , position {}.",
                at + 1
            );
            return wrong(&rules::SIGNED, message);
        }
    }
    None
}

fn tools(request: &Incoming<'_>) -> Found {
    for (at, tool) in items(request.body.get("tools")).enumerate() {
        for (number, declared) in items(field(tool, "functionDeclarations")).enumerate() {
            let name = word(declared, "name");
            let begins =
                name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
            let is_plain =
                name.chars().all(|char| char.is_ascii_alphanumeric() || "_.:-".contains(char));
            if !begins || !is_plain || name.len() > 64 {
                let message = format!(
                    "* GenerateContentRequest.tools[{at}].function_declarations[{number}].name: \
                     Invalid function name. Must start with a letter or an underscore. Must be \
                     alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes \
                     (-), with a maximum length of 64."
                );
                return wrong(&rules::TOOLS, message);
            }
        }
    }
    None
}
