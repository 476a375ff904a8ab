//! The facts of a whole thread, read as it grows.

use super::{gather::Gathered, options::AuditOptions, report::Retention, search::Search};
use crate::message::Message;

/// So many times as many facts as an audit takes are kept while a thread is read.
const SPARE: usize = 4;

/// The facts of everything that was said in a thread, also of what no longer stands in it.
///
/// A thread is read once, message by message, and can then be audited after every compaction: so
/// what is lost from one summary to the next is seen, and not only what the last one lost.
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
    /// Returns no facts yet.
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

    /// Reads one more message, in time linear in its text.
    ///
    /// Of many times more facts than [`AuditOptions::max_facts`] those that weigh least are
    /// dropped, so a thread without end does not fill the memory.
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
            // To the half, so that this is seldom.
            self.gathered.prune(self.messages, most / 2);
        }
    }

    /// Returns a search for all these facts, which has read nothing yet.
    pub(super) fn search(&self) -> Search<'_> {
        Search::new(&self.gathered, self.messages, &self.options)
    }

    /// How many messages were read. Positions of facts count them.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns what of all these facts still stands in these messages, and what is missing.
    ///
    /// As [`audit`](super::audit()), but that facts of messages that stand count too: they are
    /// kept.
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
