//! The serde form of gathered facts, sorted, so that equal facts have equal bytes.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{
    gather::{Gathered, Mention},
    options::AuditOptions,
    positions::Positions,
    statements::{Statements, StoredStatements},
};
use crate::{
    message::{Redactor, redact::redacted_text},
    prose::{FactClass, Speaker, key},
};

/// The stored form. It may come from elsewhere, so positions and counts are made consistent again.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Stored {
    pub(super) messages: usize,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(super) read: VecDeque<u64>,
    pub(super) options: AuditOptions,
    facts: Vec<StoredFact>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    done: BTreeMap<String, usize>,
    too_long: usize,
    dropped: usize,
    statements: StoredStatements,
}

#[derive(Serialize, Deserialize)]
struct StoredFact {
    class: FactClass,
    /// The key by which facts are compared.
    key: String,
    text: String,
    speaker: Speaker,
    at: Vec<usize>,
    count: usize,
}

impl Stored {
    pub(super) fn new(gathered: Gathered, statements: &Statements) -> Self {
        let Gathered { found, done, too_long, dropped, .. } = gathered;
        let mut facts = Vec::new();
        for (class, found) in found {
            facts.extend(found.into_iter().map(|(key, Mention { text, speaker, positions })| {
                let count = positions.count();
                StoredFact { class, key, text, speaker, at: positions.into_kept(), count }
            }));
        }
        facts.sort_unstable_by(|one, other| (one.class, &one.key).cmp(&(other.class, &other.key)));
        let statements = statements.to_stored();
        let done = done.into_iter().collect();
        Self { facts, done, too_long, dropped, statements, ..Self::default() }
    }

    pub(super) fn into_parts(self) -> (Gathered, Statements) {
        let mut gathered = Gathered::default();
        gathered.done = self.done.into_iter().collect();
        (gathered.too_long, gathered.dropped) = (self.too_long, self.dropped);
        for StoredFact { class, key, text, speaker, at, count } in self.facts {
            if let Some(positions) = Positions::stored(at, count) {
                gathered.insert(class, key, Mention { text, speaker, positions });
            }
        }
        (gathered, Statements::of_stored(self.statements))
    }

    /// Returns the stored form with secrets redacted.
    pub(super) fn redacted(mut self, redactor: &dyn Redactor) -> Self {
        for fact in &mut self.facts {
            let text = shown(&fact.text, redactor);
            if text != fact.text {
                (fact.key, fact.text) = (key(fact.class, &text).into_owned(), text);
            }
        }
        for statement in &mut self.statements.all {
            statement.text = shown(&statement.text, redactor);
        }
        let done = self.done.into_iter().map(|(key, at)| (shown(&key, redactor), at));
        self.done = done.collect();
        // They are of messages whose texts have changed now.
        self.read.clear();
        self
    }
}

fn shown(text: &str, redactor: &dyn Redactor) -> String {
    redacted_text(&text.into(), redactor).to_string()
}
