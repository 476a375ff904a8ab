//! What stands for regular expressions without the feature `patterns`: none compiles.

use std::{fmt, ops::Range};

use super::lookahead::Lookahead;

/// A compiled regular expression, of which there are none.
#[derive(Clone, Debug)]
pub(crate) enum Regex {}

/// The working memory of a search.
#[derive(Debug)]
pub(crate) struct Cache;

/// The position of an error in a pattern, in bytes, and its text.
pub(crate) type Invalid = (usize, String);

impl Regex {
    pub(crate) fn new(_source: &str, _flags: &str, _limit: usize) -> Result<Self, Invalid> {
        Err((0, "this build has no regular expressions, which the feature `patterns` adds".into()))
    }

    pub(crate) fn size(&self) -> usize {
        match *self {}
    }

    pub(crate) fn cache(&self) -> Cache {
        match *self {}
    }

    pub(crate) fn find(&self, _: &mut Cache, _: &str, _: Range<usize>) -> Option<Range<usize>> {
        match *self {}
    }

    pub(crate) fn lookahead(&self) -> Lookahead {
        match *self {}
    }
}

impl fmt::Display for Regex {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
