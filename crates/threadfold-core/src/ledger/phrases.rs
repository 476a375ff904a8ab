//! The lists of `phrases.txt`.

use std::{collections::HashMap, sync::LazyLock};

/// The text of each list, and its lines.
static LISTS: LazyLock<HashMap<&str, (&str, Vec<String>)>> = LazyLock::new(|| {
    let lists = include_str!("phrases.txt").split("\n[").skip(1);
    let lists = lists.filter_map(|list| list.split_once(']'));
    lists
        .map(|(title, body)| {
            let comments = body.rfind("\n# ").map_or(0, |at| at + 1);
            let body = body.get(comments..).unwrap_or_default();
            let body = body.find('\n').and_then(|at| body.get(at..)).unwrap_or_default();
            (title, (body, body.trim().lines().map(|line| line.replace('_', " ")).collect()))
        })
        .collect()
});

/// Returns the words of the list with this title, with a space or a line break around each.
pub(super) fn list(title: &str) -> &'static str {
    debug_assert!(LISTS.contains_key(title), "{title}");
    LISTS.get(title).map_or("", |(words, _)| words)
}

/// Returns the phrases of the list with this title.
pub(super) fn phrases(title: &str) -> &'static [String] {
    debug_assert!(LISTS.contains_key(title), "{title}");
    LISTS.get(title).map_or(&[], |(_, phrases)| phrases)
}
