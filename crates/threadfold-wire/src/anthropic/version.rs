//! What depends on the version of the API and on the controls of bound reasoning.

use super::{forms::NAME, params};
use crate::{kit::*, options::AnthropicVersion};

/// The parameters that version 2026-10-21 refuses with any value.
const SAMPLING: [&str; 2] = ["top_p", "top_k"];

/// Leaves out what the version of the API refuses in a request.
pub(super) fn fit_request(request: &mut Request, options: &EncodeOptions, notes: &mut Notes) {
    if options.anthropic_version == AnthropicVersion::V2023_06_01 {
        return;
    }
    notes.turn_to(None);
    if request.temperature.take().is_some() || request.extra.get(NAME, "temperature").is_some() {
        set_field(&mut request.extra, NAME, "temperature", None);
        notes.drop_parameter("temperature");
    }
    for name in SAMPLING {
        if request.extra.get(NAME, name).is_some() {
            set_field(&mut request.extra, NAME, name, None);
            notes.drop_parameter(name);
        }
    }
}

/// Leaves out what the version of the API refuses in a thread.
pub(super) fn fit_thread(thread: &mut Thread, options: &EncodeOptions, notes: &mut Notes) {
    if options.anthropic_version == AnthropicVersion::V2023_06_01 {
        return;
    }
    for (at, message) in thread.iter_mut() {
        notes.turn_to(*at);
        let is_refused = |block: &ContentBlock| match message.role {
            Role::Assistant => matches!(block, ContentBlock::Document(_)),
            Role::User => cites(block),
            Role::System => false,
        };
        if !message.content.iter().any(is_refused) {
            continue;
        }
        match message.role {
            Role::Assistant => fit_blocks(message, |block| {
                !matches!(block, ContentBlock::Document(_))
                    || notes.drop_block("document", "an answer holds none in this API version")
            }),
            Role::User | Role::System => {
                for block in message.make_mut().content.iter_mut().filter(|block| cites(block)) {
                    if let ContentBlock::Text(text) = block {
                        set_field(&mut text.extra, NAME, CITATIONS, None);
                        notes.drop_fields([CITATIONS]);
                    }
                }
            }
        }
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

const CITATIONS: &str = "citations";

/// Whether a text has citations. `null` and an empty list are accepted.
fn cites(block: &ContentBlock) -> bool {
    let ContentBlock::Text(text) = block else { return false };
    let citations = text.extra.get(NAME, CITATIONS).map(Raw::of);
    citations.and_then(Raw::items).is_some_and(|citations| !citations.is_empty())
}

/// Sets what the provider does with reasoning that fails its check, unless the request does.
pub(super) fn bind(body: &mut Object, extra: &Extra, options: &EncodeOptions) {
    let thinking = extra.get(NAME, "thinking").filter(|_| body.get("thinking").is_some());
    let (Some(thinking), Some(behavior)) = (thinking, options.prefix_mismatch) else { return };
    if !options.binds_reasoning || does_not_think(params::thinking_type(extra)) {
        return;
    }
    let mut thinking = reopen(Some(thinking));
    if thinking.get("block_binding").is_none() {
        let binding = Object::of("prefix_mismatch_behavior", behavior.as_str());
        thinking.set("block_binding", binding);
        body.set("thinking", thinking);
    }
}
