//! The facts of a whole thread, updated as it grows.
//!
//! What is known of the past is bounded by the window: audits and lists know at most one fact and
//! one statement for each 32 tokens of the window (4,000 and 1,000 at most), and four and two times
//! as many are kept while messages are read. More could not be listed in a quarter of the window.
//! So the cost of a turn stops growing with the age of its session, and no summary is rejected for
//! what a summary of its size could not state. Standing rules do not count.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    form::Stored,
    gather::Gathered,
    options::{AuditOptions, RetentionPolicy},
    search::Search,
    statements::Statements,
};
use crate::{
    message::{Message, Redactor, Role},
    prose::{FactClass, fingerprint},
};
use threadfold_core::retention::Retention;

/// While a thread is read, this many times [`RetentionPolicy::max_facts`] are kept.
const SPARE: usize = 4;

/// The facts of all messages that were ever in a thread, removed ones included.
///
/// Read each message once, and audit after every compaction. The audit then shows the losses of all
/// summaries together, and not only those of the last one.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, Facts}};
///
/// let mut facts = Facts::new(&RetentionPolicy::default());
/// facts.read(&Message::user("Fix src/parse.rs, but not src/lex.rs."));
/// let retention = facts.audit(&[Message::assistant("src/parse.rs is to be fixed.")]);
/// assert_eq!((retention.overall.facts, retention.overall.kept), (2, 1));
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Facts {
    pub(super) gathered: Gathered,
    statements: Arc<Statements>,
    pub(super) options: AuditOptions,
    pub(super) messages: usize,
    /// The fingerprints of the last messages that were read, the newest first: what these state is
    /// known.
    pub(super) read: VecDeque<u64>,
}

impl Facts {
    /// Returns an empty set of facts that will read messages by this policy.
    #[must_use]
    pub fn new(policy: &RetentionPolicy) -> Self {
        Self::with_options(policy.audit_options())
    }

    #[doc(hidden)]
    #[must_use]
    pub fn with_options(options: AuditOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns the facts of these messages.
    ///
    /// ```
    /// use threadfold::{Message, retention::{RetentionPolicy, Facts}};
    ///
    /// let thread = [Message::user("Fix src/parse.rs."), Message::user("Not src/lex.rs.")];
    /// let facts = Facts::of(&thread, &RetentionPolicy::default());
    /// assert_eq!(facts.audit(&thread).overall.facts, 2);
    /// ```
    #[must_use]
    pub fn of(messages: &[Message], policy: &RetentionPolicy) -> Self {
        let mut facts = Self::new(policy);
        for message in messages {
            facts.read(message);
        }
        facts
    }

    /// Reads the next message, in time linear in its text.
    ///
    /// Memory is bounded: above four times [`RetentionPolicy::max_facts`], the facts with the least
    /// weight are dropped.
    ///
    /// ```
    /// use threadfold::{Message, retention::{RetentionPolicy, Facts}};
    ///
    /// let mut facts = Facts::new(&RetentionPolicy::default());
    /// facts.read(&Message::user("Fix src/parse.rs."));
    /// facts.read(&Message::assistant("Fixed."));
    /// assert_eq!(facts.messages(), 2);
    /// ```
    pub fn read(&mut self, message: &Message) {
        self.gathered.read(self.messages, message, &self.options);
        if Statements::may_read(message) && (self.messages > 0 || message.role != Role::System) {
            let statements = Arc::make_mut(&mut self.statements);
            statements.read(message);
            statements.keep(self.options.max_statements);
        }
        self.messages = self.messages.saturating_add(1);
        self.read.push_front(fingerprint(message));
        self.read.truncate(self.options.max_facts);
        let most = self.options.max_facts.saturating_mul(SPARE);
        if self.gathered.len() > most {
            // Pruning to half of the limit makes it rare.
            self.gathered.prune(self.messages, most / 2);
        }
    }

    /// The texts that the user typed, statement by statement.
    #[doc(hidden)]
    #[must_use]
    pub fn statements(&self) -> &Arc<Statements> {
        &self.statements
    }

    /// The options by which messages are read.
    #[doc(hidden)]
    #[must_use]
    pub fn options(&self) -> &AuditOptions {
        &self.options
    }

    /// Sets the options for reading further messages and for audits. Facts that were read before
    /// stay.
    #[doc(hidden)]
    pub fn set_options(&mut self, options: AuditOptions) {
        self.options = options;
    }

    /// Returns the facts without what a redactor removes.
    #[doc(hidden)]
    #[must_use]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        Stored::from(self.clone()).redacted(redactor).into()
    }

    /// Whether a fact with this key was ever stated.
    pub(super) fn knows(&self, class: FactClass, key: &str) -> bool {
        self.gathered.contains(class, key)
    }

