//! What is missing, as a short text to stand beside a summary.

use super::{class::FactClass, fact::Fact, report::Retention, section::title};
use crate::{message::Text, render::on_one_line, tokens::TokenCounter};

/// A text that gives back what a compaction lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addendum {
    /// The text: lists in Markdown, one for each class.
    pub text: Text,
    /// How many of the missing facts it lists.
    pub listed: usize,
    /// How many of them are constraints.
    pub constraints: usize,
}

/// Returns the missing facts as a text of at most this many tokens, or `None` if there is none
/// that fits.
///
/// What the user demanded comes first, in the user's words; then what weighs most. Names of
/// checkpoints are not listed: they are gone with their messages. Every fact stands on one line of
/// its own and can neither begin a list nor close the tag that a summary stands in.
///
/// ```
/// use threadfold::{Message, retention::{AuditOptions, addendum, audit}, tokens::ByteEstimate};
///
/// let before = [Message::user("Fix src/parse.rs. Never touch the lexer.")];
/// let retention = audit(&before, &[], &AuditOptions::default());
/// let addendum = addendum(&retention, 100, &ByteEstimate::TRIGGER).unwrap();
/// assert_eq!(
///     addendum.text,
///     "What the user demanded, word for word:\n- Never touch the lexer.\n\nPaths:\n- src/parse.rs\n"
/// );
/// assert!(threadfold::retention::addendum(&retention, 3, &ByteEstimate::TRIGGER).is_none());
/// ```
#[must_use]
pub fn addendum(
    retention: &Retention,
    budget: u64,
    counter: &dyn TokenCounter,
) -> Option<Addendum> {
    let mut facts = chosen(&retention.missing, budget, counter);
    // Pieces are counted one by one, so a counter may find the whole a little longer.
    while !facts.is_empty() {
        let text = written(&facts);
        if counter.text(&text) <= budget {
            let constraints = facts.iter().filter(|(class, _)| *class == FactClass::Constraint);
            let (listed, constraints) = (facts.len(), constraints.count());
            return Some(Addendum { text: text.into(), listed, constraints });
        }
        facts.truncate(facts.len() - facts.len().div_ceil(8));
    }
    None
}

/// The lines that fit a budget, by class, what matters most first.
fn chosen(missing: &[Fact], budget: u64, counter: &dyn TokenCounter) -> Vec<(FactClass, String)> {
    let demands = |fact: &&Fact| fact.class == FactClass::Constraint;
    let others =
        |fact: &&Fact| !matches!(fact.class, FactClass::Constraint | FactClass::Checkpoint);
    let (demands, others) = (missing.iter().filter(demands), missing.iter().filter(others));
    let (mut room, mut lines, mut opened) = (budget, Vec::new(), Vec::new());
    for fact in demands.chain(others) {
        if room == 0 {
            break;
        }
        let line = safe(&fact.text);
        let head = if opened.contains(&fact.class) { "" } else { title(fact.class) };
        let cost = counter.text(&format!("{head}\n\n- {line}\n"));
        if cost <= room {
            room -= cost;
            opened.push(fact.class);
            lines.push((fact.class, line));
        }
    }
    lines
}

fn written(facts: &[(FactClass, String)]) -> String {
    let mut text = String::new();
    for class in FactClass::ALL {
        let mut lines = facts.iter().filter(|(of, _)| *of == class).peekable();
        if lines.peek().is_none() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(title(class));
        text.push('\n');
        for (_, line) in lines {
            text.push_str("- ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The tags by which kinds travel.
pub(crate) const TAGS: [&str; 5] =
    ["</", "<conversation-summary", "<system-reminder", "<context-update", "<checkpoint:"];

/// A fact on one line that neither closes nor opens a tag.
fn safe(text: &str) -> String {
    let mut line = on_one_line(text);
    for tag in TAGS {
        if line.contains(tag) {
            line = line.replace(tag, &tag.replacen('<', "< ", 1));
        }
    }
    line
}
