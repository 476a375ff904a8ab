//! The ledger: the rules in the order in which they were given, and how later sentences change
//! them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{
    announce::{ends_as_preface, heads_rules, names_rules},
    asking::asking,
    correction::{Correction, Fit, corrections, restricts},
    english::in_english,
    entry::Entry,
    forms::is_banned,
    rule::{Rule, RuleStatus, hash_of, id_of},
    standing::{is_about_last, is_choice, is_standing, lacks_subject, without_aside},
    terms::Terms,
    typed::{ends_quoted, typed, with_plain_headings},
};
use crate::{
    message::{InvalidValue, Message, Redactor, Text, redact::redacted_text},
    prose::{Paragraph, Subject, marked_paragraphs, sentences},
};

/// The standing rules of a thread. The [module](super) defines which sentences are rules.
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
}

/// The stored form. It may come from elsewhere, so every rule is checked again; keys and meanings
/// are computed from the words.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    left_out: usize,
}

impl Ledger {
    /// The maximum number of listed rules.
    pub const MAX_RULES: usize = 100;
    /// The maximum number of rules in memory, including those [beyond](Self::beyond) the list.
    const KEPT: usize = 1_000;
    /// The maximum bytes of a rule.
    pub const MAX_RULE_BYTES: usize = 600;

    /// Reads the typed text of the next message, in time linear in its length. Read messages in
    /// order, because later sentences revoke earlier rules.
    ///
    /// ```
    /// use threadfold::{Message, ledger::Ledger};
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.read(0, &Message::assistant("Never touch the lexer."));
    /// ledger.read(1, &Message::user("> Never touch the lexer.\n\nPlease fix the parser."));
    /// assert_eq!(ledger.rules().count(), 0);
    /// ```
    pub fn read(&mut self, position: usize, message: &Message) {
        for text in typed(message) {
            let mut list = List::None;
            for Paragraph { text, is_item } in marked_paragraphs(&with_plain_headings(&text)) {
                match &list {
                    List::Rules(heading) if is_item => self.read_item(position, heading, &text),
                    // `Use the red pan` below `The plan:` is a step, not a rule.
                    List::Other if is_item && is_choice(&text) => {}
                    List::Rules(_) | List::Other | List::None => {
                        self.read_paragraph(position, &text);
                    }
                }
                if !is_item {
                    list = List::below(&text);
                }
            }
        }
    }

    /// Reads an item of a list whose heading announces rules or demands.
    fn read_item(&mut self, position: usize, heading: &str, item: &str) {
        let Some(clauses) = asking(item) else { return };
        let whole = format!("{heading}: {item}");
        // An item that demands something by itself does not need its heading, unless the heading
        // forbids.
        let is_brief = is_choice(item) || clauses.iter().any(|clause| is_banned(clause));
        let alone =
            is_standing(item, &in_english(item), &clauses) && !is_brief && names_rules(heading);
        let text = if alone { item } else { &whole };
        if let Ok(id) = self.enter(Some(position), text, text) {
            self.supersede(&id);
        }
    }

    fn read_paragraph(&mut self, position: usize, paragraph: &str) {
        let (mut quoted, mut before) = (false, None);
        for sentence in sentences(paragraph) {
            let is_preface = !quoted && self.read_sentence(position, before, sentence);
            quoted = ends_quoted(sentence, quoted);
            before = Some((sentence, is_preface)).filter(|_| !quoted);
        }
    }

    /// Adds a rule of the host and returns its id. An active rule with the same words keeps its
    /// position and becomes the host's, so that the user cannot revoke it.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the rule is blank or too long, or if there are too many.
    ///
    /// ```
    /// use threadfold::{Message, ledger::Ledger};
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.add("Never send mails.")?;
    /// ledger.read(0, &Message::user("You may send mails now."));
    /// assert_eq!(ledger.active().next().map(|rule| rule.position), Some(None));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn add(&mut self, text: &str) -> Result<Text, InvalidValue> {
        self.enter(None, text, text)
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
        self.enter(Some(position), text, text)
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
        let mut entries = self.entries.iter_mut();
        let Some(entry) = entries.find(|entry| entry.rule.id == id) else { return false };
        std::mem::replace(&mut entry.rule.status, RuleStatus::Revoked) == RuleStatus::Active
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
    /// use threadfold::{Message, ledger::Ledger};
    ///
    /// let mut ledger = Ledger::default();
    /// let rules: String = (0..=100).map(|n| format!("Never touch file{n}.rs.\n")).collect();
    /// ledger.read(0, &Message::user(rules));
    /// assert_eq!((ledger.active().count(), ledger.left_out()), (100, 1));
    /// assert!(ledger.beyond().map(|rule| &*rule.text).eq(["Never touch file100.rs."]));
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

