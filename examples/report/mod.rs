//! A page about the compactions of a thread: one HTML file, no script, nothing fetched.

#![allow(clippy::wildcard_enum_match_arm, reason = "it tells what a page has room for")]

mod card;
mod chart;
mod escape;
mod page;
mod story;

#[allow(unused_imports, reason = "the pages of the proxy use it")]
pub(crate) use escape::escaped;
#[allow(unused_imports, reason = "tests look at it")]
pub(crate) use page::{MAX_BYTES, STYLE, page};
#[allow(unused_imports, reason = "tests look at it")]
pub(crate) use story::{Outcome, Story};
