//! The limits of an audit.

use serde::{Deserialize, Serialize};

/// Which facts an audit looks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditOptions {
    /// The maximum bytes of a fact. Longer ones are left out and counted.
    pub max_fact_bytes: usize,
    /// The maximum number of facts. If there are more, those with the least weight are left out and
    /// counted.
    pub max_facts: usize,
    /// The minimum number of messages in which a name, number or quote must occur if only tools
    /// state it, because files and logs contain many facts that do not matter. 1 includes all.
    pub tool_mentions: usize,
}

impl Default for AuditOptions {
    /// 600 bytes, 4,000 facts, three messages.
    fn default() -> Self {
        Self { max_fact_bytes: 600, max_facts: 4_000, tool_mentions: 3 }
    }
}
