//! A string that is borrowed from the input where possible, for keys and kinds that are compared
//! and then dropped.

use std::borrow::Cow;

use serde::Deserialize;

/// A string that is borrowed from the input unless it contains escapes. Every stored block has
/// several keys, and a `String` would allocate each.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct CowStr<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);
