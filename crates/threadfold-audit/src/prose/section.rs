//! The titles and marks of the lists in an addendum, by which a later audit finds the user's words
//! again.

use super::class::FactClass;
use crate::message::steps;

/// Returns the user's demands that the addendum in a text lists.
pub(crate) fn constraints(text: &str) -> impl Iterator<Item = &str> {
    let head = FactClass::Constraint.title();
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let item = line.strip_prefix("- ");
        inside = line == head || (inside && item.is_some());
        item.filter(|_| inside)
    })
}

/// The title of the list of the user's statements.
pub const TYPED: &str = "The user's words:";

/// The mark at the end of a line in that list, if its statement changed an earlier value.
pub(crate) const CHANGED: &str = " (changed)";

/// The marks that begin a line in that list: the usual one, and that of a line whose label is
/// omitted to save room.
pub(crate) const BULLET: &str = "- ";
pub(crate) const UNLABELLED: &str = "* ";

/// A statement in the list of the user's statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedItem {
    /// The words, with their label if the list shows it.
    pub(crate) text: String,
    /// Whether the statement changed an earlier value.
    pub(crate) is_change: bool,
    /// Whether the list omits a label that the user put before it.
    pub(crate) lost_label: bool,
}

/// Returns the statements in the lists of the user's statements.
pub(crate) fn typed_items(text: &str) -> Vec<TypedItem> {
    let (mut items, mut label) = (Vec::new(), None);
    let mut inside = false;
    for line in steps::through(text).lines() {
        if line == TYPED {
            (inside, label) = (true, None);
        } else if let Some((item, lost_label)) = listed(line).filter(|_| inside) {
            let (item, is_change) =
                item.strip_suffix(CHANGED).map_or((item, false), |item| (item, true));
            let label = label.filter(|_| !lost_label);
            let text = label.map_or(item.to_owned(), |label| format!("{label}: {item}"));
            items.push(TypedItem { text, is_change, lost_label });
        } else {
            label = line.strip_suffix(':').filter(|_| inside);
            inside &= label.is_some();
        }
    }
    items
}

/// Returns the list item on a line, and whether its label is omitted.
fn listed(line: &str) -> Option<(&str, bool)> {
    let unlabelled = line.strip_prefix(UNLABELLED).map(|item| (item, true));
    unlabelled.or_else(|| line.strip_prefix(BULLET).map(|item| (item, false)))
}

/// Returns a text without its lists of the user's statements.
pub fn without_typed(text: &str) -> String {
    let mut inside = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        let line = line.trim_end();
        let is_label = line.ends_with(':') && line.len() < 60;
        inside = line == TYPED || (inside && (listed(line).is_some() || is_label));
        !inside
    });
    lines.collect()
}
