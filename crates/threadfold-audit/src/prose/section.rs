//! The titles and marks of the lists in an addendum, by which a later audit finds the user's words
//! again.

use std::borrow::Cow;

use crate::message::steps;

/// The title of the list of the user's statements.
pub const TYPED: &str = "The user's words:";

/// Returns the statements in the lists of the user's statements, each with the label above it.
pub(crate) fn typed_items(text: &str) -> Vec<Cow<'_, str>> {
    let (mut items, mut label): (Vec<Cow<'_, str>>, Option<&str>) = (Vec::new(), None);
    let mut inside = false;
    for line in steps::through(text).lines() {
        if line == TYPED {
            (inside, label) = (true, None);
        } else if let Some(item) = line.strip_prefix("- ").filter(|_| inside) {
            items.push(label.map_or(item.into(), |label| format!("{label}: {item}").into()));
        } else {
            label = line.strip_suffix(':').filter(|_| inside);
            inside &= label.is_some();
        }
    }
    items
}

/// The end of the line that counts what a list leaves out.
const LEFT_OUT: &str = " more of the user's sentences are left out.)";

/// Returns the last line of a list that leaves out this many statements; empty for none.
pub(crate) fn left_out_line(count: usize) -> String {
    if count == 0 { String::new() } else { format!("({count}{LEFT_OUT}\n") }
}

/// Returns a text without its lists of the user's statements.
pub fn without_typed(text: &str) -> String {
    let mut inside = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        let line = line.trim_end();
        let is_label = line.ends_with(':') && line.len() < 60;
        let is_of_list = line.starts_with("- ") || line.ends_with(LEFT_OUT) || is_label;
        inside = line == TYPED || (inside && is_of_list);
        !inside
    });
    lines.collect()
}
