//! Compaction by OpenAI: in an answer (`compaction_trigger`, or `context_management` with
//! `compact_threshold`) and by `POST /v1/responses/compact`, as documented in September 2026.

use super::{kinds, marks::*};
use crate::kit::*;
use std::sync::Arc;

pub(super) const NATIVE: Compaction = Compaction { request, asked, answer };

/// The request fields that the compaction endpoint accepts (`ResponseCompactParams` of SDK openai
/// 3.57).
#[rustfmt::skip]
const OF_ENDPOINT: [&str; 9] = [
    "model", "image", "input", "instructions", "previous_response_id", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "service_tier",
];

// The `compaction_trigger` is added at the end of the thread. Everything before it stays as in the
// conversation, so the provider's prompt cache applies.
fn request(mut request: Request, _: Option<&str>) -> Request {
    set_field(&mut request.extra, CODEC, "context_management", None);
    let trigger = Object::typed(kinds::TRIGGER).into_json();
    let trigger = opaque_item(Raw::of(&trigger), None);
    Arc::make_mut(&mut request.messages).push(Message::new(Role::User, vec![trigger]));
    request
}

fn asked(request: &Request) -> Option<CompactionAsked> {
    let last = request.messages.last().and_then(|message| message.content.last());
    if let Some(ContentBlock::Opaque(opaque)) = last
        && kinds::Label::read(Raw::of(&opaque.value)).kind == kinds::TRIGGER
    {
        return Some(CompactionAsked { when: CompactionTime::Now, instructions: None });
    }
    let management = request.extra.get(CODEC, "context_management")?;
    let tokens = edit(management, None, kinds::COMPACTION)?.number("compact_threshold");
    Some(CompactionAsked { when: CompactionTime::from_tokens(tokens), instructions: None })
}

// `encrypted_content` holds the plain text. A gateway that wants to hide it from its client
// encrypts it first and decrypts what it reads.
fn answer(model: &str, summary: &str, usage: Usage) -> Json {
    let text = format!("{BY_GATEWAY}:{summary}");
    let item = Object::typed(kinds::COMPACTION).with("encrypted_content", text);
    let total = usage.input.saturating_add(usage.output);
    let response = Object::of("object", "response").with("model", Text::from(model));
    let response = response.with("status", "completed").with("output", Tree::from_iter([item]));
    Tree::from(response.with("usage", counts(usage).with("total_tokens", total))).into_json()
}

/// Returns the body for the endpoint, from the body for an answer.
pub(super) fn of_endpoint(body: &Json) -> Json {
    let fields = reopen(Some(body)).into_iter();
    let kept = fields.filter(|(key, _)| OF_ENDPOINT.contains(&key.as_ref()));
    Object::default().and(kept).into_json()
}

/// Reads a compaction that this crate wrote for a client; `None` for one of the provider.
pub(super) fn by_gateway(fields: &Fields<'_>) -> Option<MessageParts> {
    let text = fields.text("encrypted_content")?;
    let text = text.strip_prefix(BY_GATEWAY)?.strip_prefix(':').filter(|text| !text.is_empty())?;
    Some(MessageParts::new(Role::User, vec![Summary::new(text).into()]))
}
