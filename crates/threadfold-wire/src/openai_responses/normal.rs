//! The rules of this dialect for blocks.

use super::{marks::*, read_content::thought};
use crate::kit::*;

/// The rules for the blocks of a thread.
#[derive(Debug)]
pub(super) struct Responses {
    /// The model to ask.
    pub(super) target: Target,
}

impl Rules for Responses {
    fn source(&self, source: &MediaSource, _: Medium, reader: Option<&str>) -> FittedSource {
        // Both dialects of this provider use the same file store.
        openai::fit_source(source, reader.is_none_or(|it| [CODEC, "openai-chat"].contains(&it)))
    }

    /// An answer can hold only text, so the address of a document is written as text.
    fn writes_as_text(&self, role: Role, source: &MediaSource) -> bool {
        matches!(source, MediaSource::Text { .. })
            || (role == Role::Assistant && matches!(source, MediaSource::Url { .. }))
    }

    fn takes_media(&self, role: Role, _: bool) -> bool {
        role != Role::Assistant
    }

    fn knows_server_call(&self, block: &ContentBlock) -> bool {
        extra(block).is_some_and(|extra| extra.codec() == Some(CODEC))
    }

    /// Reasoning must be this provider's own, and unchanged.
    fn reasoning_fault(&self, message: &Message, block: &ContentBlock) -> Option<&'static str> {
        let ContentBlock::Thinking(thinking) = block else {
            return Some("it is encrypted for another provider");
        };
        let is_foreign = message.origin.is_some() && !is_made_by(message, CODEC);
        if thinking.extra.codec() != Some(CODEC) || is_foreign {
            return Some("it comes from another provider");
        }
        let was_signed = marked(&thinking.extra, mark::SIGNED).is_some();
        let [summary, content] = ["summary", "content"].map(|key| thinking.extra.get(CODEC, key));
        let said = thought(summary.map(Raw::of), content.map(Raw::of));
        if said.as_ref() != Some(&thinking.text) || was_signed != thinking.signature.is_some() {
            return Some("it was changed");
        }
        if !self.target.options.binds_reasoning {
            return None;
        }
        if message.prefix_rewritten {
            return Some("what it was thought on was rewritten");
        }
        (!self.target.made(message)).then_some("another model thought it")
    }

    fn call(&self, call: &mut ToolUse, notes: &mut Notes) {
        openai::fit_call(call, notes);
    }

    fn result(&self, result: &mut ToolResult, _: &mut Notes) {
        write_failure(CODEC, result);
    }

    fn opaque_fault(&self, role: Option<Role>, opaque: &Opaque) -> Option<&'static str> {
        match (kept_part(&opaque.value), role) {
            (None, None) => Some("an item of its own cannot stand here"),
            (Some(_), Some(Role::Assistant)) => Some("it is no item of its own"),
            (None, Some(_)) | (Some(_), _) => None,
        }
    }
}
