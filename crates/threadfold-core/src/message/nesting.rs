//! How deep results may stand in each other.
//!
//! The content of a result is blocks, and a block may be a result again. Everything that walks over
//! blocks goes down with them, and what is stored of them is read by a parser that goes down a
//! limited way. So there is one limit, and every way to a result keeps it.

/// How many results may stand in each other: one that holds none is 1. No provider takes more than
/// one. A message of so many fits every stored form, which `serde_json` reads to a depth of 128.
pub const MAX_NESTING: usize = 32;
