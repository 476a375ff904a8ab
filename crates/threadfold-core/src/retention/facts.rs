//! The facts of a whole thread, updated as it grows.

use super::{gather::Gathered, options::AuditOptions, report::Retention, search::Search};
use crate::message::Message;

/// How many times [`AuditOptions::max_facts`] facts are kept while a thread is read.
const SPARE: usize = 4;

/// The facts of all messages that were ever in a thread, removed ones included.
///
/// Read each message once, and audit after every compaction. The audit then shows what was lost
/// over several summaries, and not only what the last one lost.
///
/// ```
/// use threadfold::{Message, retention::{AuditOptions, Facts}};
///
/// let mut facts = Facts::new(AuditOptions::default());
/// facts.read(&Message::user("Fix src/parse.rs. Never touch the lexer."));
/// let retention = facts.audit(&[Message::assistant("src/parse.rs is to be fixed.")]);
/// assert_eq!((retention.overall.facts, retention.overall.kept), (2, 1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub(super) gathered: Gathered,
    options: AuditOptions,
    messages: usize,
}

impl Facts {
    /// Returns an empty set of facts.
    #[must_use]
    pub fn new(options: AuditOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns the facts of these messages.
    ///
    /// ```
    /// use threadfold::{Message, retention::{AuditOptions, Facts}};
    ///
    /// let thread = [Message::user("Fix src/parse.rs."), Message::user("Never touch the lexer.")];
    /// let facts = Facts::of(&thread, AuditOptions::default());
    /// assert_eq!(facts.audit(&thread).overall.facts, 2);
    /// ```
    #[must_use]
    pub fn of(messages: &[Message], options: AuditOptions) -> Self {
        let mut facts = Self::new(options);
        for message in messages {
            facts.read(message);
        }
        facts
    }

    /// Reads the next message, in time linear in its text.
    ///
    /// Memory is bounded: above four times [`AuditOptions::max_facts`], the facts with the least
    /// weight are dropped.
    ///
    /// ```
    /// use threadfold::{Message, retention::{AuditOptions, Facts}};
    ///
    /// let mut facts = Facts::new(AuditOptions::default());
    /// facts.read(&Message::user("Fix src/parse.rs."));
    /// facts.read(&Message::assistant("Fixed."));
    /// assert_eq!(facts.messages(), 2);
    /// ```
    pub fn read(&mut self, message: &Message) {
        self.gathered.read(self.messages, message, &self.options);
        self.messages = self.messages.saturating_add(1);
        let most = self.options.max_facts.saturating_mul(SPARE);
        if self.gathered.len() > most {
            // Down to half of the limit, so that pruning is rare.
            self.gathered.prune(self.messages, most / 2);
        }
    }

    /// Returns a search for these facts that has read no message yet.
    pub(super) fn search(&self) -> Search<'_> {
        Search::new(&self.gathered, self.messages, &self.options)
    }

    /// Returns how many messages were read. [`Fact::positions`](super::Fact::positions) counts
    /// them.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns which of these facts are in the messages of `after`, and which are missing.
    ///
    /// Unlike [`audit`](super::audit()), it also counts the facts of messages that are still there,
    /// as kept.
    ///
    /// ```
    /// use threadfold::{Message, retention::{AuditOptions, Facts}};
    ///
    /// let thread = [Message::user("Fix src/parse.rs."), Message::user("And then src/lex.rs.")];
    /// let facts = Facts::of(&thread, AuditOptions::default());
    /// let retention = facts.audit(&thread[1..]);
    /// let missing: Vec<&str> = retention.missing.iter().map(|fact| fact.text.as_str()).collect();
    /// assert_eq!(missing, ["src/parse.rs"]);
    /// assert_eq!(facts.audit(&thread).missing, []);
    /// ```
    #[must_use]
    pub fn audit(&self, after: &[Message]) -> Retention {
        let mut search = self.search();
        after.iter().for_each(|message| search.read(message));
        search.retention()
    }
}
