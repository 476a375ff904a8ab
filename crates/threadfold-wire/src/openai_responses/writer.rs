//! What is needed while the items of a thread are written.

use super::{calls::Calls, draft::Item};
use crate::notes::Notes;

/// The items written so far, and what they are written with.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) items: Vec<Item>,
    pub(super) calls: Calls,
    pub(super) notes: Notes,
    /// The model refuses reasoning behind a rewrite.
    pub(super) binds_reasoning: bool,
}
