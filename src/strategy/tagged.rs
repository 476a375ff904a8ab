//! Encloses a text in tags that it cannot close.

use std::collections::HashSet;

/// Encloses a text in tags that do not occur in it.
pub(super) fn tagged(name: &str, text: &str) -> String {
    let tag = free_tag(name, text);
    let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("<{tag}>\n{text}{line_break}</{tag}>")
}

/// Returns the name, with a number if the text holds its closing tag. One pass collects all taken
/// numbers, so a text full of tags costs no more.
fn free_tag(name: &str, text: &str) -> String {
    let closing = format!("</{name}");
    let taken: HashSet<&str> = text
        .match_indices(&closing)
        .filter_map(|(at, found)| text.get(at + found.len()..))
        .map(|rest| rest.split(['>', '<', '\n']).next().unwrap_or_default())
        .collect();
    if taken.is_empty() {
        return name.to_owned();
    }
    let mut numbered = (2..).map(|number| format!("-{number}"));
    let suffix = numbered.find(|suffix| !taken.contains(suffix.as_str())).unwrap_or_default();
    format!("{name}{suffix}")
}
