//! The serde form of a ledger: the rules and a count. Keys and meanings are computed from the
//! words.

use serde::{Deserialize, Serialize};

use super::rule::Rule;

/// The stored form. It may come from elsewhere, so every rule is checked again.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) left_out: usize,
}
