//! Whether a request is legal.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{
    bound::Bound,
    numbers::hash_of,
    rule::{Found, Violation, wrong},
    vendor::{Incoming, Wants, items, word},
};
use super::{
    family::Family,
    rules,
    turns::{Block, Turn, blocks, merged, turns},
};

/// The fields of a body: `MessageCreateParams` of the beta API, anthropic 2.14.0.
#[rustfmt::skip]
const FIELDS: [&str; 31] = [
    "max_tokens", "messages", "model", "billing_policy", "cache_control", "compaction", "container",
    "context_management", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo",
    "mcp_servers", "metadata", "output_config", "output_format", "service_tier", "speed",
    "stop_sequences", "system", "thinking", "thread", "tool_choice", "tools", "betas",
    "user_profile_id", "workspace_id", "stream", "temperature", "top_p", "top_k",
];

const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// What the checks look at.
struct Looked<'a> {
    request: &'a Incoming<'a>,
    bound: &'a Bound,
    family: Family,
    /// The API version is 2026-10-21.
    is_new: bool,
    turns: Vec<Turn>,
    merged: Vec<Turn>,
}

/// The first rule that a request breaks.
pub(super) fn violation(request: &Incoming<'_>, bound: &Bound) -> Found {
    let version = request.call.header("anthropic-version");
    if !version.as_deref().is_some_and(|version| VERSIONS.contains(&version)) {
        let message = match version {
            None => "anthropic-version: header is required".to_owned(),
            Some(version) => format!("anthropic-version: \"{version}\" is not a valid version"),
        };
        return wrong(&rules::VERSION, message);
    }
    let turns = turns(&request.body);
    let looked = Looked {
        request,
        bound,
        family: Family::of(&request.model),
        is_new: version.as_deref() == Some("2026-10-21"),
        merged: merged(&turns),
        turns,
    };
    let checks: [fn(&Looked<'_>) -> Found; 16] = [
        fields,
        sampling,
        limit,
        roles,
        content,
        pairs,
        ids,
        tools,
        choice,
        marks,
        strict_content,
        compactions,
        compaction_request,
        thinking,
        leading_thinking,
        controls,
    ];
    checks.iter().find_map(|check| check(&looked))
}

fn fields(looked: &Looked<'_>) -> Found {
    let fields = looked.request.body.as_object()?;
    let strange = fields.keys().find(|key| !FIELDS.contains(&key.as_str()))?;
    wrong(&rules::FIELDS, format!("{strange}: Extra inputs are not permitted"))
}

fn sampling(looked: &Looked<'_>) -> Found {
    let sent = |key: &&str| looked.request.body.get(*key).is_some();
    let found = ["temperature", "top_p", "top_k"].into_iter().find(sent)?;
    let message = format!("{found}: Extra inputs are not permitted");
    looked.is_new.then(|| Violation::new(&rules::SAMPLING, message))
}

fn limit(looked: &Looked<'_>) -> Found {
    let is_set = looked.request.body.get("max_tokens").is_some_and(Value::is_number);
    let needed = looked.request.wants != Wants::Count;
    (needed && !is_set).then(|| Violation::new(&rules::LIMIT, "max_tokens: Field required"))
}

fn roles(looked: &Looked<'_>) -> Found {
    let Looked { turns, family, .. } = looked;
    let Some(first) = turns.first() else {
        let message = "messages: at least one message is required";
        return wrong(&rules::NON_EMPTY, message);
    };
    for (index, turn) in turns.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| turns.get(before));
        match turn.role.as_str() {
            "user" | "assistant" => {}
            "system" if family.refuses_inner_system() => {
                let message = "role 'system' is not supported on this model";
                return wrong(&rules::INNER_SYSTEM, message);
            }
            "system" if before.is_none_or(|before| before.role == "assistant") => {
                let message =
                    format!("messages.{index}: a system message must follow a user message");
                return wrong(&rules::INNER_SYSTEM, message);
            }
            "system" => {}
            _ => {
                let message =
                    format!("messages.{index}.role: Input should be 'user' or 'assistant'");
                return wrong(&rules::ROLES, message);
            }
        }
    }
    let leads = first.blocks.first().is_some_and(|block| block.kind() == "compaction");
    if first.role != "user" && !leads {
        let message = "messages: first message must use the \"user\" role";
        return wrong(&rules::FIRST_ROLE, message);
    }
    let is_last = turns.last().is_some_and(|last| last.role == "assistant");
    let is_compacted = looked.request.wants == Wants::Compaction;
    // A thread that is only a compaction ends with the message that holds it.
    (is_last && family.refuses_prefill() && !is_compacted).then(|| {
        let message = "This model does not support assistant message prefill. The conversation must \
                       end with a user message.";
        Violation::new(&rules::PREFILL, message)
    })
}

