//! Converting the end of genai's stream to a turn.

use genai::chat::{ContentPart, StopReason as GenaiStop, StreamEnd, ToolCall, Usage as GenaiUsage};
use serde_json::Value;
use threadfold::{
    Answer, ContentBlock, Message, Role, Usage,
    message::{
        Extra, Json, Opaque, Origin, RedactedThinking, StopReason, TextBlock, Thinking, ToolInput,
        ToolUse,
    },
};

use crate::{
    media::CODEC,
    notes::text,
    target::{Dialect, Target},
};

/// Returns the turn at the end of a stream. All parts of the answer must have been captured.
///
/// genai joins all texts into one and puts reasoning first. Data that genai returns apart from
/// blocks is attached to the first block that can have it: encrypted reasoning of OpenAI to the
/// reasoning summary, a signature of Gemini to the first call or, without a call, to the text.
///
/// ```
/// use genai::{adapter::AdapterKind, chat::{MessageContent, StreamEnd}};
/// use threadfold_genai::{Target, answer_from_genai};
///
/// let captured_content = Some(MessageContent::from_text("yes"));
/// let end = StreamEnd { captured_content, ..StreamEnd::default() };
/// let answer = answer_from_genai(end, &Target::new(AdapterKind::OpenAI, "gpt-5"));
/// assert_eq!(answer.text(), "yes");
/// ```
#[must_use]
pub fn answer_from_genai(end: StreamEnd, target: &Target) -> Answer {
    let usage = end.captured_usage.as_ref().map(usage);
    let parts = end.captured_content.map(|content| content.into_parts()).unwrap_or_default();
    let content = blocks(parts, end.captured_reasoning_content, target);
    let mut message = Message::new(Role::Assistant, content);
    message.make_mut().origin = Some(Origin::new(target.provider(), Some(target.model().into())));
    let calls = message.tool_uses().next().is_some();
    Answer::new(message, stop_reason(end.captured_stop_reason, calls), usage)
}

fn blocks(
    parts: Vec<ContentPart>,
    reasoning: Option<String>,
    target: &Target,
) -> Vec<ContentBlock> {
    let (mut blocks, mut signatures) = (Vec::new(), Vec::new());
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            ContentPart::ThoughtSignature(signature) => {
                match parts.next_if(ContentPart::is_reasoning_content) {
                    Some(ContentPart::ReasoningContent(text)) => {
                        blocks.push(Thinking::new(text, Some(signature.into())).into());
                    }
                    _ => signatures.push(signature),
                }
            }
            ContentPart::ReasoningContent(text) => blocks.push(thought(text, target.dialect)),
            ContentPart::Text(text) if text.is_empty() => {}
            ContentPart::Text(text) => blocks.push(ContentBlock::text(text)),
            ContentPart::ToolCall(call) => blocks.push(tool_use(call).into()),
            ContentPart::Custom(custom) => blocks.push(block(&custom.data, target)),
            // No adapter streams these parts.
            ContentPart::Binary(_) | ContentPart::ToolResponse(_) => {}
        }
    }
    let thinks = blocks.iter().any(|block| matches!(block, ContentBlock::Thinking(_)));
    let reasoning = reasoning.filter(|text| !text.is_empty() && !thinks);
    place(&mut blocks, reasoning, signatures, target.dialect);
    blocks
}

/// Inserts reasoning and signatures that genai returns apart from the other parts.
fn place(
    blocks: &mut Vec<ContentBlock>,
    reasoning: Option<String>,
    signatures: Vec<String>,
    dialect: Dialect,
) {
    let mut signatures = signatures.into_iter();
    let mut leading: Vec<ContentBlock> = Vec::new();
    match dialect {
        Dialect::Responses => {
            let first =
                reasoning.map(|text| Thinking::new(text, signatures.next().map(Into::into)));
            leading.extend(first.map(Into::into));
            leading.extend(signatures.map(|one| Thinking::new("", Some(one.into())).into()));
        }
        Dialect::Bedrock => {
            leading.extend(reasoning.map(|text| thought(text, dialect)));
            leading.extend(signatures.map(|one| RedactedThinking::new(one).into()));
        }
        Dialect::Gemini => {
            leading.extend(reasoning.map(|text| thought(text, dialect)));
            sign(blocks, signatures.next());
        }
        Dialect::Anthropic | Dialect::Chat | Dialect::Ollama | Dialect::Text => {
            leading.extend(reasoning.map(|text| thought(text, dialect)));
        }
    }
    blocks.splice(0..0, leading);
}

