//! The ledger: the standing rules in the order in which they were given.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{
    changes::TakenBack,
    rule::{Rule, RuleStatus, id_of},
};
use crate::{
    message::{Author, InvalidValue, Redactor, Text, redact::redacted_text},
    prose::{hash, key_by, one_line, own_key, plain, words_key},
};

/// The standing rules of a thread. The [module](super) says what becomes a rule.
///
/// It lists at most [`MAX_RULES`](Self::MAX_RULES) rules of at most
/// [`MAX_RULE_BYTES`](Self::MAX_RULE_BYTES) bytes each. If there are more, inactive rules are
/// dropped first. Of the active rules the oldest stay listed; [`left_out`](Self::left_out) counts
/// the others, and every list states their number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Ledger {
    entries: Vec<Entry>,
    left_out: usize,
    /// What the user took back, in the order in which a model quoted it.
    taken_back: Vec<TakenBack>,
}

/// The stored form. It may come from elsewhere, so every rule is checked again, and keys are
/// computed from the words.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    left_out: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taken_back: Vec<TakenBack>,
}

impl Ledger {
    /// The maximum number of listed rules.
    pub const MAX_RULES: usize = 100;
    /// The maximum number of rules in memory, including those [beyond](Self::beyond) the list.
    const KEPT: usize = 1_000;
    /// The maximum bytes of a rule.
    pub const MAX_RULE_BYTES: usize = 600;