fn content(looked: &Looked<'_>) -> Found {
    let last = looked.turns.len() - 1;
    for (index, turn) in looked.turns.iter().enumerate() {
        if turn.blocks.is_empty() && (index < last || turn.role != "assistant") {
            let message = format!(
                "messages.{index}: all messages must have non-empty content except for the optional \
                 final assistant message"
            );
            return wrong(&rules::NON_EMPTY, message);
        }
        let inner = turn.blocks.iter().flat_map(|block| blocks(block.value.get("content")));
        let outer = turn.blocks.iter().map(|block| block.value.clone());
        for block in outer.chain(inner).filter(|block| word(block, "type") == "text") {
            let text = word(&block, "text");
            if text.trim().is_empty() {
                let rule =
                    if text.is_empty() { "be non-empty" } else { "contain non-whitespace text" };
                let message = format!("messages: text content blocks must {rule}");
                return wrong(&rules::TEXT, message);
            }
        }
    }
    let system = blocks(looked.request.body.get("system"));
    let blank = system.iter().any(|block| word(block, "text").trim().is_empty());
    blank.then(|| Violation::new(&rules::TEXT, "system: text content blocks must be non-empty"))
}

fn pairs(looked: &Looked<'_>) -> Found {
    let mut open: Vec<&str> = Vec::new();
    for turn in &looked.merged {
        let Some(first) = turn.blocks.first() else { continue };
        let at = first.at.0;
        let results: Vec<&Block> =
            turn.blocks.iter().filter(|block| block.kind() == "tool_result").collect();
        let answered =
            |id: &str| results.iter().any(|block| word(&block.value, "tool_use_id") == id);
        let missing: Vec<&str> = open.iter().copied().filter(|id| !answered(id)).collect();
        if !missing.is_empty() {
            let message = format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: {}. Each `tool_use` block must have a corresponding `tool_result` block in \
                 the next message.",
                missing.join(", ")
            );
            return wrong(&rules::PAIRS, message);
        }
        let mut seen = HashSet::new();
        for result in &results {
            let id = word(&result.value, "tool_use_id");
            if turn.role != "user" || !open.contains(&id) {
                let message = format!(
                    "{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the previous \
                     message.",
                    result.path()
                );
                return wrong(&rules::ORPHANS, message);
            }
            if !seen.insert(id) {
                let message = format!(
                    "{}: each tool_use must have a single result. Found multiple `tool_result` blocks \
                     with id: {id}",
                    result.path()
                );
                return wrong(&rules::SINGLE_RESULT, message);
            }
        }
        let later = turn.blocks.iter().skip(results.len());
        if later.clone().any(|block| block.kind() == "tool_result") {
            let message = format!(
                "messages.{at}: `tool_result` blocks must come before all other content of the message"
            );
            return wrong(&rules::RESULTS_FIRST, message);
        }
        open = turn
            .blocks
            .iter()
            .filter(|block| block.kind() == "tool_use")
            .map(|block| word(&block.value, "id"))
            .collect();
    }
    if open.is_empty() {
        return None;
    }
    let rule = match looked.request.wants {
        Wants::Compaction => &rules::COMPACTION_REQUEST,
        Wants::Answer | Wants::Count => &rules::PAIRS,
    };
    let message = format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. \
         Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        looked.turns.len() - 1,
        open.join(", ")
    );
    wrong(rule, message)
}

fn ids(looked: &Looked<'_>) -> Found {
    let mut seen = HashSet::new();
    for block in looked.turns.iter().flat_map(|turn| &turn.blocks) {
        if block.kind() != "tool_use" {
            continue;
        }
        let id = word(&block.value, "id");
        if !seen.insert(id) {
            let message = format!("{}: `tool_use` ids must be unique", block.path());
            return wrong(&rules::UNIQUE, message);
        }
        if id.is_empty() || !id.chars().all(is_plain) {
            let message = format!(
                "{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                block.path()
            );
            return wrong(&rules::IDS, message);
        }
        if !block.value.get("input").is_some_and(Value::is_object) {
            let message =
                format!("{}.tool_use.input: Input should be a valid dictionary", block.path());
            return wrong(&rules::IDS, message);
        }
    }
    None
}

