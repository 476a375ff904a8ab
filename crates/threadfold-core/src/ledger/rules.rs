//! The ledger: rules in the order in which they came, and what later words do to them.

use super::{
    correction::{Correction, correction},
    meaning::{Meaning, words},
    rule::{Rule, RuleId, RuleSource, RuleStatus},
    standing::{is_standing, may_ask},
    typed::{ends_quoted, typed},
};
use crate::{
    message::{InvalidValue, Message, Text},
    prose::{paragraphs, sentences},
};

/// The standing rules of a thread. See the [module](super) for what is one.
///
/// It lists at most [`MAX_RULES`](Self::MAX_RULES) of at most
/// [`MAX_RULE_BYTES`](Self::MAX_RULE_BYTES) bytes. Where there are more, those that no longer hold go
/// first; of those that hold the first stay, [`left_out`](Self::left_out) counts the others, and every
/// list says how many are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: Vec<Entry>,
    left_out: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    rule: Rule,
    key: String,
    meaning: Meaning,
}

impl Ledger {
    /// The most rules that are listed.
    pub const MAX_RULES: usize = 100;
    /// The most rules that are kept, with those [beyond](Self::beyond) the list.
    const KEPT: usize = 1_000;
    /// The most bytes that a rule may have.
    pub const MAX_RULE_BYTES: usize = 600;

