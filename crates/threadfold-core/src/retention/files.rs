//! Groups spellings of paths that name the same file.
//!
//! `./src/a.rs`, `/repo/src/a.rs` and `src/a.rs` are one file, because one ends with the other at a
//! slash and no other known path has this ending. If `lib/src/a.rs` is known too, `src/a.rs` may be
//! either, so it counts as a file of its own.

use std::collections::HashMap;

/// The maximum number of folders at the end of a path that are compared.
const DEEPEST: usize = 40;

/// The number of the file that each spelling names.
#[derive(Debug, Default)]
pub(super) struct Files<'a> {
    files: HashMap<&'a str, usize>,
}

impl<'a> Files<'a> {
    /// Groups spellings by file. They are keys of paths from `prose::key`.
    pub(super) fn new(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys: Vec<&str> = keys.into_iter().collect();
        keys.sort_unstable_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        keys.dedup();
        // The only file with this ending, or `None` if several have it.
        let mut ends: HashMap<&str, Option<usize>> = HashMap::new();
        let mut files = HashMap::new();
        for (number, key) in keys.into_iter().enumerate() {
            let longer = ends.get(key).copied().flatten();
            files.insert(key, longer.unwrap_or(number));
            if longer.is_none() {
                for end in ends_of(key) {
                    let owner = ends.entry(end).or_insert(Some(number));
                    *owner = owner.filter(|owner| *owner == number);
                }
            }
        }
        Self { files }
    }

    /// Returns the number of the file that a spelling names.
    pub(super) fn file(&self, key: &str) -> Option<usize> {
        self.files.get(key).copied()
    }
}

/// Returns the whole path, and its ends after each of its last slashes.
fn ends_of(key: &str) -> impl Iterator<Item = &str> {
    let ends = key.rmatch_indices('/').take(DEEPEST).filter_map(|(at, _)| key.get(at + 1..));
    std::iter::once(key).chain(ends)
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
