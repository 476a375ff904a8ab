//! How far a search must read.

/// How much text after a match a search may read before the match is certain.
#[cfg_attr(not(feature = "patterns"), expect(dead_code, reason = "no expression compiles"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookahead {
    /// At most this many bytes.
    Bytes(usize),
    RestOfLine,
    RestOfText,
}
