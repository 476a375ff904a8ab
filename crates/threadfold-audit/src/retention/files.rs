//! Groups spellings of paths that name the same file.
//!
//! `./src/a.rs`, `/repo/src/a.rs` and `src/a.rs` are one file, because one ends with the other at a
//! slash and no other known path has this ending. If `lib/src/a.rs` is known too, `src/a.rs` may be
//! either, so it counts as a file of its own.

use std::{cmp::Reverse, collections::HashMap};

/// The maximum number of folders at the end of a path that are compared.
const DEEPEST: usize = 40;

/// The files that a set of spellings names. Each file has a number.
#[derive(Debug, Default)]
pub(super) struct Files<'a> {
    /// The longest spelling of each file.
    longest: Vec<&'a str>,
    /// The file whose path has this ending; `None` if several files have it.
    ends: HashMap<&'a str, Option<usize>>,
    /// The files of ambiguous spellings: several longer spellings end with each.
    own: HashMap<&'a str, usize>,
}

impl<'a> Files<'a> {
    /// Groups spellings by file. They are keys of paths from `prose::key`.
    pub(super) fn new(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys: Vec<&str> = keys.into_iter().collect();
        keys.sort_unstable_by_key(|key| (Reverse(key.len()), *key));
        keys.dedup();
        let mut files = Self::default();
        for key in keys {
            if files.file(key).is_none() {
                files.add(key);
            }
        }
        files
    }

    fn add(&mut self, key: &'a str) {
        let number = self.longest.len();
        self.longest.push(key);
        if self.ends.contains_key(key) {
            self.own.insert(key, number);
        }
        for end in ends_of(key) {
            let owner = self.ends.entry(end).or_insert(Some(number));
            *owner = owner.filter(|owner| *owner == number);
        }
    }

    /// Returns the number of the file that a spelling names. The spelling may be longer than every
    /// known spelling of the file.
    pub(super) fn file(&self, key: &str) -> Option<usize> {
        if let Some(own) = self.own.get(key) {
            return Some(*own);
        }
        let known = ends_of(key).map_while(|end| Some((end, *self.ends.get(end)?)));
        let (end, owner) = known.last()?;
        owner.filter(|owner| end == key || self.longest.get(*owner) == Some(&end))
    }
}

/// Returns the endings of a path after each of its last slashes, and then the whole path.
fn ends_of(key: &str) -> impl Iterator<Item = &str> {
    let ends = key.rmatch_indices('/').take(DEEPEST).filter_map(|(at, _)| key.get(at + 1..));
    ends.chain([key])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_one_file_unless_they_are_ambiguous() {
        let files = Files::new(["repo/src/a.rs", "src/a.rs", "a.rs"]);
        assert_eq!(files.file("a.rs"), files.file("repo/src/a.rs"));
        let files = Files::new(["one/src/a.rs", "two/src/a.rs", "src/a.rs"]);
        assert_ne!(files.file("src/a.rs"), files.file("one/src/a.rs"));
        assert_ne!(files.file("src/a.rs"), files.file("two/src/a.rs"));
    }

    #[test]
    fn a_longer_spelling_of_a_known_file_names_it_and_another_folder_does_not() {
        let files = Files::new(["src/a.rs", "one/b.rs", "two/b.rs", "b.rs"]);
        assert_eq!(files.file("/home/me/src/a.rs"), files.file("src/a.rs"));
        assert_eq!(files.file("a.rs"), files.file("src/a.rs"));
        for other in ["lib/a.rs", "three/b.rs", "c.rs", "src/a.rs/c.rs"] {
            assert_eq!(files.file(other), None, "{other}");
        }
    }
}
