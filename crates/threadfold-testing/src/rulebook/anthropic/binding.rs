//! How Anthropic's models bind thinking, on their own API and on Bedrock.

use serde_json::Value;

use super::super::{
    bound::{Strictness, VoidReason},
    numbers::hash_of,
    options::{Account, BookOptions},
    piece::{Piece, Place},
    rule::{Found, Rule, wrong},
    script::{Part, Said},
    vendor::{Incoming, Writing, word},
};
use super::family::Family;

pub(crate) fn strictness(model: &str, options: &BookOptions) -> Strictness {
    let binds = Family::of(model).binds();
    Strictness { prefix: binds && options.account == Account::New, gaps: true, roles: true }
}

/// Whether a model can read the thinking of another.
pub(crate) fn reads(model: &str, of: &str) -> bool {
    let is_checked = Family::of(model).binds() || Family::of(of).binds();
    model == of || !is_checked || Family::of(of).is_read_by_all()
}

/// The refusal of void thinking, unless `thinking`, the field of the request, asks to drop it.
pub(crate) fn refuses_void(
    thinking: &Value,
    piece: &Piece,
    reason: VoidReason,
    rule: &'static Rule,
) -> Found {
    let binding = thinking.get("block_binding").unwrap_or(&Value::Null);
    let drops = word(binding, "prefix_mismatch_behavior") == "drop_block";
    if reason == VoidReason::Model || drops {
        return None;
    }
    let message = format!(
        "{}: Invalid `signature` in `thinking` block. The block is bound to a different \
         conversation. Remove the block, or set \
         `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
        piece.path
    );
    wrong(rule, message)
}

/// The blocks of an answer. Thinking is signed for what stands before it. `form` gives a part the form
/// of the API, with its signature or its id, which begins with `prefix`.
pub(crate) fn blocks(
    request: &Incoming<'_>,
    said: &Said,
    writing: &mut Writing<'_>,
    prefix: &str,
    form: impl Fn(&Part, &str) -> Value,
) -> Vec<Value> {
    let reply = writing.bound.begin_reply();
    let mut end = writing.end.clone();
    let blocks = said.parts.iter().map(|part| match part {
        Part::Reasoning(_) => {
            let signature = writing.numbers.opaque("Er");
            let block = form(part, &signature);
            let made = (request.model.as_str(), hash_of(&block));
            writing.bound.remember(&[signature], &mut end, made, reply);
            block
        }
        Part::Text(_) | Part::Call { .. } => {
            let is_call = matches!(part, Part::Call { .. });
            let id = if is_call { writing.numbers.id(prefix) } else { String::new() };
            let block = form(part, &id);
            end.add(&Piece::new(String::new(), Place::Assistant, &block));
            block
        }
    });
    blocks.collect()
}
