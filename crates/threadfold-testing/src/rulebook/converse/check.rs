//! Whether a request is legal.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{
    anthropic::Family,
    bound::Bound,
    numbers::hash_of,
    rule::{Found, Violation, wrong},
    vendor::{Incoming, items, word},
};
use super::rules;

/// The fields of a body: ConverseRequest, botocore 1.44.8.
#[rustfmt::skip]
const FIELDS: [&str; 14] = [
    "modelId", "messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig",
    "projectIdentifier", "additionalModelRequestFields", "promptVariables",
    "additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig", "serviceTier",
    "outputConfig",
];

/// The first rule that a request breaks.
pub(super) fn violation(request: &Incoming<'_>, bound: &Bound) -> Found {
    let messages: Vec<&Value> = items(request.body.get("messages")).collect();
    fields(request)
        .or_else(|| blocks(&messages))
        .or_else(|| roles(&request.model, &messages))
        .or_else(|| pairs(&request.model, &messages))
        .or_else(|| tools(request, &messages))
        .or_else(|| texts(request, &messages))
        .or_else(|| points(&messages))
        .or_else(|| reasoning(&messages, bound))
}

/// The signature of reasoning, or what stands for it.
pub(super) fn signature(block: &Value) -> Option<&str> {
    let content = block.get("reasoningContent")?;
    let text = content.get("reasoningText").map_or("", |text| word(text, "signature"));
    Some(if text.is_empty() { word(content, "redactedContent") } else { text })
}

fn fields(request: &Incoming<'_>) -> Found {
    let fields = request.body.as_object()?;
    let strange = fields.keys().find(|key| !FIELDS.contains(&key.as_str()))?;
    wrong(&rules::FIELDS, format!("#: extraneous key [{strange}] is not permitted"))
}

fn content(message: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    items(message.get("content"))
}

fn blocks(messages: &[&Value]) -> Found {
    if messages.is_empty() {
        return wrong(&rules::NON_EMPTY, "The conversation must have at least one message.");
    }
    for (at, message) in messages.iter().enumerate() {
        if !matches!(word(message, "role"), "user" | "assistant" | "system") {
            let message = format!("messages.{at}.role: must be one of user, assistant");
            return wrong(&rules::BLOCKS, message);
        }
        if content(message).next().is_none() {
            let message = format!(
                "The content field in the Message object at messages.{at} is empty. Add a ContentBlock \
                 object to the content field and try again."
            );
            return wrong(&rules::NON_EMPTY, message);
        }
        let keys = |block: &Value| block.as_object().map_or(0, serde_json::Map::len);
        if let Some(place) = content(message).position(|block| keys(block) != 1) {
            let message = format!("messages.{at}.content.{place}: must have one member");
            return wrong(&rules::BLOCKS, message);
        }
    }
    None
}

fn roles(model: &str, messages: &[&Value]) -> Found {
    let first = messages.first().map_or("", |first| word(first, "role"));
    let may_begin = ["claude", "qwen"].iter().any(|family| model.contains(family));
    if first != "user" && !may_begin {
        let message = "A conversation must start with a user message. Try again with a conversation \
                       that starts with a user message.";
        return wrong(&rules::FIRST_ROLE, message);
    }
    let pairs = messages.iter().zip(messages.iter().skip(1));
    let same = |(left, right): &(&&Value, &&Value)| word(left, "role") == word(right, "role");
    if pairs.clone().any(|pair| same(&pair)) {
        let message = "A conversation must alternate between user and assistant roles. Make sure the \
                       conversation alternates between user and assistant roles and try again.";
        return wrong(&rules::ALTERNATE, message);
    }
    let last = messages.last().map_or("", |last| word(last, "role"));
    (last == "assistant" && Family::of(model).refuses_prefill()).then(|| {
        let message = "This model does not support assistant message prefill. The conversation must \
                       end with a user message.";
        Violation::new(&rules::PREFILL, message)
    })
}