fn tools(looked: &Looked<'_>) -> Found {
    let mut names = HashSet::new();
    for (index, tool) in items(looked.request.body.get("tools")).enumerate() {
        let name = word(tool, "name");
        // A tool of the server has a type with a date, and no schema.
        let is_own = matches!(word(tool, "type"), "" | "custom");
        let is_legal = (1..=128).contains(&name.len()) && name.chars().all(is_plain);
        if is_own && !is_legal {
            let message = format!(
                "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            );
            return wrong(&rules::TOOLS, message);
        }
        if !names.insert(name) {
            return wrong(&rules::TOOLS, "tools: Tool names must be unique.");
        }
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        if is_own && word(schema, "type") != "object" {
            let message =
                format!("tools.{index}.custom.input_schema.type: Input should be 'object'");
            return wrong(&rules::TOOLS, message);
        }
    }
    None
}

fn choice(looked: &Looked<'_>) -> Found {
    let body = &looked.request.body;
    let choice = body.get("tool_choice")?;
    let kind = word(choice, "type");
    let mut tools = items(body.get("tools"));
    if body.get("tools").is_none_or(|tools| tools.as_array().is_none_or(Vec::is_empty)) {
        let message = "tool_choice may only be specified while providing tools";
        return wrong(&rules::CHOICE, message);
    }
    let name = word(choice, "name");
    if kind == "tool" && !tools.any(|tool| word(tool, "name") == name) {
        let message = format!("Tool '{name}' not found in provided tools");
        return wrong(&rules::CHOICE, message);
    }
    let is_forced = matches!(kind, "any" | "tool");
    let is_manual = word(body.get("thinking").unwrap_or(&Value::Null), "type") == "enabled";
    (is_forced && is_manual).then(|| {
        let message = "Thinking may not be enabled when tool_choice forces tool use.";
        Violation::new(&rules::FORCED_CHOICE, message)
    })
}

fn marks(looked: &Looked<'_>) -> Found {
    let body = &looked.request.body;
    let mut marks: Vec<&Value> = Vec::new();
    let tools = items(body.get("tools"));
    let system = items(body.get("system"));
    let messages = looked.turns.iter().flat_map(|turn| &turn.blocks).map(|block| &block.value);
    for block in tools.chain(system).chain(messages) {
        let nested = items(block.get("content"));
        marks.extend(std::iter::once(block).chain(nested).filter_map(|it| it.get("cache_control")));
    }
    marks.extend(body.get("cache_control"));
    marks.retain(|mark| mark.is_object());
    if marks.len() > 4 {
        let message = format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {}.",
            marks.len()
        );
        return wrong(&rules::MARKS, message);
    }
    let hours = marks.iter().map(|mark| word(mark, "ttl") == "1h");
    if hours.clone().skip_while(|is_hour| *is_hour).any(|is_hour| is_hour) {
        let message = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
                       block. Note that blocks are processed in the following order: `tools`, \
                       `system`, `messages`.";
        return wrong(&rules::MARKS, message);
    }
    let thinking = looked.turns.iter().flat_map(|turn| &turn.blocks);
    let mut thinking = thinking.filter(|block| block.is_thinking());
    let marked = thinking.find(|block| block.value.get("cache_control").is_some())?;
    let message =
        format!("{}.thinking.cache_control: Extra inputs are not permitted", marked.path());
    wrong(&rules::MARKS, message)
}

fn strict_content(looked: &Looked<'_>) -> Found {
    if !looked.is_new {
        return None;
    }
    for turn in &looked.turns {
        for block in &turn.blocks {
            if turn.role == "assistant" && block.kind() == "document" {
                let message = format!(
                    "{}: `document` blocks are not permitted in assistant messages",
                    block.path()
                );
                return wrong(&rules::ASSISTANT_DOCUMENTS, message);
            }
            let inner =
                items(block.value.get("content")).filter(|_| block.kind() == "search_result");
            let mut texts = std::iter::once(&block.value).chain(inner);
            let cites = |text: &Value| {
                word(text, "type") == "text" && items(text.get("citations")).next().is_some()
            };
            if turn.role == "user" && texts.any(cites) {
                let message = format!("{}.citations: not permitted in user messages", block.path());
                return wrong(&rules::USER_CITATIONS, message);
            }
        }
    }
    None
}

fn compactions(looked: &Looked<'_>) -> Found {
    let all = looked.turns.iter().flat_map(|turn| &turn.blocks);
    let all: Vec<&Block> = all.filter(|block| block.kind() == "compaction").collect();
    let wrong = |block: &Block, message: &str| {
        wrong(&rules::COMPACTION_BLOCK, format!("{}: {message}", block.path()))
    };
    let first = all.first()?;
    if !looked.request.has_beta("compact-2026-09-04") {
        return wrong(first, "`compaction` blocks need the beta `compact-2026-09-04`");
    }
    for block in &all {
        let signature = word(&block.value, "signature");
        if word(&block.value, "content").is_empty() && block.value["content"].is_string() {
            return wrong(block, "the content of a `compaction` block must not be empty");
        }
        if !looked.bound.is_compaction(signature) {
            return wrong(block, "Invalid `signature` in `compaction` block");
        }
        if block.at != (0, 0) {
            return wrong(
                block,
                "a signed `compaction` block must be the first of the conversation",
            );
        }
    }
    None
}

