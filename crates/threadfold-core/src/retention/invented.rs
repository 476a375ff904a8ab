//! Facts of a summary that nothing in the thread states.

use super::{fact::Fact, facts::Facts, gather::Gathered, options::AuditOptions, search::Search};
use crate::{
    ledger,
    message::Message,
    prose::{FactClass, without_typed},
};

/// Returns what a summary invented: paths, addresses, commands, names, versions, hashes, numbers and
/// instructions in it that neither the facts of the conversation nor a message of the thread states.
///
/// Words are compared as in an [audit](super::audit()). A sentence of the thread is never invented,
/// and a false sentence without such words is not found. Our own lists of rules and of the user's
/// words do not count.
///
/// ```
/// use threadfold::{Message, retention::{AuditOptions, Facts, invented}};
///
/// let thread = [Message::user("Fix src/parse.rs."), Message::assistant("It took 12 ms.")];
/// let facts = Facts::of(&thread, AuditOptions::default());
/// assert_eq!(invented("src/parse.rs took 12 ms.", &facts, &thread), []);
/// let found = invented("src/lex.rs took 15 ms.", &facts, &thread);
/// let texts: Vec<&str> = found.iter().map(|fact| fact.text.as_str()).collect();
/// assert_eq!(texts, ["src/lex.rs", "15 ms"]);
/// ```
#[must_use]
pub fn invented(summary: &str, facts: &Facts, thread: &[Message]) -> Vec<Fact> {
    let own = without_typed(&ledger::without_titled(summary));
    let options = AuditOptions { tool_mentions: 1, ..AuditOptions::default() };
    let mut stated = Gathered::default();
    stated.read(0, &Message::user(own), &options);
    let is_unknown = |class: FactClass, key: &str| is_checked(class) && !facts.knows(class, key);
    // Most summaries state only known facts, and reading a thread takes long.
    if !stated.relevant(&options).any(|(class, key, _)| is_unknown(class, key)) {
        return Vec::new();
    }
    let mut search = Search::new(&stated, 1, &options);
    thread.iter().for_each(|message| search.read(message));
    let mut missing = search.retention().missing;
    missing.retain(|fact| is_unknown(fact.class, &crate::prose::key(fact.class, &fact.text)));
    missing
}

fn is_checked(class: FactClass) -> bool {
    match class {
        FactClass::Path
        | FactClass::Url
        | FactClass::Command
        | FactClass::Identifier
        | FactClass::Version
        | FactClass::Hash
        | FactClass::Number
        | FactClass::Constraint => true,
        FactClass::Task | FactClass::Error | FactClass::Quote | FactClass::Checkpoint => false,
    }
}
