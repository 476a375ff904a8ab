//! What the user typed, as a list in a summary: how much room the list gets, and which statements
//! it omits.

use std::{borrow::Cow, cell::OnceCell, collections::HashSet, sync::Arc};

use super::{brief::Brief, snapshot::Snapshot};
use crate::{
    ledger::Rule,
    message::{Author, ContentBlock, Message},
    prose::{key_by, paragraphs, read_named, sentences},
    retention::{Fact, FactClass, Listing, Statements, headed},
    tokens::TokenCounter,
};

/// The statements of the user, and the keys of those that a summary need not list.
#[derive(Debug)]
pub(super) struct Typed {
    statements: Arc<Statements>,
    /// What the list may show, once it was asked for.
    listing: OnceCell<Listing>,
    /// The keys of statements that are stated elsewhere, were revoked or taken back.
    elsewhere: HashSet<String>,
    /// The keys of what the user took back with a later sentence.
    taken_back: HashSet<String>,
    /// The keys of rules that come before everything else.
    rules: HashSet<String>,
    /// The percentage of the room that the list gets before anything else.
    share: u64,
}

impl Typed {
    /// Returns the statements, except those that are already in the system prompt, the thread's
    /// rules or the messages that stay.
    pub(super) fn new<'m>(
        statements: Arc<Statements>,
        thread: &'m Snapshot,
        brief: &Brief,
        stay: impl IntoIterator<Item = &'m Message>,
    ) -> Self {
        let share = brief.retention.as_ref().map_or(DEFAULT_SHARE, |policy| policy.typed_percent);
        let mut typed = Self { share, ..Self::all(statements) };
        let stated = brief.retention.as_ref().is_some_and(|policy| policy.addendum_tokens > 0);
        let rules = thread.rules();
        // A rule that the user took back shares sentences with the later one, which stay.
        let is_revoked = |rule: &Rule| {
            !rules.taken_back().any(|pair| pair.lifts(rule.author.as_ref(), &rule.text))
        };
        let is_omitted = |rule: &&Rule| if rule.holds() { stated } else { is_revoked(rule) };
        for rule in rules.rules().filter(is_omitted) {
            typed.elsewhere.extend(rule_keys(rule));
        }
        typed.taken_back = typed.statements.taken_back(rules.taken_back());
        typed.elsewhere.extend(typed.taken_back.iter().cloned());
        let system = thread.system().iter().flat_map(Message::texts);
        for text in system {
            typed.skip(text);
        }
        typed.elsewhere.extend(stay.into_iter().flat_map(keys_in));
        typed
    }

    /// The same for a message that stays before the list: see [`skip_before`](Self::skip_before).
    pub(super) fn skip_kept(&mut self, message: &Message) {
        self.skip_older(keys_in(message).into_iter());
    }

    /// Whether the user typed this rule: then a list of statements can show it.
    pub(super) fn states(&self, rule: &Rule) -> bool {
        let key = key_by(rule.author.as_ref(), &rule.text);
        self.statements.keys().any(|stated| stated == key)
    }

    /// Lists these rules too, before everything else.
    pub(super) fn with_rules(mut self, rules: &[&Rule]) -> Self {
        for rule in rules {
            for key in rule_keys(rule) {
                self.elsewhere.remove(&key);
                self.rules.insert(key);
            }
        }
        self.listing.take();
        self
    }

    /// Returns all statements, to be listed without exceptions.
    pub(super) fn all(statements: Arc<Statements>) -> Self {
        Self {
            statements,
            listing: OnceCell::new(),
            elsewhere: HashSet::new(),
            taken_back: HashSet::new(),
            rules: HashSet::new(),
            share: DEFAULT_SHARE,
        }
    }

    /// Returns how many tokens of the room the list may take, if everything else needs `others`. That
    /// is the largest of its share, of what it needs (at most five sixths of the room), and of what
    /// the others leave.
    pub(super) fn room(&self, room: u64, others: u64, counter: &dyn TokenCounter) -> u64 {
        let needed = self.worth(counter).min(most(room));
        self.share_of(room).max(needed).max(room.saturating_sub(others))
    }

    /// The tokens that the list gets before anything else.
    pub(super) fn share_of(&self, room: u64) -> u64 {
        percent_of(room, self.share)
    }

    /// The keys of the statements in the list, and of those that are stated elsewhere.
    pub(super) fn known(&self) -> HashSet<String> {
        self.statements.keys().map(str::to_owned).chain(self.elsewhere.iter().cloned()).collect()
    }

    /// Marks the statements in a text of ours as stated elsewhere, so that they are not listed.
    pub(super) fn skip(&mut self, text: &str) {
        self.elsewhere.extend(paragraphs(text).iter().flat_map(|paragraph| keys(paragraph)));
        self.listing.take();
    }

    /// The same for a text that stands before the list. A statement that may correct an
    /// earlier one stays in the list, or the earlier value would be the last that is read.
    pub(super) fn skip_before(&mut self, text: &str) {
        let stated = paragraphs(text);
        self.skip_older(stated.iter().flat_map(|paragraph| keys(paragraph)));
    }

    fn skip_older(&mut self, keys: impl Iterator<Item = String>) {
        let newer: HashSet<&str> = self.statements.newer_keys().collect();
        self.elsewhere.extend(keys.filter(|key| !newer.contains(key.as_str())));
        self.listing.take();
    }

    /// Whether a fact is in the user's statements, which are listed as wholes.
    pub(super) fn covers(&self, fact: &Fact) -> bool {
        fact.is_users() && is_value(fact.class)
    }

    /// Whether a fact stands only in what the user took back.
    pub(super) fn was_taken_back(&self, fact: &Fact) -> bool {
        if self.taken_back.is_empty() || !fact.is_users() {
            return false;
        }
        let text = fact.text.to_lowercase();
        let states = |key: &str| key.contains(&text);
        self.taken_back.iter().any(|key| states(key))
            && !self.statements.keys().any(|key| !self.taken_back.contains(key) && states(key))
    }

    /// The keys of all statements and their sentences.
    pub(super) fn keys(&self) -> HashSet<String> {
        self.statements.keys().map(str::to_owned).collect()
    }

    /// Returns the list in at most `budget` tokens. Every call must have the same counter.
    pub(super) fn list(&self, budget: u64, counter: &dyn TokenCounter) -> Cow<'_, str> {
        let read = || self.statements.listing(counter, &self.elsewhere, &self.rules);
        self.listing.get_or_init(read).within(budget, counter)
    }

    /// The tokens of the statements that are not stated elsewhere.
    pub(super) fn worth(&self, counter: &dyn TokenCounter) -> u64 {
        let unstated = self.statements.unstated(&self.elsewhere);
        unstated.map(|one| counter.text(&one.text)).fold(0, u64::saturating_add)
    }
}