    /// Adds a rule of the host and returns its id. An active rule with the same words keeps its
    /// position and becomes the host's, so that the user cannot revoke it.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the rule is blank or too long, or if there are too many.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.quote(0, "Never send mails.")?;
    /// ledger.add("Never send mails.")?;
    /// assert_eq!(ledger.active().next().map(|rule| rule.position), Some(None));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn add(&mut self, text: &str) -> Result<Text, InvalidValue> {
        self.enter(None, None, text)
    }

    /// Adds a sentence that the user typed in the message at this position as a standing rule, and
    /// returns its id. An active rule with the same words stays as it is.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the rule is blank or too long, or if there are too many.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.quote(3, "I'm allergic to walnuts.")?;
    /// assert_eq!(ledger.active().next().map(|rule| rule.position), Some(Some(3)));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn quote(&mut self, position: usize, text: &str) -> Result<Text, InvalidValue> {
        self.enter(Some(position), None, text)
    }

    /// Revokes a rule of the user or the host, and returns whether it was active.
    ///
    /// ```
    /// use threadfold::{Message, ledger::{Ledger, RuleStatus}};
    ///
    /// let mut ledger = Ledger::default();
    /// let id = ledger.add("Never send mails.")?;
    /// assert!(ledger.revoke(&id) && !ledger.revoke(&id));
    /// assert_eq!(ledger.rules().next().map(|rule| &rule.status), Some(&RuleStatus::Revoked));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn revoke(&mut self, id: &str) -> bool {
        let Some(at) = self.entries.iter().position(|entry| entry.rule.id == id) else {
            return false;
        };
        let is_full = self.entries.len() > Self::MAX_RULES;
        let Some(entry) = self.entries.get_mut(at) else { return false };
        let held = entry.rule.holds();
        entry.rule.status = RuleStatus::Revoked;
        if is_full {
            // The first rule beyond the list takes its place.
            let entry = self.entries.remove(at);
            self.entries.push(entry);
        }
        held
    }

    /// Returns the listed rules, inactive ones included, in the order in which they were given.
    #[must_use]
    pub fn rules(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.entries.iter().take(Self::MAX_RULES).map(|entry| &entry.rule)
    }

    /// Returns the active rules beyond the limit of the list, in the order in which they were
    /// given. The first of them joins the list when a listed rule is revoked.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// for number in 0..=100 {
    ///     ledger.quote(0, &format!("Never touch file{number}.rs."))?;
    /// }
    /// assert_eq!((ledger.active().count(), ledger.left_out()), (100, 1));
    /// assert!(ledger.beyond().map(|rule| &*rule.text).eq(["Never touch file100.rs."]));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn beyond(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        let rules = self.entries.iter().skip(Self::MAX_RULES).map(|entry| &entry.rule);
        rules.filter(|rule| rule.holds())
    }

    /// Returns the listed rules that are active, in the order in which they were given.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// let mails = ledger.add("Never send mails.")?;
    /// ledger.add("Never touch the lexer.")?;
    /// ledger.revoke(&mails);
    /// let standing: Vec<&str> = ledger.active().map(|rule| rule.text.as_str()).collect();
    /// assert_eq!(standing, ["Never touch the lexer."]);
    /// assert_eq!(ledger.rules().count(), 2);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.rules().filter(|rule| rule.holds())
    }

    /// Returns the first rule with these words, active or not, whoever said it. White space, case, the
    /// form of an apostrophe, a label in capital letters and the mark at the end are ignored.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// let id = ledger.add("Never touch the lexer.")?;
    /// assert_eq!(ledger.find("never touch the  lexer").map(|rule| &rule.id), Some(&id));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn find(&self, text: &str) -> Option<&Rule> {
        let key = words_key(text);
        let mut entries = self.entries.iter();
        entries.find(|entry| own_key(&entry.key) == key).map(|entry| &entry.rule)
    }

    /// Returns the rule of this author, or of the host, with these words.
    pub(super) fn find_of(&self, author: Option<&Author>, text: &str) -> Option<&Rule> {
        let keys = [key_by(author, text), words_key(text)];
        let is_it = |entry: &&Entry| {
            let [own, hosts] = &keys;
            entry.key == *own || (entry.key == *hosts && entry.rule.position.is_none())
        };
        self.entries.iter().find(is_it).map(|entry| &entry.rule)
    }

    /// Returns how many rules are not listed because they were too long or too many.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.saturating_add(self.beyond().count())
    }

    /// Returns the statements that the user took back with later ones, rules or not, in the order in
    /// which a model quoted them. A list omits the earlier one as long as the later one was typed
    /// after it.
    #[must_use]
    pub fn taken_back(&self) -> impl DoubleEndedIterator<Item = &TakenBack> {
        self.taken_back.iter()
    }

    /// Records that the user took a statement back, and revokes the user's rules in it. Of more than
    /// a thousand, the oldest is forgotten.
    pub(super) fn take_back(&mut self, pair: TakenBack) {
        let rules = self.entries.iter().map(|entry| &entry.rule);
        let lifted = rules
            .filter(|rule| rule.position.is_some() && pair.lifts(rule.author.as_ref(), &rule.text));
        for id in lifted.map(|rule| rule.id.clone()).collect::<Vec<_>>() {
            self.revoke(&id);
        }
        self.taken_back.push(pair);
        if self.taken_back.len() > Self::KEPT {
            self.taken_back.remove(0);
        }
    }

    /// Returns the rules without what a redactor removes, under the same ids.
    #[doc(hidden)]
    #[must_use]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let mut stored = Stored::from(self.clone());
        for rule in &mut stored.rules {
            rule.text = redacted_text(&rule.text, redactor);
        }
        for pair in &mut stored.taken_back {
            *pair = pair.redacted(redactor);
        }
        stored.into()
    }

    /// Adds a rule of the host, or, with a position, of the user or this author.
    pub(super) fn enter(
        &mut self,
        position: Option<usize>,
        author: Option<&Author>,
        text: &str,
    ) -> Result<Text, InvalidValue> {
        let text = plain(text);
        let text = one_line(&text);
        let key = key_by(author, &text);
        if own_key(&key).is_empty() {
            return Err(refused("it has no word", &text));
        }
        if text.len() > Self::MAX_RULE_BYTES {
            self.left_out = self.left_out.saturating_add(1);
            let (found, most) = (text.len(), Self::MAX_RULE_BYTES);
            return Err(refused(format!("it has {found} bytes; the maximum is {most}"), &text));
        }
        if let Some(at) = self.entries.iter().position(|entry| entry.key == key) {
            if let Some(entry) = self.entries.get_mut(at)
                && entry.rule.holds()
            {
                if position.is_none() {
                    entry.rule.position = None;
                }
                return Ok(entry.rule.id.clone());
            }
            // A repeated rule becomes active again, as the latest.
            self.entries.remove(at);
        }
        self.make_room(position, &text)?;
        // If another rule has this hash, the next number is tried.
        let mut hash = hash(key.bytes());
        let mut id = id_of(hash);
        while self.entries.iter().any(|entry| entry.rule.id == id) {
            hash = hash.wrapping_add(1);
            id = id_of(hash);
        }
        let rule = Rule {
            id: id.clone(),
            text: text.into(),
            author: author.cloned(),
            position,
            status: RuleStatus::Active,
        };
        // Rules of the host are always listed.
        let listed = self.entries.len().min(Self::MAX_RULES - 1);
        let at = if position.is_none() { listed } else { self.entries.len() };
        self.entries.insert(at, Entry { rule, key });
        Ok(id)
    }

    fn make_room(&mut self, position: Option<usize>, text: &str) -> Result<(), InvalidValue> {
        if self.entries.len() < Self::MAX_RULES {
            return Ok(());
        }
        match self.entries.iter().position(|entry| !entry.rule.holds()) {
            Some(at) => {
                self.entries.remove(at);
                Ok(())
            }
            None if position.is_some() && self.entries.len() < Self::KEPT => Ok(()),
            None => {
                self.left_out = self.left_out.saturating_add(1);
                Err(refused(
                    format!("there are {} rules already, which is the maximum", Self::MAX_RULES),
                    text,
                ))
            }
        }
    }
}

