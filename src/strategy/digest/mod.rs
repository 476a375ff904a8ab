//! A digest: a summary made without a model, of quotes and lists from the thread.
//!
//! `gather` extracts the contents of a digest (`facts`) from a thread, and `write` renders them
//! within a budget. `read` parses a digest again, so that a digest of a digest is one flat digest.
//! [`Digest`] is the strategy that uses them.

mod facts;
mod gather;
mod read;
mod strategy;
mod write;

pub use strategy::Digest;

use super::typed::Typed;
use crate::{message::Message, retention::Statements, tokens::ByteEstimate};

/// Returns the digest of these messages in at most `most` bytes, or `None` if its first line
/// exceeds them.
pub(super) fn of(messages: &[Message], most: usize) -> Option<String> {
    let facts = gather::gather(messages, |_| false);
    let mut typed = Typed::all(Statements::of(messages).into());
    typed.skip(facts.short_request());
    write::write(&facts, &typed, most as u64, &ByteEstimate::new(1))
}

/// Whether a text is a digest.
pub(super) fn is_digest(text: &str) -> bool {
    read::read(text.lines().next().unwrap_or_default()).is_some()
}
