//! A digest: what a thread says of itself, word for word, where no model can be asked.
//!
//! `facts` holds what is taken out of a thread and `gather` takes it; `write` puts it down within a
//! budget and `read` takes it out of a digest again, so that a digest of a digest is one digest and
//! not one inside the other. [`Digest`] is the strategy over them.

mod facts;
mod gather;
mod read;
mod strategy;
mod write;

pub use strategy::Digest;

use crate::{message::Message, tokens::ByteEstimate};

/// Returns the digest of these messages in at most so many bytes, or `None` if these do not hold its
/// first line.
pub(super) fn of(messages: &[Message], most: usize) -> Option<String> {
    write::write(&gather::gather(messages, |_| false), most as u64, &ByteEstimate::new(1))
}