/// A rule, and the key by which it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    rule: Rule,
    key: String,
}

impl From<Stored> for Ledger {
    /// Omits rules that a ledger would not accept.
    fn from(Stored { rules, left_out, mut taken_back }: Stored) -> Self {
        taken_back.truncate(Self::KEPT);
        let mut ledger = Self { entries: Vec::new(), left_out, taken_back };
        let mut known = HashSet::new();
        for rule in rules.into_iter().take(Self::KEPT) {
            let key = key_by(rule.author.as_ref(), &rule.text);
            let is_valid = !own_key(&key).is_empty() && rule.text.len() <= Self::MAX_RULE_BYTES;
            if is_valid && known.insert(rule.id.clone()) {
                ledger.entries.push(Entry { rule, key });
            }
        }
        ledger
    }
}

impl From<Ledger> for Stored {
    fn from(ledger: Ledger) -> Self {
        let rules = ledger.entries.into_iter().map(|entry| entry.rule).collect();
        Self { rules, left_out: ledger.left_out, taken_back: ledger.taken_back }
    }
}

fn refused(rule: impl Into<Text>, text: &str) -> InvalidValue {
    InvalidValue::new("a rule that can be added", rule, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_ledger_round_trips() {
        let mut ledger = Ledger::default();
        ledger.quote(0, "Never touch the lexer.").unwrap();
        let id = ledger.quote(0, "Always use tabs.").unwrap();
        ledger.add("Never send mails.").unwrap();
        ledger.revoke(&id);
        let stored = serde_json::to_string(&ledger).unwrap();
        let read: Ledger = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, ledger);
    }

    #[test]
    fn a_repeated_rule_stays_and_a_revoked_one_returns_as_the_latest() {
        let mut ledger = Ledger::default();
        let first = ledger.quote(0, "Be brief.").unwrap();
        ledger.quote(1, "No tabs.").unwrap();
        assert_eq!(ledger.quote(2, "be  brief").unwrap(), first);
        assert_eq!(ledger.to_string(), "- Be brief.\n- No tabs.\n");
        ledger.revoke(&first);
        assert_eq!(ledger.quote(3, "be brief").unwrap(), first);
        assert_eq!(ledger.to_string(), "- No tabs.\n- be brief\n");
    }
}
