//! Signatures that the provider demands.
//!
//! Gemini 3 and later refuse a thread in whose current turn the first call of a step has no
//! signature. For calls that none of its models made, the provider has a word that stands for one.

use super::{
    marks::{CODEC, SIGNATURE},
    normal::{is_foreign, is_question},
};
use crate::{contract::Change, normal::Thread, notes::Notes};
use threadfold_core::message::{ContentBlock, Json, ToolUse, model_version};

/// The documented signature for calls that no model of the provider made.
const STAND_IN: &str = "skip_thought_signature_validator";

/// Whether a model refuses calls without signatures.
pub(super) fn are_demanded(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let version = name.split_once("gemini").and_then(|(_, rest)| model_version(rest));
    version.is_some_and(|version| version >= (3, 0))
}

/// Signs the first call of each step that has no signature: every one that another provider made,
/// wherever it stands, so that later requests begin as earlier ones did; and in the current turn,
/// if `demanded`, those that came without one.
pub(super) fn sign(thread: &mut Thread, demanded: bool, notes: &mut Notes) {
    let current = thread.iter().rposition(|(_, message)| is_question(message)).unwrap_or(0);
    let mut from = 0;
    for step in thread.chunk_by_mut(|(_, one), (_, other)| one.role == other.role) {
        let is_current = from >= current;
        from += step.len();
        let calling = step.iter_mut().find(|(_, message)| message.tool_uses().next().is_some());
        let Some((at, message)) = calling else { continue };
        let Some(call) = message.tool_uses().next() else { continue };
        let is_due = is_foreign(message, &call.extra) || (demanded && is_current);
        if !is_due || is_signed(call) {
            continue;
        }
        notes.turn_to(*at).note(Change::CallSigned { id: call.id.clone() });
        let mut calls = message.make_mut().content.iter_mut();
        let first = calls.find(|block| matches!(block, ContentBlock::ToolUse(_)));
        if let Some(ContentBlock::ToolUse(call)) = first {
            call.extra = call.extra.with(CODEC, SIGNATURE.camel, Json::text(STAND_IN));
        }
    }
}

fn is_signed(call: &ToolUse) -> bool {
    [SIGNATURE.camel, SIGNATURE.snake].iter().any(|key| call.extra.get(CODEC, key).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_the_third_generation_demand_signatures() {
        for (name, demanded) in [
            ("gemini-2.5-pro", false),
            ("models/gemini-3-flash-preview", true),
            ("gemini-3.1-pro-preview", true),
            ("publishers/google/models/gemini-4-x", true),
            ("gemini-flash-latest", false),
            ("claude-opus-5", false),
        ] {
            assert_eq!(are_demanded(name), demanded, "{name}");
        }
    }
}
