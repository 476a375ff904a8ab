//! What an audit looks for.

use serde::{Deserialize, Serialize};

/// How much an audit takes in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditOptions {
    /// The longest fact, in bytes. What is longer is counted and left out.
    pub max_fact_bytes: usize,
    /// The most facts. Of more, those that weigh least are counted and left out.
    pub max_facts: usize,
    /// In how many messages a name, a number or a quoted text must be that only tools said. Files
    /// and logs are full of them, and most matter to nobody. 1 takes all.
    pub tool_mentions: usize,
}

impl Default for AuditOptions {
    /// 600 bytes, 4,000 facts, three messages.
    fn default() -> Self {
        Self { max_fact_bytes: 600, max_facts: 4_000, tool_mentions: 3 }
    }
}
