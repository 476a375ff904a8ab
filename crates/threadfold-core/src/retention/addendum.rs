//! What is missing, as a short text to stand beside a summary.

use super::{
    fact::Fact,
    report::{Recall, Retention},
};
use crate::{
    message::Text,
    prose::{FactClass, one_line, title},
    tokens::TokenCounter,
};

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
/// What the user demanded comes first, in the user's words. The rest of the room is shared so that
/// every class gets the same part of its weight back, within a class what weighs most for its
/// length first; names, numbers and quoted texts, which abound, get what the others leave. Names of
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
    addendum_up_to(100, retention, budget, counter)
}

/// The same of no more than what brings each class to so many percent of its weight.
pub(super) fn addendum_up_to(
    wanted: u64,
    retention: &Retention,
    budget: u64,
    counter: &dyn TokenCounter,
) -> Option<Addendum> {
    let mut facts = chosen(wanted, retention, budget, counter);
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
fn chosen(
    wanted: u64,
    retention: &Retention,
    budget: u64,
    counter: &dyn TokenCounter,
) -> Vec<(FactClass, String)> {
    let mut room = budget;
    let mut shelves: Vec<Shelf> =
        FactClass::ALL.iter().filter_map(|class| Shelf::of(*class, retention, counter)).collect();
    let mut lines = Vec::new();
    while let Some(shelf) =
        shelves.iter_mut().filter(|shelf| shelf.lacks(wanted)).min_by_key(|shelf| shelf.rank())
    {
        let Some(line) = shelf.missing.pop() else { break };
        let head = if shelf.opened { 0 } else { shelf.head };
        let cost = line.cost.saturating_add(head);
        if cost <= room {
            room -= cost;
            shelf.opened = true;
            shelf.recall.kept_weight += u64::from(line.weight);
            lines.push((shelf.class, line.text));
        }
    }
    lines
}

/// What is missing of a class, and how much of it stands with what was chosen.
struct Shelf {
    class: FactClass,
    recall: Recall,
    /// What it costs to open a list of this class.
    head: u64,
    opened: bool,
    /// What is worth most for its length is last.
    missing: Vec<Line>,
}

struct Line {
    text: String,
    weight: u32,
    cost: u64,
}

impl Shelf {
    fn of(class: FactClass, retention: &Retention, counter: &dyn TokenCounter) -> Option<Self> {
        let missing = retention.missing.iter().filter(|fact| fact.class == class);
        let mut missing: Vec<Line> = missing.map(|fact| Line::of(fact, counter)).collect();
        if class == FactClass::Checkpoint || missing.is_empty() {
            return None;
        }
        missing.reverse();
        // What the user demanded is not weighed against its length.
        if class != FactClass::Constraint {
            missing.sort_by_key(Line::worth);
        }
        let head = counter.text(&format!("{}\n\n", title(class)));
        Some(Self { class, recall: retention.of(class), head, opened: false, missing })
    }

    fn lacks(&self, wanted: u64) -> bool {
        let enough = self.class != FactClass::Constraint && self.recall.weight_percent() >= wanted;
        !enough && !self.missing.is_empty()
    }

    /// The least is served first: constraints, then whatever lacks most, and what tools say in
    /// plenty last.
    fn rank(&self) -> (bool, bool, u64) {
        (self.class != FactClass::Constraint, self.class.abounds(), self.recall.weight_percent())
    }
}

impl Line {
    fn of(fact: &Fact, counter: &dyn TokenCounter) -> Self {
        let text = one_line(&fact.text).into_owned();
        let cost = counter.text(&format!("- {text}\n")).max(1);
        Self { text, weight: fact.weight, cost }
    }

    fn worth(&self) -> u64 {
        u64::from(self.weight) * 1_000 / self.cost
    }
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
