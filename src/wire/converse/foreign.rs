//! What this provider cannot use because another one made it.

use super::{forms::NAME, target::Target};
use crate::message::{Message, Role};

/// Returns why the reasoning of a message would be refused, if it would.
pub(super) fn reasoning_fault(message: &Message, target: &Target) -> Option<&'static str> {
    let other = message.origin.as_ref().is_some_and(|origin| origin.provider != NAME);
    if other {
        return Some("another provider signed it");
    }
    if message.role != Role::Assistant {
        return Some("only the model thinks");
    }
    let bound = target.traits.binds_reasoning && message.prefix_rewritten;
    bound.then_some("what it was thought on was rewritten")
}

/// Returns why reasoning without a signature would be refused, if it would. Models of some
/// families sign nothing, so what came from here goes back.
pub(super) fn unsigned_fault(message: &Message, target: &Target) -> Option<&'static str> {
    (!came_from_here(message) || target.signs_reasoning()).then_some("it is not signed")
}

/// Whether this provider made the message.
pub(super) fn came_from_here(message: &Message) -> bool {
    message.origin.as_ref().is_some_and(|origin| origin.provider == NAME)
}