    /// Returns the rule with these words, active or not. White space, case and a full stop at the
    /// end are ignored.
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
        let key = key(text);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.rule)
    }

    /// Returns how many rules are not listed because they were too long or too many.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.saturating_add(self.beyond().count())
    }

    /// Returns the rules without what a redactor removes, under the same ids.
    #[doc(hidden)]
    #[must_use]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let mut stored = Stored::from(self.clone());
        for rule in &mut stored.rules {
            rule.text = redacted_text(&rule.text, redactor);
        }
        stored.into()
    }

    /// Reads a sentence, and returns whether it is a preface. `before` is the previous sentence of
    /// the paragraph, with a flag for whether that is a preface.
    fn read_sentence(
        &mut self,
        position: usize,
        before: Option<(&str, bool)>,
        sentence: &str,
    ) -> bool {
        let demand = without_aside(sentence);
        let Some(clauses) = asking(demand) else { return false };
        let english = in_english(demand);
        let corrections = corrections(demand, &english);
        if !corrections.is_empty() {
            let fits = corrections.iter().any(|correction| self.correct(correction));
            if fits && restricts(sentence) {
                let _id = self.enter(Some(position), sentence, sentence);
            }
            return false;
        }
        let is_preface = ends_as_preface(sentence, clauses.last().map(Vec::as_slice));
        let bound = before.filter(|(_, is_preface)| *is_preface || is_about_last(sentence));
        if is_preface || (bound.is_none() && !is_standing(demand, &english, &clauses)) {
            self.read_value(sentence);
            return is_preface;
        }
        let before = bound.or(before.filter(|_| lacks_subject(sentence)));
        let text = before.map_or(sentence.into(), |(before, _)| format!("{before} {sentence}"));
        if let Ok(id) = self.enter(Some(position), &text, demand) {
            self.supersede(&id);
        }
        false
    }

    /// Revokes the rules whose value this sentence changes. The sentence is not a rule itself.
    fn read_value(&mut self, sentence: &str) {
        // Reading a subject takes long, and most threads have no rule with a value.
        let valued = self.entries.iter().any(|entry| entry.subject.has_value());
        let subject = if valued { Subject::of(sentence) } else { Subject::default() };
        if !subject.has_value() {
            return;
        }
        let terms = Terms::of(&subject);
        for entry in self.entries.iter_mut().filter(|entry| entry.is_revocable()) {
            if !entry.is_limit() && entry.is_revalued_by(&subject, &terms) {
                entry.rule.status = RuleStatus::Revoked;
            }
        }
        self.drop_inactive();
    }

    /// Enters a rule. `demand` is the sentence of its text that demands something.
    fn enter(
        &mut self,
        position: Option<usize>,
        text: &str,
        demand: &str,
    ) -> Result<Text, InvalidValue> {
        let text = one_line(text);
        let key = key(&text);
        if key.is_empty() {
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
        let mut hash = hash_of(&key);
        let mut id = id_of(hash);
        while self.entries.iter().any(|entry| entry.rule.id == id) {
            hash = hash.wrapping_add(1);
            id = id_of(hash);
        }
        let rule = Rule { id: id.clone(), text: text.into(), position, status: RuleStatus::Active };
        // Rules of the host are always listed.
        let listed = self.entries.len().min(Self::MAX_RULES - 1);
        let at = if position.is_none() { listed } else { self.entries.len() };
        self.entries.insert(at, Entry::new(rule, key, demand));
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

    /// Marks the rules that the rule `by` replaces.
    fn supersede(&mut self, by: &Text) {
        let Some(new) = self.entries.iter().find(|entry| entry.rule.id == *by).cloned() else {
            return;
        };
        let entries = self.entries.iter_mut();
        let mut others: Vec<&mut Entry> =
            entries.filter(|entry| entry.rule.id != *by && entry.is_revocable()).collect();
        let is_only_choice = others.iter().filter(|entry| new.may_replace(entry)).count() == 1;
        for entry in &mut others {
            if new.replaces(entry) || (is_only_choice && new.may_replace(entry)) {
                entry.rule.status = RuleStatus::Superseded { by: by.clone() };
            }
        }
        self.drop_inactive();
    }

    /// Drops inactive rules while there are more than the list has room for.
    fn drop_inactive(&mut self) {
        let mut excess = self.entries.len().saturating_sub(Self::MAX_RULES);
        self.entries.retain(|entry| {
            let goes = excess > 0 && !entry.rule.holds();
            excess -= usize::from(goes);
            !goes
        });
    }

    /// Revokes the rules that a correction fits, and returns whether it fits any.
    fn correct(&mut self, correction: &Correction) -> bool {
        let fits: Vec<Fit> = self.entries.iter().map(|entry| entry.fit(correction)).collect();
        let best = fits.iter().max().copied().unwrap_or(Fit::None);
        // If a few words fit several rules equally well, it is unclear which one the user means.
        let meant = fits.iter().filter(|fit| **fit == best).count();
        if best == Fit::None || (best == Fit::Part && meant != 1) {
            return false;
        }
        for (entry, _) in self.entries.iter_mut().zip(&fits).filter(|(_, fit)| **fit == best) {
            entry.rule.status = RuleStatus::Revoked;
        }
        self.drop_inactive();
        true
    }
}

/// The kind of the list items after a paragraph.
enum List {
    /// Rules, below this heading.
    Rules(String),
    /// Items below a heading that announces no rules.
    Other,
    None,
}

impl List {
    fn below(paragraph: &str) -> Self {
        // Every rule repeats its heading, so long headings would take too much room.
        const LONGEST: usize = 120;
        match paragraph.strip_suffix([':', '\u{ff1a}']) {
            Some(heading) if heading.len() <= LONGEST && heads_rules(heading) => {
                Self::Rules(heading.to_owned())
            }
            Some(_) => Self::Other,
            None => Self::None,
        }
    }
}

impl From<Stored> for Ledger {
    /// Omits rules that a ledger would not accept.
    fn from(Stored { rules, left_out }: Stored) -> Self {
        let mut ledger = Self { entries: Vec::new(), left_out };
        let mut known = HashSet::new();
        for rule in rules.into_iter().take(Self::KEPT) {
            let (key, text) = (key(&rule.text), rule.text.clone());
            let is_valid = !key.is_empty() && rule.text.len() <= Self::MAX_RULE_BYTES;
            if is_valid && known.insert(rule.id.clone()) {
                ledger.entries.push(Entry::new(rule, key, &text));
            }
        }
        ledger
    }
}

impl From<Ledger> for Stored {
    fn from(ledger: Ledger) -> Self {
        let rules = ledger.entries.into_iter().map(|entry| entry.rule).collect();
        Self { rules, left_out: ledger.left_out }
    }
}

/// Returns the key by which rules are compared.
fn key(text: &str) -> String {
    let text = one_line(text).to_lowercase().replace('\u{2019}', "'");
    text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}']).trim_end().to_owned()
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn refused(rule: impl Into<Text>, text: &str) -> InvalidValue {
    InvalidValue::new("a rule that can be added", rule, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_ledger_round_trips_and_reads_further_messages() {
        let mut ledger = Ledger::default();
        ledger.read(0, &Message::user("Never touch the lexer. Always use tabs."));
        ledger.add("Never send mails.").unwrap();
        ledger.read(1, &Message::user("You may touch the lexer now."));
        let stored = serde_json::to_string(&ledger).unwrap();
        let mut read: Ledger = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, ledger);
        for ledger in [&mut read, &mut ledger] {
            ledger.read(2, &Message::user("Actually, use spaces instead."));
        }
        assert_eq!(read, ledger);
        assert_eq!(read.active().count(), 2, "{read}");
    }

    #[test]
    fn stored_rules_that_a_ledger_would_refuse_are_omitted() {
        let rule = |text: &str| {
            format!(
                r#"{{"id":"00000000000000aa","text":"{text}","source":"host","status":"active"}}"#
            )
        };
        let rules = [rule("a"), rule("the same id"), rule(" "), rule(&"x".repeat(700))].join(",");
        let read: Ledger = serde_json::from_str(&format!(r#"{{"rules":[{rules}]}}"#)).unwrap();
        assert_eq!(read.to_string(), "- a\n");
    }
}
