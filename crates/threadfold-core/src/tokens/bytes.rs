//! The bytes of text in messages.

use crate::message::Message;

/// Returns the bytes of text in messages, without what the wire format adds.
///
/// ```
/// use threadfold::{Message, tokens};
///
/// assert_eq!(tokens::text_bytes(&[Message::user("hello")]), 5);
/// ```
#[must_use]
pub fn text_bytes(messages: &[Message]) -> u64 {
    messages.iter().map(Message::text_bytes).fold(0, u64::saturating_add)
}
