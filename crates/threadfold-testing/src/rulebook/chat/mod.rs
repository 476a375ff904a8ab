//! OpenAI Chat Completions. Reasoning is not part of this API.
//!
//! Not enforced: what compatible servers demand of reasoning fields, orders of roles and ids.

mod rules;
mod write;

use serde_json::{Value, json};

use super::{
    bound::Bound,
    cache::CacheRules,
    call::{HttpCall, Reply},
    event::Event,
    numbers::Numbers,
    openai::{cache_rules, is_own, version, wrong},
    piece::{Piece, Place},
    rule::{Found, Rule, Violation},
    script::Said,
    vendor::{Incoming, Size, Vendor, Wants, Writing, items, openai_error, stream, word},
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Chat;

/// The fields of a body: CompletionCreateParams, openai 3.57.0.
#[rustfmt::skip]
const FIELDS: [&str; 38] = [
    "messages", "model", "audio", "frequency_penalty", "function_call", "functions", "logit_bias",
    "logprobs", "max_completion_tokens", "max_tokens", "metadata", "modalities", "moderation", "n",
    "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "response_format",
    "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
    "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity",
    "web_search_options", "image",
];

impl Vendor for Chat {
    fn rules(&self) -> &'static [&'static Rule] {
        rules::RULES
    }

    fn wants(&self, call: &HttpCall<'_>, _: &Value) -> Option<Wants> {
        let route = call.route().trim_start_matches("/v1");
        (route == "/chat/completions").then_some(Wants::Answer)
    }

    fn violation(&self, request: &Incoming<'_>, _: &Bound) -> Found {
        let checks: [fn(&Incoming<'_>) -> Found; 5] = [fields, messages, pairs, tools, sampling];
        checks.iter().find_map(|check| check(request))
    }

    fn pieces(&self, request: &Incoming<'_>) -> Vec<Piece> {
        let tools = items(request.body.get("tools")).enumerate();
        let tools = tools.map(|(at, tool)| Piece::new(format!("tools[{at}]"), Place::Head, tool));
        let messages = items(request.body.get("messages")).enumerate().map(|(at, message)| {
            let place = match word(message, "role") {
                "assistant" => Place::Assistant,
                "system" | "developer" => Place::System,
                _ => Place::User,
            };
            Piece::new(format!("messages[{at}]"), place, message)
        });
        tools.chain(messages).collect()
    }

    fn cache(&self, model: &str) -> CacheRules {
        cache_rules(model, &rules::CACHE)
    }

    fn answer_limit(&self, body: &Value) -> u64 {
        let limit = |key: &str| body.get(key).and_then(Value::as_u64);
        limit("max_completion_tokens").or_else(|| limit("max_tokens")).unwrap_or(0)
    }

    fn overflow(&self, size: Size) -> Violation {
        let Size { prompt, answer, window } = size;
        let (rule, found, hint) = if prompt > window {
            let found = format!("your messages resulted in {prompt} tokens");
            (&rules::WINDOW, found, "messages")
        } else {
            let all = prompt + answer;
            let found = format!(
                "you requested {all} tokens ({prompt} in the messages, {answer} in the completion)"
            );
            (&rules::SUM, found, "messages or completion")
        };
        let message = format!(
            "This model's maximum context length is {window} tokens. However, {found}. Please reduce \
             the length of the {hint}."
        );
        Violation::new(rule, message).at("messages").coded("context_length_exceeded")
    }

    fn error(&self, violation: &Violation, _: &mut Numbers) -> Value {
        openai_error(violation)
    }

    fn in_stream(&self, request: &Incoming<'_>, _: &Violation, error: &Value) -> Option<Reply> {
        request.streams().then(|| stream(vec![Event::unnamed(error.clone())]))
    }

    fn count(&self, tokens: u64) -> Value {
        json!(tokens)
    }

    fn reply(&self, request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply {
        write::reply(request, said, writing)
    }
}

fn fields(request: &Incoming<'_>) -> Found {
    let fields = request.body.as_object().filter(|_| is_own(&request.model))?;
    let strange = fields.keys().find(|key| !FIELDS.contains(&key.as_str()))?;
    let message = format!("Unrecognized request argument supplied: {strange}");
    wrong(&rules::FIELDS, strange.clone(), message)
}

fn messages(request: &Incoming<'_>) -> Found {
    let mut messages = items(request.body.get("messages")).enumerate().peekable();
    if messages.peek().is_none() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but \
                       got an empty array instead.";
        return wrong(&rules::ROLES, "messages", message);
    }
    for (at, message) in messages {
        let param = |field: &str| format!("messages.[{at}].{field}");
        let role = word(message, "role");
        if !matches!(role, "system" | "developer" | "user" | "assistant" | "tool") {
            let found = format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', \
                 'function', 'tool', and 'developer'."
            );
            return wrong(&rules::ROLES, param("role"), found);
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
        let may_be_null = role == "assistant"
            && (calls.is_some()
                || ["refusal", "audio"].iter().any(|key| message[*key] != Value::Null));
        let is_empty = content.as_array().is_some_and(Vec::is_empty);
        if (content.is_null() && !may_be_null) || is_empty {
            let found = "Invalid value for 'content': expected a string, got null.";
            return wrong(&rules::CONTENT, param("content"), found);
        }
        let is_media = |part: &Value| !matches!(word(part, "type"), "text" | "refusal");
        if role != "user" && items(Some(content)).any(is_media) {
            let found =
                format!("Invalid content type in a message of {role}: only text is supported.");
            return wrong(&rules::PARTS, param("content"), found);
        }
        if calls.is_some_and(|calls| calls.as_array().is_none_or(Vec::is_empty)) {
            let found = format!(
                "Invalid '{}': empty array. Expected an array with minimum length 1, but got an empty \
                 array instead.",
                param("tool_calls")
            );
            return wrong(&rules::CALLS, param("tool_calls"), found);
        }
        for call in items(calls) {
            let id = word(call, "id");
            let length = id.chars().count();
            let is_text =
                word(call, "type") != "function" || call["function"]["arguments"].is_string();
            if !(1..=40).contains(&length) || !is_text {
                let found = format!(
                    "Invalid 'messages[{at}].tool_calls': string too long. Expected a string with \
                     maximum length 40, but got a string with length {length} instead."
                );
                return wrong(&rules::CALLS, param("tool_calls"), found);
            }
        }
    }
    None
}

fn pairs(request: &Incoming<'_>) -> Found {
    let mut open: Vec<&str> = Vec::new();
    let unanswered = |open: &[&str]| {
        let found = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to \
             each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        );
        wrong(&rules::PAIRS, "messages", found)
    };
    for (at, message) in items(request.body.get("messages")).enumerate() {
        if word(message, "role") == "tool" {
            let id = word(message, "tool_call_id");
            let Some(place) = open.iter().position(|call| *call == id) else {
                let found = "Invalid parameter: messages with role 'tool' must be a response to a \
                             preceeding message with 'tool_calls'.";
                return wrong(&rules::ORPHANS, format!("messages.[{at}].role"), found);
            };
            open.remove(place);
            continue;
        }
        if !open.is_empty() {
            return unanswered(&open);
        }
        open = items(message.get("tool_calls")).map(|call| word(call, "id")).collect();
    }
    if open.is_empty() { None } else { unanswered(&open) }
}

fn tools(request: &Incoming<'_>) -> Found {
    for (at, tool) in items(request.body.get("tools")).enumerate() {
        if word(tool, "type") != "function" {
            continue;
        }
        let name = word(tool.get("function").unwrap_or(&Value::Null), "name");
        let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
        if !(1..=64).contains(&name.len()) || !is_plain {
            let found = format!(
                "Invalid 'tools[{at}].function.name': string does not match pattern. Expected a \
                 string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            );
            return wrong(&rules::TOOLS, format!("tools[{at}].function.name"), found);
        }
        if version(&request.model).is_some_and(|version| version >= (6, 0)) {
            let found = "Function tools are not supported with this model in v1/chat/completions. \
                         Please use v1/responses instead.";
            return wrong(&rules::NO_TOOLS, "tools", found);
        }
    }
    None
}

fn sampling(request: &Incoming<'_>) -> Found {
    if version(&request.model).is_none_or(|version| version < (6, 2)) {
        return None;
    }
    let is_set = |field: &&str| request.body[*field].as_f64().is_some_and(|value| value != 1.0);
    let field = ["temperature", "top_p"].into_iter().find(is_set)?;
    let found = format!("Unsupported parameter: '{field}' is not supported with this model.");
    wrong(&rules::SAMPLING, field, found)
}