    /// Reads what the user typed in one more message, in time linear in its text. Messages are read
    /// in order, because later ones take earlier ones back.
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
            for paragraph in paragraphs(&text) {
                let mut quoted = false;
                for sentence in sentences(&paragraph) {
                    if !quoted {
                        self.take(position, sentence);
                    }
                    quoted = ends_quoted(sentence, quoted);
                }
            }
        }
    }

    /// Adds a rule of the host, and returns its name. A rule that is there already stays where it is
    /// and is the host's from now on: what the user says does not take it back.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for one that is blank, too long, or one too many.
    ///
    /// ```
    /// use threadfold::{Message, ledger::{Ledger, RuleSource}};
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.add("Never send mails.")?;
    /// ledger.read(0, &Message::user("You may send mails now."));
    /// assert_eq!(ledger.active().next().map(|rule| rule.source), Some(RuleSource::Host));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn add(&mut self, text: &str) -> Result<RuleId, InvalidValue> {
        self.enter(RuleSource::Host, text)
    }

    /// Takes a rule back, whoever gave it, and returns whether it was there and held.
    ///
    /// ```
    /// use threadfold::{Message, ledger::{Ledger, RuleStatus}};
    ///
    /// let mut ledger = Ledger::default();
    /// let id = ledger.add("Never send mails.")?;
    /// assert!(ledger.revoke(id) && !ledger.revoke(id));
    /// assert_eq!(ledger.rules().next().map(|rule| rule.status), Some(RuleStatus::Revoked));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn revoke(&mut self, id: RuleId) -> bool {
        let mut entries = self.entries.iter_mut();
        let Some(entry) = entries.find(|entry| entry.rule.id == id) else { return false };
        let held = entry.rule.status == RuleStatus::Active;
        entry.rule.status = RuleStatus::Revoked;
        held
    }

    /// All rules, also those that no longer hold, in the order in which they came.
    #[must_use]
    pub fn rules(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.entries.iter().take(Self::MAX_RULES).map(|entry| &entry.rule)
    }

    /// The rules that hold and are too many to be listed, in the order in which they came. The first
    /// of them is listed when later words take another one back.
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
        rules.filter(|rule| rule.status == RuleStatus::Active)
    }

    /// The rules that hold, in the order in which they came.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// let mails = ledger.add("Never send mails.")?;
    /// ledger.add("Never touch the lexer.")?;
    /// ledger.revoke(mails);
    /// let standing: Vec<&str> = ledger.active().map(|rule| rule.text.as_str()).collect();
    /// assert_eq!(standing, ["Never touch the lexer."]);
    /// assert_eq!(ledger.rules().count(), 2);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.rules().filter(|rule| rule.status == RuleStatus::Active)
    }

    /// The rule of these words, if it was given. White space, case and the point at the end do not
    /// count.
    ///
    /// ```
    /// use threadfold::ledger::Ledger;
    ///
    /// let mut ledger = Ledger::default();
    /// let id = ledger.add("Never touch the lexer.")?;
    /// assert_eq!(ledger.find("never touch the  lexer").map(|rule| rule.id), Some(id));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn find(&self, text: &str) -> Option<&Rule> {
        let key = key(text);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.rule)
    }

    /// How many rules were too long or too many to be listed.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.saturating_add(self.beyond().count())
    }

    fn take(&mut self, position: usize, sentence: &str) {
        if !may_ask(sentence) {
            return;
        }
        if let Some(correction) = correction(sentence) {
            return self.correct(&correction);
        }
        if !is_standing(sentence) {
            return;
        }
        if let Ok(id) = self.enter(RuleSource::Message { position }, sentence) {
            self.supersede(id);
        }
    }

    fn enter(&mut self, source: RuleSource, text: &str) -> Result<RuleId, InvalidValue> {
        let text = one_line(text);
        let key = key(&text);
        if key.is_empty() {
            return Err(refused("it has no word", &text));
        }
        if text.len() > Self::MAX_RULE_BYTES {
            self.left_out = self.left_out.saturating_add(1);
            let (found, most) = (text.len(), Self::MAX_RULE_BYTES);
            return Err(refused(format!("it has {found} bytes, {most} are the most"), &text));
        }
        if let Some(at) = self.entries.iter().position(|entry| entry.key == key) {
            if let Some(entry) = self.entries.get_mut(at)
                && entry.rule.status == RuleStatus::Active
            {
                if source == RuleSource::Host {
                    entry.rule.source = source;
                }
                return Ok(entry.rule.id);
            }
            // Said again, it holds again, as what was said last.
            self.entries.remove(at);
        }
        self.make_room(source, &text)?;
        let mut id = RuleId::of(&key);
        while self.entries.iter().any(|entry| entry.rule.id == id) {
            id = id.next();
        }
        let meaning = Meaning::of(&text);
        let rule = Rule { id, text: text.into(), source, status: RuleStatus::Active };
        // What the host adds is listed in any case.
        let listed = self.entries.len().min(Self::MAX_RULES - 1);
        let at = if source == RuleSource::Host { listed } else { self.entries.len() };
        self.entries.insert(at, Entry { rule, key, meaning });
        Ok(id)
    }

    fn make_room(&mut self, source: RuleSource, text: &str) -> Result<(), InvalidValue> {
        if self.entries.len() < Self::MAX_RULES {
            return Ok(());
        }
        let spare = |entry: &Entry| entry.rule.status != RuleStatus::Active;
        match self.entries.iter().position(spare) {
            Some(at) => {
                self.entries.remove(at);
                Ok(())
            }
            None if source != RuleSource::Host && self.entries.len() < Self::KEPT => Ok(()),
            None => {
                self.left_out = self.left_out.saturating_add(1);
                Err(refused(format!("{} rules hold already, the most", Self::MAX_RULES), text))
            }
        }
    }

    /// Has a rule take the place of those that it corrects.
    fn supersede(&mut self, by: RuleId) {
        let Some(new) = self.entries.iter().find(|entry| entry.rule.id == by).cloned() else {
            return;
        };
        let others = |entry: &Entry| entry.rule.id != by && entry.is_of_user();
        let one_of = |entry: &Entry| match (&new.meaning.choice, &entry.meaning.choice) {
            (Some(new), Some(old)) => new.is_change && new.differs_in_one(old),
            _ => false,
        };
        let sole = self.entries.iter().filter(|entry| others(entry) && one_of(entry)).count() == 1;
        for entry in self.entries.iter_mut().filter(|entry| others(entry)) {
            if new.replaces(entry) || (sole && one_of(entry)) {
                entry.rule.status = RuleStatus::Superseded { by };
            }
        }
        self.list_more();
    }

    /// Lets rules that no longer hold give way to those that are not listed for want of room.
    fn list_more(&mut self) {
        let mut more = self.entries.len().saturating_sub(Self::MAX_RULES);
        self.entries.retain(|entry| {
            let goes = more > 0 && entry.rule.status != RuleStatus::Active;
            more -= usize::from(goes);
            !goes
        });
    }

    fn correct(&mut self, correction: &Correction) {
        let meant = |entry: &Entry| {
            let meaning = &entry.meaning;
            let about = |topic: &[String]| !topic.is_empty() && meaning.topic == topic;
            entry.is_of_user()
                && match correction {
                    Correction::Allows(topic) => meaning.forbids == Some(true) && about(topic),
                    Correction::Releases(topic) => meaning.forbids == Some(false) && about(topic),
                    Correction::Forgets(topic) => {
                        !topic.is_empty() && topic.iter().all(|word| meaning.topic.contains(word))
                    }
                    Correction::Names(text) => text.contains(&format!(" {} ", spoken(&entry.key))),
                    Correction::All => true,
                }
        };
        let alone = match correction {
            Correction::Allows(_) | Correction::Releases(_) | Correction::All => false,
            Correction::Forgets(_) | Correction::Names(_) => true,
        };
        let count = self.entries.iter().filter(|entry| meant(entry)).count();
        if alone && count != 1 {
            return;
        }
        for entry in self.entries.iter_mut().filter(|entry| meant(entry)) {
            entry.rule.status = RuleStatus::Revoked;
        }
        self.list_more();
    }
}

impl Entry {
    /// Whether the user gave it, and it holds.
    fn is_of_user(&self) -> bool {
        self.rule.status == RuleStatus::Active && self.rule.source != RuleSource::Host
    }

    /// Whether this says plainly that the other does not hold any more.
    fn replaces(&self, old: &Self) -> bool {
        let (new, old) = (&self.meaning, &old.meaning);
        let sides = new.forbids.zip(old.forbids);
        let opposite = sides.is_some_and(|(new, old)| new != old) && new.topic == old.topic;
        let limit = new.limit.is_some() && new.limit == old.limit;
        let refused = match (&new.choice, &old.choice) {
            (Some(new), Some(old)) => new.refuses(old) && old.refused.is_empty(),
            _ => false,
        };
        (opposite && !new.topic.is_empty()) || limit || refused
    }
}

/// A rule as it is compared with others.
fn key(text: &str) -> String {
    let text = one_line(text).to_lowercase().replace('\u{2019}', "'");
    text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}']).trim_end().to_owned()
}

/// A key as its words alone.
fn spoken(key: &str) -> String {
    words(key).collect::<Vec<_>>().join(" ")
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn refused(rule: impl Into<Text>, text: &str) -> InvalidValue {
    InvalidValue::new("a rule that can be added", rule, text)
}
