//! How many bytes of text messages hold.

use crate::message::Message;

/// Returns the bytes of text in messages: what they hold, not what the wire adds.
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
