//! Words that are read to be compared and not kept: keys, kinds.

use std::borrow::Cow;

use serde::Deserialize;

/// A word, borrowed from the input where that has it in one piece. A log has several in every block,
/// and as `String` each was an allocation.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Word<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);
