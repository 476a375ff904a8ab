//! How Anthropic's models bind thinking, on their own API and on Bedrock.

use serde_json::Value;

use super::super::{
    bound::{Strictness, VoidReason},
    options::{Account, BookOptions},
    piece::Piece,
    rule::{Rule, Violation},
    vendor::word,
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
) -> Option<Violation> {
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
    Some(Violation::new(rule, message))
}