/// Returns reasoning without a signature. For Chat Completions it is marked with the field in which
/// the codec sends it back.
fn thought(text: String, dialect: Dialect) -> ContentBlock {
    let mut thought = Thinking::new(text, None);
    if dialect == Dialect::Chat {
        let name = Json::from(Value::from("reasoning_content"));
        thought.extra = Extra::new(CODEC, [("~as", name)]);
    }
    thought.into()
}

/// Signs the first call, or else the first text, in the form of the Gemini codec.
fn sign(blocks: &mut [ContentBlock], signature: Option<String>) {
    let Some(signature) = signature else { return };
    let call = blocks.iter().position(|block| matches!(block, ContentBlock::ToolUse(_)));
    let place = call.or_else(|| blocks.iter().position(|block| block.as_text().is_some()));
    if let Some(
        ContentBlock::ToolUse(ToolUse { extra, .. }) | ContentBlock::Text(TextBlock { extra, .. }),
    ) = place.and_then(|at| blocks.get_mut(at))
    {
        let signature = Json::from(Value::from(signature));
        *extra = Extra::new("gemini", [("thoughtSignature", signature)]);
    }
}

/// Returns a block that genai passes on unchanged.
fn block(data: &Value, target: &Target) -> ContentBlock {
    match (text(data, "type"), text(data, "data")) {
        (Some("redacted_thinking"), Some(data)) => RedactedThinking::new(data).into(),
        _ => Opaque::new(target.provider(), Json::from(data)).into(),
    }
}

fn tool_use(call: ToolCall) -> ToolUse {
    let input = match call.fn_arguments {
        Value::String(text) => ToolInput::from_text(text),
        Value::Null => ToolInput::from_text(""),
        arguments @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            ToolInput::from(arguments)
        }
    };
    ToolUse::new(call.call_id, call.fn_name, input)
}

fn stop_reason(reason: Option<GenaiStop>, calls: bool) -> StopReason {
    match reason {
        Some(GenaiStop::MaxTokens(raw)) if raw == "model_context_window_exceeded" => {
            StopReason::ContextWindowExceeded
        }
        Some(GenaiStop::MaxTokens(_)) => StopReason::MaxTokens,
        Some(GenaiStop::ContentFilter(_)) => StopReason::Refusal,
        Some(GenaiStop::StopSequence(_)) => StopReason::StopSequence,
        Some(GenaiStop::Other(raw)) => StopReason::from(raw),
        Some(GenaiStop::ToolCall(_)) => StopReason::ToolUse,
        // OpenAI and Gemini use one stop reason for calls and for the end.
        Some(GenaiStop::Completed(_)) | None if calls => StopReason::ToolUse,
        Some(GenaiStop::Completed(_)) | None => StopReason::EndTurn,
    }
}

/// Returns a count of tokens. A missing count is zero, and so is a negative one, which is
/// meaningless.
fn tokens(count: Option<i32>) -> u64 {
    u64::try_from(count.unwrap_or(0)).unwrap_or(0)
}

/// Converts a usage. As in [`Usage`], genai's prompt count includes tokens read from a cache and
/// written to it.
fn usage(usage: &GenaiUsage) -> Usage {
    let prompt = usage.prompt_tokens_details.as_ref();
    let answer = usage.completion_tokens_details.as_ref();
    Usage {
        input: tokens(usage.prompt_tokens),
        output: tokens(usage.completion_tokens),
        cache_read: tokens(prompt.and_then(|details| details.cached_tokens)),
        cache_write: tokens(prompt.and_then(|details| details.cache_creation_tokens)),
        reasoning: tokens(answer.and_then(|details| details.reasoning_tokens)),
    }
}
