//! How deep tool results may nest.
//!
//! The content of a tool result is blocks, and a block may be a tool result. Functions over blocks
//! recurse into them, and the parser of stored messages has a depth limit. So there is one limit
//! for all, which every way to create a tool result enforces.

/// How deep tool results may nest; a result that contains no other result counts 1. Providers
/// accept only 1. A message at the limit fits every stored form, which `serde_json` reads to a
/// depth of 128.
pub const MAX_NESTING: usize = 32;

/// Tool results nest deeper than [`MAX_NESTING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_NESTING} results stand in each other")]
#[non_exhaustive]
pub struct NestingError;
