//! The missing facts as a short text to append to a summary.

use crate::{
    message::Text,
    prose::{FactClass, Property, one_line},
    tokens::TokenCounter,
};
use threadfold_core::retention::{Fact, KeptShare, Retention};

/// Returns the missing facts as a text of at most `budget` tokens, or `None` if no fact fits.
///
/// The tokens are shared so that every class recovers the same percentage of its weight; within a
/// class, facts with the most weight per token come first. Names, numbers and quotes get only the
/// tokens that the other classes leave, because there are so many of them. Names, versions, hashes
/// and numbers share a line; every other fact has a line of its own. No fact can begin a list or
/// close the tag around a summary.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, addendum, audit}, tokens::ByteEstimate};
///
/// let before = [Message::user("Fix src/parse.rs.")];
/// let retention = audit(&before, &[], &RetentionPolicy::default());
/// let addendum = addendum(&retention, 100, &ByteEstimate::TRIGGER).unwrap();
/// assert_eq!(addendum, "Paths:\n- src/parse.rs\n");
/// assert!(threadfold::retention::addendum(&retention, 3, &ByteEstimate::TRIGGER).is_none());
/// ```
#[must_use]
pub fn addendum(retention: &Retention, budget: u64, counter: &dyn TokenCounter) -> Option<Text> {
    addendum_up_to(100, retention, budget, counter)
}

/// Like [`addendum`], but lists facts of a class only until `wanted` percent of its weight are
/// kept.
pub(super) fn addendum_up_to(
    wanted: u64,
    retention: &Retention,
    budget: u64,
    counter: &dyn TokenCounter,
) -> Option<Text> {
    let mut facts = choose(wanted, retention, budget, counter);
    // The lines were counted one by one, and the whole text may have more tokens than their sum.
    while !facts.is_empty() {
        let text = write_lists(&facts);
        if counter.text(&text) <= budget {
            return Some(text.into());
        }
        facts.truncate(facts.len() - facts.len().div_ceil(8));
    }
    None
}

/// Returns the lines that fit the budget, each with its class, in the order of choice.
fn choose(
    wanted: u64,
    retention: &Retention,
    budget: u64,
    counter: &dyn TokenCounter,
) -> Vec<(FactClass, String)> {
    let mut room = budget;
    let classes = FactClass::ALL.iter();
    let classes = classes.filter_map(|class| Candidates::of(*class, retention, counter));
    let mut classes: Vec<Candidates> = classes.collect();
    let mut lines = Vec::new();
    while let Some(candidates) = classes
        .iter_mut()
        .filter(|candidates| candidates.lacks(wanted))
        .min_by_key(|candidates| candidates.rank())
    {
        let Some(line) = candidates.missing.pop() else { break };
        let title = if candidates.opened { 0 } else { candidates.title_tokens };
        let cost = line.tokens.saturating_add(title);
        if cost <= room {
            room -= cost;
            candidates.opened = true;
            candidates.share.kept_weight += u64::from(line.weight);
            lines.push((candidates.class, line.text));
        }
    }
    lines
}

/// The missing facts of a class that were not chosen yet.
struct Candidates {
    class: FactClass,
    /// The kept share of the class with the facts chosen so far.
    share: KeptShare,
    title_tokens: u64,
    /// Whether a fact of the class was chosen. The tokens of its title are then already counted.
    opened: bool,
    /// The candidates, the next one to choose last.
    missing: Vec<Line>,
}

struct Line {
    text: String,
    weight: u32,
    tokens: u64,
}

impl Candidates {
    fn of(class: FactClass, retention: &Retention, counter: &dyn TokenCounter) -> Option<Self> {
        let missing = retention.missing.iter().filter(|fact| fact.class == class);
        let mut missing: Vec<Line> = missing.map(|fact| Line::of(fact, counter)).collect();
        if missing.is_empty() {
            return None;
        }
        missing.reverse();
        missing.sort_by_key(|line| u64::from(line.weight) * 1_000 / line.tokens);
        let title_tokens = counter.text(&format!("{}\n\n", class.title()));
        Some(Self { class, share: retention.of(class), title_tokens, opened: false, missing })
    }

    fn lacks(&self, wanted: u64) -> bool {
        self.share.weight_percent() < wanted && !self.missing.is_empty()
    }

    /// The class with the lowest rank is next: the class with the lowest share, and abundant classes
    /// last.
    fn rank(&self) -> (bool, u64) {
        (self.class.is(Property::Abundant), self.share.weight_percent())
    }
}

impl Line {
    fn of(fact: &Fact, counter: &dyn TokenCounter) -> Self {
        let text = one_line(&fact.text).into_owned();
        let tokens = counter.text(&format!("- {text}\n")).max(1);
        Self { text, weight: fact.weight, tokens }
    }
}

fn write_lists(facts: &[(FactClass, String)]) -> String {
    let mut lists = Vec::new();
    for class in FactClass::ALL {
        let of_class = facts.iter().filter(|(of, _)| *of == class).map(|(_, text)| text.as_str());
        let of_class: Vec<&str> = of_class.collect();
        if !of_class.is_empty() {
            let is_short = class.is(Property::Short);
            let (first, between) = if is_short { (" ", ", ") } else { ("\n- ", "\n- ") };
            lists.push(format!("{}{first}{}\n", class.title(), of_class.join(between)));
        }
    }
    lists.join("\n")
}
