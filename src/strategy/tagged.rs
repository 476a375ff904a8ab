//! Encloses a text in tags that it cannot close.

use std::collections::HashSet;

/// Encloses a text in tags that do not occur in it.
pub(super) fn tagged(name: &str, text: &str) -> String {
    let tag = free_tag(name, text);
    let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("<{tag}>\n{text}{line_break}</{tag}>")
}

/// Returns the name, with a number if the text holds its closing tag. One pass collects all used
/// numbers, so the time stays linear in a text full of tags.
fn free_tag(name: &str, text: &str) -> String {
    let closing = format!("</{name}");
    let used: HashSet<&str> = text
        .match_indices(&closing)
        .filter_map(|(at, found)| text.get(at + found.len()..))
        .map(|rest| rest.split(['>', '<', '\n']).next().unwrap_or_default())
        .collect();
    if used.is_empty() {
        return name.to_owned();
    }
    let mut number: usize = 2;
    while used.contains(format!("-{number}").as_str()) {
        number += 1;
    }
    format!("{name}-{number}")
}