fn pairs(model: &str, messages: &[&Value]) -> Found {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let results: Vec<&str> = content(message)
            .filter_map(|block| block.get("toolResult"))
            .map(|result| word(result, "toolUseId"))
            .collect();
        if results.len() > open.len() {
            let message = format!(
                "The number of toolResult blocks at messages.{at}.content exceeds the number of \
                 toolUse blocks of previous turn."
            );
            return wrong(&rules::TOO_MANY, message);
        }
        let missing: Vec<&str> = open.iter().copied().filter(|id| !results.contains(id)).collect();
        if !missing.is_empty() {
            let message = format!(
                "Expected toolResult blocks at messages.{at}.content for the following Ids: {}",
                missing.join(", ")
            );
            return wrong(&rules::PAIRS, message);
        }
        let strict = ["llama", "mistral"].iter().any(|family| model.contains(family));
        if strict && !results.is_empty() && results.len() < content(message).count() {
            let message = format!(
                "messages.{at}.content: Conversation blocks and tool result blocks cannot be provided \
                 in the same turn."
            );
            return wrong(&rules::ALONE, message);
        }
        let calls = content(message).filter_map(|block| block.get("toolUse"));
        // The server answers its own calls.
        let calls = calls.filter(|call| call.get("type").is_none());
        open = calls.map(|call| word(call, "toolUseId")).collect();
    }
    let at = messages.len();
    (!open.is_empty()).then(|| {
        let message = format!(
            "Expected toolResult blocks at messages.{at}.content for the following Ids: {}",
            open.join(", ")
        );
        Violation::new(&rules::PAIRS, message)
    })
}

fn tools(request: &Incoming<'_>, messages: &[&Value]) -> Found {
    let config = request.body.get("toolConfig").filter(|config| config.is_object());
    let is_tool = |block: &&Value| block.get("toolUse").or(block.get("toolResult")).is_some();
    let used = messages.iter().flat_map(|message| content(message)).find(is_tool);
    if used.is_some() && config.is_none() {
        let message = "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
        return wrong(&rules::TOOL_CONFIG, message);
    }
    let tools: Vec<&Value> = items(config.and_then(|config| config.get("tools"))).collect();
    if config.is_some() && tools.is_empty() {
        let message = "toolConfig.tools: must have length greater than or equal to 1";
        return wrong(&rules::TOOL_CONFIG, message);
    }
    let is_plain = |text: &str, more: &str| {
        let legal = |char: char| char.is_ascii_alphanumeric() || more.contains(char);
        (1..=64).contains(&text.len()) && text.chars().all(legal)
    };
    let names = tools.iter().filter_map(|tool| tool.get("toolSpec")).map(|tool| word(tool, "name"));
    let mut seen = HashSet::new();
    for name in names {
        if !is_plain(name, "_-") || !seen.insert(name) {
            let message = format!("toolConfig.tools: the name '{name}' must match [a-zA-Z0-9_-]+");
            return wrong(&rules::IDS, message);
        }
    }
    let calls = messages.iter().flat_map(|message| content(message));
    let mut ids =
        calls.filter_map(|block| block.get("toolUse")).map(|call| word(call, "toolUseId"));
    let id = ids.find(|id| !is_plain(id, "_.:-"))?;
    wrong(&rules::IDS, format!("toolUseId: '{id}' must match [a-zA-Z0-9_.:-]+"))
}

fn texts(request: &Incoming<'_>, messages: &[&Value]) -> Found {
    let is_blank = |block: &Value| {
        block.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty())
    };
    if items(request.body.get("system")).any(is_blank) {
        return wrong(&rules::TEXT, "system: text content blocks must be non-empty");
    }
    for (at, message) in messages.iter().enumerate() {
        let results = content(message).filter_map(|block| block.get("toolResult"));
        let mut inner = results.flat_map(content);
        if inner.any(is_blank) || content(message).any(is_blank) {
            let message = format!("messages.{at}: text content blocks must be non-empty");
            return wrong(&rules::TEXT, message);
        }
        let has = |key: &str| content(message).any(|block| block.get(key).is_some());
        if has("document") && !has("text") {
            let message = format!(
                "messages.{at}: a text block is required in a message with a document block"
            );
            return wrong(&rules::DOCUMENTS, message);
        }
    }
    None
}

fn points(messages: &[&Value]) -> Found {
    let mut count = 0;
    for (at, message) in messages.iter().enumerate() {
        let mut follows_point = true;
        for block in content(message) {
            let is_point = block.get("cachePoint").is_some();
            count += usize::from(is_point);
            if (is_point && follows_point) || count > 4 {
                let message = format!("messages.{at}: a cachePoint must follow a block of content");
                return wrong(&rules::MARKS, message);
            }
            follows_point = is_point;
        }
    }
    None
}

fn reasoning(messages: &[&Value], bound: &Bound) -> Found {
    for (at, message) in messages.iter().enumerate() {
        for (place, block) in content(message).enumerate() {
            let Some(signature) = signature(block) else { continue };
            let made = bound.made(signature);
            if made.is_none_or(|made| made.content != hash_of(block)) {
                let message = format!(
                    "messages.{at}.content.{place}: Invalid `signature` in `thinking` block"
                );
                return wrong(&rules::SIGNATURES, message);
            }
        }
    }
    None
}
