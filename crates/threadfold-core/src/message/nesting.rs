//! How deep tool results may nest.
//!
//! The content of a tool result is blocks, and a block may be a tool result. Functions over blocks
//! recurse into them, and the parser of stored messages has a depth limit. So there is one limit
//! for all, which every way to create a tool result enforces.

/// How deep tool results may nest; a result that contains no other result counts 1. Providers
/// accept only 1. A message at the limit fits every stored form, which `serde_json` reads to a
/// depth of 128.
pub const MAX_NESTING: usize = 32;