fn compaction_request(looked: &Looked<'_>) -> Found {
    let body = &looked.request.body;
    body.get("compaction").filter(|asked| asked.is_object())?;
    let wrong = |message: String| wrong(&rules::COMPACTION_REQUEST, message);
    if !looked.request.has_beta("compact-2026-09-04") {
        return wrong("compaction: Extra inputs are not permitted".to_owned());
    }
    let format = body.get("output_config").and_then(|config| config.get("format"));
    let fields = ["context_management", "stop_sequences", "fallbacks"];
    let field = fields.into_iter().find(|field| body.get(*field).is_some_and(|it| !it.is_null()));
    if let Some(field) = field.or(format.map(|_| "output_config.format")) {
        return wrong(format!("compaction: cannot be combined with `{field}`"));
    }
    let choice = word(body.get("tool_choice").unwrap_or(&Value::Null), "type");
    if matches!(choice, "any" | "tool") {
        return wrong("compaction: cannot be combined with a forced `tool_choice`".to_owned());
    }
    None
}

fn thinking(looked: &Looked<'_>) -> Found {
    for block in looked.turns.iter().flat_map(|turn| &turn.blocks).filter(|it| it.is_thinking()) {
        let made = looked.bound.made(block.signature());
        let content = hash_of(&block.value);
        if made.is_none_or(|made| made.content != content) {
            let message = format!("{}: Invalid `signature` in `thinking` block", block.path());
            return wrong(&rules::SIGNATURES, message);
        }
    }
    let latest = looked.merged.iter().rfind(|turn| turn.role == "assistant")?;
    // A merged turn can hold several answers.
    let made = latest.blocks.iter().filter(|block| block.is_thinking());
    let mut next: Option<(usize, usize)> = None;
    for block in made {
        let Some(made) = looked.bound.made(block.signature()) else { continue };
        let is_next = next.is_none_or(|(reply, place)| match made.reply == reply {
            true => made.place == place,
            false => made.place == 0 && looked.bound.pieces_of(reply) == place,
        });
        if !is_next || (next.is_none() && made.place > 0) {
            return altered(block);
        }
        next = Some((made.reply, made.place + 1));
    }
    let (reply, place) = next?;
    if looked.bound.pieces_of(reply) != place {
        return latest.blocks.iter().rfind(|block| block.is_thinking()).and_then(altered);
    }
    None
}

fn altered(block: &Block) -> Found {
    let message = format!(
        "{}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
         modified. These blocks must remain as they were in the original response.",
        block.path()
    );
    wrong(&rules::LATEST_THINKING, message)
}

fn leading_thinking(looked: &Looked<'_>) -> Found {
    let thinking = looked.request.body.get("thinking")?;
    if word(thinking, "type") != "enabled" {
        return None;
    }
    let has = |turn: &Turn, kind: &str| turn.blocks.iter().any(|block| block.kind() == kind);
    let run = looked.merged.iter().rev().take_while(|turn| {
        turn.role == "assistant" || turn.blocks.iter().all(|block| block.kind() == "tool_result")
    });
    let first = run.filter(|turn| turn.role == "assistant" && has(turn, "tool_use")).last()?;
    let block = first.blocks.first().filter(|block| !block.is_thinking())?;
    let message = format!(
        "{}.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is \
         enabled, a final `assistant` message must start with a thinking block (preceeding the \
         lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking \
         blocks from previous turns. To avoid this requirement, disable `thinking`.",
        block.path(),
        block.kind()
    );
    wrong(&rules::LEADING_THINKING, message)
}

fn controls(looked: &Looked<'_>) -> Found {
    let thinking = looked.request.body.get("thinking")?;
    let is_set = thinking.get("block_binding").is_some_and(|binding| !binding.is_null());
    let has_beta = looked.request.has_beta("thinking-binding-controls-2026-08-01");
    (is_set && !has_beta).then(|| {
        let message = "thinking.block_binding: Extra inputs are not permitted. That setting requires \
                       the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.";
        Violation::new(&rules::BINDING_CONTROLS, message)
    })
}

fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || char == '-'
}