    /// Searches all texts of these messages.
    pub(super) fn search(&self, after: &[Message]) -> Search<'_> {
        let mut search = Search::new(&self.gathered, self.messages, &self.options, &HashSet::new());
        after.iter().for_each(|message| search.read(message));
        search
    }

    /// Returns the number of messages that were read. [`Fact::positions`](super::Fact::positions)
    /// are indices of these messages.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns which of these facts are in the messages of `after`, and which are missing. All texts are
    /// searched, also those of messages that were read.
    ///
    /// Unlike [`audit`](super::audit()), it also counts the facts of messages that are still in the
    /// thread. They are kept.
    ///
    /// ```
    /// use threadfold::{Message, retention::{RetentionPolicy, Facts}};
    ///
    /// let thread = [Message::user("Fix src/parse.rs."), Message::user("And then src/lex.rs.")];
    /// let facts = Facts::of(&thread, &RetentionPolicy::default());
    /// let retention = facts.audit(&thread[1..]);
    /// let missing: Vec<&str> = retention.missing.iter().map(|fact| fact.text.as_str()).collect();
    /// assert_eq!(missing, ["src/parse.rs"]);
    /// assert_eq!(facts.audit(&thread).missing, []);
    /// ```
    #[must_use]
    pub fn audit(&self, after: &[Message]) -> Retention {
        self.search(after).retention()
    }
}

impl From<Stored> for Facts {
    fn from(mut stored: Stored) -> Self {
        let (options, messages) = (stored.options.clone(), stored.messages);
        let read = std::mem::take(&mut stored.read);
        let (gathered, statements) = stored.into_parts();
        Self { gathered, statements: Arc::new(statements), options, messages, read }
    }
}

impl From<Facts> for Stored {
    fn from(facts: Facts) -> Self {
        let mut stored = Self::new(facts.gathered, &facts.statements);
        (stored.messages, stored.read, stored.options) =
            (facts.messages, facts.read, facts.options);
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Summary, steps};

    fn facts() -> Facts {
        let thread = [
            Message::user("Fix src/parse.rs, please. Never touch the lexer. It takes 250 ms."),
            Message::assistant("src/parse.rs and ./src/lex.rs: `cargo test` failed."),
        ];
        Facts::of(&thread, &RetentionPolicy::default())
    }

    #[test]
    fn stored_facts_round_trip_and_equal_facts_have_equal_bytes() {
        let stored = serde_json::to_string(&facts()).unwrap();
        assert_eq!(stored, serde_json::to_string(&facts()).unwrap());
        let mut read: Facts = serde_json::from_str(&stored).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        assert_eq!(read.audit(&[]), facts().audit(&[]));
        let mut grown = facts();
        for facts in [&mut read, &mut grown] {
            facts.read(&Message::user("And src/lex.rs."));
        }
        assert_eq!(read.audit(&[]), grown.audit(&[]));
        assert_eq!(read.messages(), 3);
    }

    #[test]
    fn what_a_message_states_is_read_once_and_a_changed_message_is_searched() {
        let long = "Nothing of note happens here, word by word. ".repeat(200);
        let said = |text: &str| Message::assistant(format!("{text} {long}"));
        let thread = [
            said("It is src/parse.rs, and it takes 250 ms."),
            said("See parse.rs, and src/lex.rs."),
            Message::user("Never touch src/old.rs."),
        ];
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        let stored = serde_json::to_string(&facts).unwrap();
        let stored: Facts = serde_json::from_str(&stored).unwrap();
        let missing = |after: &[Message]| {
            let missing = facts.beside(after).retention().missing;
            assert_eq!(missing, stored.beside(after).retention().missing);
            missing.into_iter().map(|fact| fact.text.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(missing(&thread), [""; 0]);
        // The file of the first message is named in the second one, without its folder.
        assert_eq!(missing(&thread[1..]), ["src/parse.rs", "250 ms"]);
        let changed = Message::assistant("It takes 250 ms.");
        assert_eq!(missing(&[changed, thread[2].clone()]), ["src/parse.rs", "src/lex.rs"]);
        let summary = Message::summary(Role::User, Summary::new("src/parse.rs takes 250 ms."));
        assert_eq!(missing(&[summary, thread[2].clone()]), ["src/lex.rs"]);
        let work = |after: &[Message]| steps::steps(u64::MAX, || drop(facts.beside(after)));
        let changed = Message::assistant(format!("{} {long}", "It is src/parse.rs."));
        assert!(work(&thread[..1]) * 4 < work(&[changed]), "{}", work(&thread[..1]));
    }

    #[test]
    fn typed_statements_are_stored() {
        let said = ["The fee is $30. Pay at noon.", "The fee is $40."].map(Message::user);
        let facts = Facts::of(&said, &RetentionPolicy::default());
        let stored = serde_json::to_string(&facts).unwrap();
        let read: Facts = serde_json::from_str(&stored).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        let texts = |facts: &Facts| -> Vec<String> {
            facts.statements().holding().map(|statement| statement.text.clone()).collect()
        };
        assert_eq!(texts(&read), texts(&facts));
        assert_eq!(texts(&read), ["The fee is $30.", "Pay at noon.", "The fee is $40."]);
    }

    #[test]
    fn corrupt_stored_facts_are_made_consistent() {
        let stored = r#"{"messages":2,"facts":[
            {"class":"path","key":"a.rs","text":"a.rs","speaker":"user","at":[9,1,1],"count":0},
            {"class":"path","key":"b.rs","text":"b.rs","speaker":"user","at":[],"count":7}]}"#;
        let facts: Facts = serde_json::from_str(stored).unwrap();
        let missing = facts.audit(&[]).missing;
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].positions, [1, 9]);
    }
}
