//! The titles and marks of the lists in an addendum, by which a later audit finds the user's words
//! again.

use crate::message::steps;

/// The heading of the task, if a digest shows it.
pub const TASK: &str = "## The task";

/// The title of the list of the user's statements.
pub const TYPED: &str = "The user's words:";

/// Returns the statements in the lists of the user's statements.
pub(crate) fn typed_items(text: &str) -> Vec<&str> {
    let mut inside = false;
    let items = steps::through(text).lines().filter_map(|line| {
        let item = line.strip_prefix("- ").filter(|_| inside);
        inside = line == TYPED || item.is_some();
        item
    });
    items.collect()
}

/// The end of the line that counts what a list leaves out.
const LEFT_OUT: &str = " more are left out.)";

/// Returns the last line of a list that leaves out this many statements; empty for none.
pub(crate) fn left_out_line(count: usize) -> String {
    if count == 0 { String::new() } else { format!("({count}{LEFT_OUT}\n") }
}

/// Returns a text without its lists of the user's statements.
pub fn without_typed(text: &str) -> String {
    without_list(text, TYPED, LEFT_OUT)
}

/// Returns a text without the lists that have this title. A list may end with a line that counts
/// what is left out, and ends so.
pub(crate) fn without_list(text: &str, title: &str, end: &str) -> String {
    let mut inside = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        let line = line.trim();
        inside = line == title || (inside && (line.starts_with("- ") || line.ends_with(end)));
        !inside
    });
    lines.collect()
}
