//! Paths of files in a workspace, in one spelling each.
//!
//! Two spellings of a path must not be two files, so a path is brought into its normal form once,
//! where it enters. The file system is never asked: `..` is resolved in the text.

use std::{borrow::Borrow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The path of a file, without empty, `.` and resolvable `..` parts.
///
/// `/a` and `a` are different files. A `..` that would leave the root of an absolute path is
/// dropped; one that leads out of a relative path stays.
///
/// ```
/// use threadfold::edl::FilePath;
///
/// let path: FilePath = "./notes//old/../today.md".parse()?;
/// assert_eq!(path.as_str(), "notes/today.md");
/// assert!("a/..".parse::<FilePath>().is_err());
/// # Ok::<(), threadfold::edl::EmptyPath>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilePath(String);

/// A path that names no file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path `{path}` names no file")]
#[non_exhaustive]
pub struct EmptyPath {
    /// The path as it was written.
    pub path: String,
}

impl FilePath {
    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FilePath {
    type Err = EmptyPath;

    fn from_str(path: &str) -> Result<Self, EmptyPath> {
        let absolute = path.starts_with('/');
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                ".." if absolute => {}
                name => parts.push(name),
            }
        }
        if parts.last().is_none_or(|last| *last == "..") {
            return Err(EmptyPath { path: path.to_owned() });
        }
        let root = if absolute { "/" } else { "" };
        Ok(Self(format!("{root}{}", parts.join("/"))))
    }
}

impl TryFrom<String> for FilePath {
    type Error = EmptyPath;

    fn try_from(path: String) -> Result<Self, EmptyPath> {
        path.parse()
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0
    }
}

impl Borrow<str> for FilePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(path: &str) -> Option<String> {
        path.parse::<FilePath>().ok().map(String::from)
    }

    #[test]
    fn spellings_of_a_path_become_one() {
        for spelling in ["/a/b", "/a//b", "/a/./b", "/a/c/../b", "/../a/b", "/a/b/"] {
            assert_eq!(normal(spelling).as_deref(), Some("/a/b"), "{spelling}");
        }
    }

    #[test]
    fn a_relative_path_may_lead_out() {
        assert_eq!(normal("../../a").as_deref(), Some("../../a"));
        assert_eq!(normal("a/../../b").as_deref(), Some("../b"));
    }

    #[test]
    fn a_map_by_paths_is_asked_with_a_text() {
        let map: std::collections::BTreeMap<FilePath, u8> =
            ["/b/../a", "/b"].into_iter().filter_map(|it| it.parse().ok()).zip(1..).collect();
        assert_eq!(
            ["/a", "/b", "", "a"].map(|path| map.get(path)),
            [Some(&1), Some(&2), None, None]
        );
    }

    #[test]
    fn a_path_without_a_name_is_refused() {
        for path in ["", "/", ".", "a/..", "..", "//", "../.."] {
            assert_eq!(normal(path), None, "{path}");
        }
    }
}
