//! What a caller knows of a thread whose log does not hold all of it.

use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::{ledger::Ledger, message::CompactionId, retention::Facts};

/// What a caller knows besides the messages, redacted if there is a redactor.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) next_compaction: CompactionId,
    pub(crate) rules: Arc<Ledger>,
    pub(crate) facts: Option<Arc<Facts>>,
}

impl Known {
    /// Returns the snapshot with these rules and facts.
    pub(crate) fn told(&self, snapshot: Snapshot) -> Snapshot {
        // The log holds only the present messages, so the numbers in it recall nothing.
        let snapshot = snapshot.with_rules(Arc::clone(&self.rules)).with_numbers(Arc::default());
        match &self.facts {
            Some(facts) => snapshot.with_facts(Arc::clone(facts)),
            None => snapshot,
        }
    }
}