/// The share of the room without a retention policy.
const DEFAULT_SHARE: u64 = 33;

/// Returns this percentage of the tokens.
pub(super) fn percent_of(tokens: u64, percent: u64) -> u64 {
    (tokens / 100).saturating_mul(percent).saturating_add(tokens % 100 * percent / 100)
}

/// The maximum part of a room that statements get before facts: five sixths.
pub(super) fn most(room: u64) -> u64 {
    room / 6 * 5
}

/// The keys of a paragraph and its sentences; of its words only, if it begins with the name of an
/// author, as in the lists of a summary.
pub(super) fn keys(paragraph: &str) -> Vec<String> {
    let (author, words) = read_named(paragraph);
    keys_by(author.as_ref(), words).collect()
}

/// The keys of a rule and its sentences.
pub(super) fn rule_keys(rule: &Rule) -> impl Iterator<Item = String> {
    keys_by(rule.author.as_ref(), &rule.text)
}

/// The keys of what was typed in a message.
fn keys_in(message: &Message) -> Vec<String> {
    let message = message.spoken();
    let texts = message.typed_content().filter_map(ContentBlock::as_text);
    let stated = texts.flat_map(|text| [paragraphs(text), headed(text)].concat());
    stated.flat_map(|it| keys_by(message.author.as_ref(), &it).collect::<Vec<_>>()).collect()
}

/// The keys of a paragraph that this author typed, and of its sentences.
fn keys_by(author: Option<&Author>, paragraph: &str) -> impl Iterator<Item = String> {
    sentences(paragraph).chain([paragraph]).map(move |text| key_by(author, text))
}

/// Whether a fact is a value that says little without the sentence around it.
fn is_value(class: FactClass) -> bool {
    match class {
        FactClass::Url
        | FactClass::Identifier
        | FactClass::Version
        | FactClass::Hash
        | FactClass::Number
        | FactClass::Quote => true,
        FactClass::Task | FactClass::Error | FactClass::Path | FactClass::Command => false,
    }
}
