//! The statements that were read, indexed by their words, and their stored form.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::statement_rank::{EMPHASISED, LOWEST, rank};
use crate::prose::{Subject, TypedItem, one_line, without_emphasis};

/// The maximum number of statements that are valid at one time.
pub(super) const MOST: usize = 1_000;

/// After this many requests that differ only in their values, further ones get a low rank.
const ROUTINE: usize = 3;

/// The maximum number of earlier statements with a shared word that a new one is compared with.
const COMPARED: usize = 24;

/// A statement.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Statement {
    /// The words as typed, on one line.
    pub text: String,
    /// How important it is.
    pub(super) rank: u64,
    /// Whether the statement changed a value of an earlier one.
    pub(super) is_change: bool,
    /// Whether an earlier list left out the label that the user put before it.
    pub(super) lost_label: bool,
    pub(super) subject: Subject,
    /// Whether a later statement replaced or repeated it.
    is_gone: bool,
}

/// The stored form of a statement that is valid.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredStatement {
    pub(super) text: String,
    rank: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_change: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lost_label: bool,
}

/// Statements in order, valid or not. They can be found by their keys and words.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    entries: Vec<Statement>,
    by_key: HashMap<String, usize>,
    by_word: HashMap<String, Vec<usize>>,
    /// The number of requests that differ only in their values, by their common words.
    requests: HashMap<Vec<String>, usize>,
}

impl Statement {
    /// The value of keeping the statement: zero for a question or a routine request.
    pub fn worth(&self) -> u64 {
        self.rank.saturating_sub(2)
    }

    /// Whether the statement has a mark of importance: it demands something, has a label or gives a
    /// value.
    pub fn is_emphasised(&self) -> bool {
        self.rank >= EMPHASISED
    }

    /// Returns this statement as the user repeats it. The earlier one is no longer valid.
    fn repeated(&mut self, text: String, item: &TypedItem) -> Self {
        self.is_gone = true;
        // A label that one of the two texts lacks is known from the other.
        let keeps_label = item.lost_label && !self.lost_label;
        Self {
            text: if keeps_label { self.text.clone() } else { text },
            // A text that is repeated without a mark of importance gets the lowest rank.
            rank: if self.is_emphasised() { self.rank } else { LOWEST },
            is_change: item.is_change || self.is_change,
            lost_label: item.lost_label && self.lost_label,
            subject: self.subject.clone(),
            is_gone: false,
        }
    }
}

impl From<StoredStatement> for Statement {
    fn from(stored: StoredStatement) -> Self {
        let StoredStatement { text, rank, is_change, lost_label } = stored;
        Self { subject: Subject::of(&text), text, rank, is_change, lost_label, is_gone: false }
    }
}

impl From<&Statement> for StoredStatement {
    fn from(statement: &Statement) -> Self {
        let Statement { rank, is_change, lost_label, .. } = *statement;
        Self { text: statement.text.clone(), rank, is_change, lost_label }
    }
}

impl Store {
    pub(super) fn valid(&self) -> impl Iterator<Item = &Statement> {
        self.entries.iter().filter(|statement| !statement.is_gone)
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Returns the statement at a place, if it is valid.
    pub(super) fn get(&self, at: usize) -> Option<&Statement> {
        self.entries.get(at).filter(|statement| !statement.is_gone)
    }

    /// Returns the statement of a text with this key, which is not added yet. An earlier one with
    /// the same key is no longer valid.
    pub(super) fn statement(&mut self, key: &str, text: String, item: &TypedItem) -> Statement {
        let again = self.by_key.get(key).copied();
        if let Some(old) = again.and_then(|at| self.entries.get_mut(at)) {
            return old.repeated(text, item);
        }
        let (is_change, lost_label) = (item.is_change, item.lost_label);
        let subject = Subject::of(&text);
        let rank = rank(&text, &subject, lost_label, self.is_routine(&subject));
        Statement { text, rank, is_change, lost_label, subject, is_gone: false }
    }

    /// Whether many requests differ from this one only in their values.
    fn is_routine(&self, subject: &Subject) -> bool {
        let alike = subject.request().and_then(|request| self.requests.get(request));
        alike.is_some_and(|count| *count >= ROUTINE)
    }

    /// The places of the latest statements that share a word with a subject, in order.
    pub(super) fn alike(&self, subject: &Subject) -> BTreeSet<usize> {
        let found = subject.terms().filter_map(|word| self.by_word.get(word));
        found.flat_map(|found| found.iter().rev().take(COMPARED).copied()).collect()
    }

    pub(super) fn push(&mut self, entry: Statement) {
        let at = self.entries.len();
        for word in entry.subject.terms() {
            self.by_word.entry(word.to_owned()).or_default().push(at);
        }
        if let Some(request) = entry.subject.request() {
            *self.requests.entry(request.to_vec()).or_default() += 1;
        }
        self.by_key.insert(key_of(&entry.text), at);
        self.entries.push(entry);
    }

    /// Leaves only this rest of the statement at a place; without a rest it is no longer valid.
    pub(super) fn shorten(&mut self, at: usize, rest: Option<String>) {
        let Some(statement) = self.entries.get_mut(at) else { return };
        match rest {
            Some(text) => {
                self.by_key.insert(key_of(&text), at);
                statement.subject = Subject::of(&text);
                statement.text = text;
            }
            None => statement.is_gone = true,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() > 2 * MOST
    }

    /// Drops statements that are no longer valid, and then the least important ones, the oldest
    /// first.
    pub(super) fn prune(&mut self) {
        let mut entries = std::mem::take(self).entries;
        entries.retain(|entry| !entry.is_gone);
        // Rank decides before age, because the user's first demands are still valid.
        let excess = entries.len().saturating_sub(MOST);
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|at| entries.get(*at).map(|entry| entry.rank));
        let dropped: HashSet<usize> = order.into_iter().take(excess).collect();
        for (_, entry) in entries.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at)) {
            self.push(entry);
        }
    }
}

/// Returns the key by which statements are compared: the text without a label that only stresses
/// it.
pub fn key_of(text: &str) -> String {
    let text = one_line(text);
    let text = without_emphasis(&text).to_lowercase().replace('\u{2019}', "'");
    text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}']).trim_end().to_owned()
}
