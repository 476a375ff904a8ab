//! Which spellings of paths are the same file.
//!
//! `./src/a.rs`, `/repo/src/a.rs` and `src/a.rs` are, where one ends with the other at a slash and
//! nothing else in sight ends so. With `lib/src/a.rs` beside them, `src/a.rs` may be either, so it
//! is neither.

use std::collections::HashMap;

/// How many folders up a path is looked at.
const DEEPEST: usize = 40;

/// Files by their spellings.
#[derive(Debug, Default)]
pub(super) struct Files<'a> {
    files: HashMap<&'a str, usize>,
}

impl<'a> Files<'a> {
    /// Puts these spellings together. They are keys, as `prose::key` gives them.
    pub(super) fn new(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys: Vec<&str> = keys.into_iter().collect();
        keys.sort_unstable_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        keys.dedup();
        let mut ends: HashMap<&str, Option<usize>> = HashMap::new();
        let mut files = HashMap::new();
        for (number, key) in keys.into_iter().enumerate() {
            let known = ends.get(key).copied().flatten();
            let file = known.unwrap_or(number);
            files.insert(key, file);
            if known.is_none() {
                for end in ends_of(key) {
                    let entry = ends.entry(end).or_insert(Some(number));
                    *entry = entry.filter(|known| *known == number);
                }
            }
        }
        Self { files }
    }

    /// The file of a spelling, by a number.
    pub(super) fn file(&self, key: &str) -> Option<usize> {
        self.files.get(key).copied()
    }
}

/// A path and what it ends with behind each of its slashes, the whole first.
fn ends_of(key: &str) -> impl Iterator<Item = &str> {
    let behind = key.rmatch_indices('/').take(DEEPEST).filter_map(|(at, _)| key.get(at + 1..));
    std::iter::once(key).chain(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_one_file_unless_they_may_be_two() {
        let files = Files::new(["repo/src/a.rs", "src/a.rs", "a.rs"]);
        assert_eq!(files.file("a.rs"), files.file("repo/src/a.rs"));
        let files = Files::new(["one/src/a.rs", "two/src/a.rs", "src/a.rs"]);
        assert_ne!(files.file("src/a.rs"), files.file("one/src/a.rs"));
        assert_ne!(files.file("src/a.rs"), files.file("two/src/a.rs"));
    }
}
