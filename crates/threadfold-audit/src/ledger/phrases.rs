//! The lists of `phrases.txt`.

use std::{collections::HashMap, sync::LazyLock};

/// The text of each list, and its lines.
static LISTS: LazyLock<HashMap<&str, (&str, Vec<String>)>> = LazyLock::new(|| {
    let lists = include_str!("phrases.txt").split("\n[").filter_map(|list| list.split_once(']'));
    let read = |(title, body): (&'static str, &'static str)| {
        let comments = body.rfind("\n# ").map_or(0, |at| at + 1);
        let body = body.get(comments..).unwrap_or_default();
        let body = body.find('\n').and_then(|at| body.get(at..)).unwrap_or_default();
        (title, (body, body.trim().lines().map(|line| line.replace('_', " ")).collect()))
    };
    lists.map(read).collect()
});

/// Returns the words of the list with this title, with a space or a line break around each.
pub(super) fn list(title: &str) -> &'static str {
    LISTS.get(title).map_or("", |(words, _)| words)
}

/// Returns the phrases of the list with this title.
pub(super) fn phrases(title: &str) -> &'static [String] {
    LISTS.get(title).map_or(&[], |(_, phrases)| phrases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_used_and_every_used_list_exists() {
        let sources = [
            include_str!("announce.rs"),
            include_str!("asking.rs"),
            include_str!("consent.rs"),
            include_str!("correction.rs"),
            include_str!("meaning.rs"),
            include_str!("standing.rs"),
        ]
        .join("\n")
        .replace("list(title)", "");
        let calls = ["list(\"", "phrases(\"", "rest(\"", "has(\""];
        let used = calls.iter().flat_map(|call| sources.split(call).skip(1));
        let mut used: Vec<&str> = used.filter_map(|text| text.split('"').next()).collect();
        used.sort_unstable();
        used.dedup();
        let mut titles: Vec<&str> = LISTS.keys().copied().collect();
        titles.sort_unstable();
        assert_eq!(used, titles);
        assert!(list("ours").starts_with('\n') && list("ours").ends_with('\n'));
        assert!(phrases("lasting").contains(&" any more ".to_owned()));
    }
}
