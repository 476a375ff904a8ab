//! The titles of the lists in an addendum, so that a later audit finds the user's words again.

use super::class::FactClass;
use crate::message::steps;

/// Returns the title of the list for a class.
pub(crate) fn title(class: FactClass) -> &'static str {
    match class {
        FactClass::Constraint => "What the user demanded, word for word:",
        FactClass::Task => "Still to be done:",
        FactClass::Error => "Errors:",
        FactClass::Path => "Paths:",
        FactClass::Url => "Addresses:",
        FactClass::Command => "Commands:",
        FactClass::Identifier => "Names:",
        FactClass::Version => "Versions:",
        FactClass::Hash => "Hashes:",
        FactClass::Number => "Numbers:",
        FactClass::Quote => "Quoted:",
        FactClass::Checkpoint => "Checkpoints:",
    }
}

/// Returns the user's demands that the addendum in a text lists.
pub(crate) fn constraints(text: &str) -> impl Iterator<Item = &str> {
    let head = title(FactClass::Constraint);
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let item = line.strip_prefix("- ");
        inside = line == head || (inside && item.is_some());
        item.filter(|_| inside)
    })
}

/// The title of the list of what the user typed.
pub const TYPED: &str = "The user's words:";

/// The end of a line in that list that changed an earlier value.
pub(crate) const CHANGED: &str = " (changed)";

/// Returns the statements in the lists of what the user typed, each with its label, and whether it
/// changed an earlier value.
pub(crate) fn typed_items(text: &str) -> Vec<(String, bool)> {
    let (mut items, mut label) = (Vec::new(), None);
    let mut inside = false;
    for line in steps::through(text).lines() {
        if line == TYPED {
            (inside, label) = (true, None);
        } else if let Some(item) = line.strip_prefix("- ").filter(|_| inside) {
            let (item, changed) =
                item.strip_suffix(CHANGED).map_or((item, false), |item| (item, true));
            let text = label.map_or(item.to_owned(), |label| format!("{label}: {item}"));
            items.push((text, changed));
        } else {
            label = line.strip_suffix(':').filter(|_| inside);
            inside &= label.is_some();
        }
    }
    items
}

/// Returns a text without its lists of what the user typed.
pub fn without_typed(text: &str) -> String {
    let mut inside = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        let line = line.trim_end();
        let is_label = line.ends_with(':') && line.len() < 60;
        inside = line == TYPED || (inside && (line.starts_with("- ") || is_label));
        !inside
    });
    lines.collect()
}
