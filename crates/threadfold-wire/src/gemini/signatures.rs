//! Signatures that the provider demands.
//!
//! Gemini 3 and later refuse a thread in whose current turn the first call of a step has no
//! signature. For calls that none of its models made, the provider has a word that stands for one.

use super::{
    draft::{Draft, Written},
    marks::SIGNATURE,
};
use crate::{contract::Change, notes::Notes, tree::Tree};
use threadfold_core::message::{Role, model_version};

/// What stands for the signature of a call that no model of the provider made.
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
pub(super) fn sign(drafts: &mut [Draft], demanded: bool, notes: &mut Notes) {
    let is_question = |draft: &Draft| draft.role == Role::User && !draft.is_results();
    let current = drafts.iter().rposition(is_question).unwrap_or(0);
    let mut from = 0;
    for step in drafts.chunk_by_mut(|one, other| one.role == other.role) {
        let is_current = from >= current;
        from += step.len();
        let calls = step.iter_mut().flat_map(|draft| {
            let at = draft.at;
            draft.parts.iter_mut().filter(|part| part.kind == "tool_use").map(move |p| (at, p))
        });
        let Some((at, call)) = calls.into_iter().next() else { continue };
        let Some(fact) = call.call.clone() else { continue };
        if (fact.foreign || (demanded && is_current)) && set(call) {
            notes.turn_to(at);
            notes.note(Change::CallSigned { id: fact.id });
        }
    }
}

/// Sets the signature; `false` if there is one.
fn set(part: &mut Written) -> bool {
    let Tree::Object(object) = &mut part.body else { return false };
    if SIGNATURE.in_object(object).is_some() {
        return false;
    }
    object.set(SIGNATURE.camel, STAND_IN);
    true
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
