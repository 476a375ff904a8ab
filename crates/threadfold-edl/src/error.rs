//! The two errors: a script that cannot be read, and an edit that cannot be carried out.

use serde::Serialize;

/// A script that cannot be read. None of it was run.
///
/// ```
/// use threadfold_edl::Script;
///
/// let error = Script::parse("file notes.md\nselect here").unwrap_err();
/// assert_eq!((error.line, error.column), (2, 8));
/// assert!(error.to_string().starts_with("line 2, column 8: expected a pattern"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct ParseError {
    /// The line of the script, counted from 1.
    pub line: usize,
    /// The character within the line, counted from 1.
    pub column: usize,
    /// What was expected and what was found. A note follows if a heredoc may have ended too early.
    pub message: String,
}

/// A mistake in a script, before its line and column are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Whether the script is longer than [`Limits`](super::Limits) allows.
    pub(crate) is_limit: bool,
    pub(crate) message: String,
}

impl From<String> for Mistake {
    fn from(message: String) -> Self {
        Self { is_limit: false, message }
    }
}

/// An edit that cannot be carried out. In a script it fails its file: none of the file's changes
/// are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EditError {
    /// A path without a file name, such as `/` or `a/..`.
    #[error("path `{path}` names no file")]
    EmptyPath {
        /// The path as written.
        path: String,
    },
    /// `file` names a file that is not in the workspace.
    #[error("there is no such file; `newfile` makes one")]
    FileNotFound,
    /// `newfile` names a file that is in the workspace, or that the script has opened before.
    #[error("the file exists already; `file` opens it")]
    FileExists,
    /// No text matches.
    #[error("`{command}` found no match of {pattern}{}", hint(pattern))]
    NoMatch {
        /// The command.
        command: &'static str,
        /// The pattern, abridged.
        pattern: String,
    },
    /// The command needs one match, and there are more.
    #[error("`{command}` expected 1 match of {pattern}, found {found}")]
    SeveralMatches {
        /// The command.
        command: &'static str,
        /// The pattern, abridged.
        pattern: String,
        /// The number of matches.
        found: usize,
    },
    /// The command needs one selected range, and there are more.
    #[error("`{command}` needs 1 selected range, there are {found}")]
    SeveralSelected {
        /// The command.
        command: &'static str,
        /// The number of selected ranges.
        found: usize,
    },
    /// `retain_nth` names a range that does not exist.
    #[error(
        "there is no selected range {index}; {found} are selected (counted from 0, or from -1 back)"
    )]
    NoSuchRange {
        /// The requested index.
        index: i64,
        /// The number of selected ranges.
        found: usize,
    },
    /// The position or range is not in the file, was replaced by the script, is outside the text
    /// that the command searches, or is reversed.
    #[error("{message}")]
    InvalidPosition {
        /// Which of these problems it is, with the numbers.
        message: String,
    },
    /// The pattern is a heredoc without text.
    #[error("the pattern is empty")]
    EmptyPattern,
    /// No register has this name.
    #[error("there is no register `{register}`")]
    UnknownRegister {
        /// The name, abridged.
        register: String,
    },
    /// The command has more matches than [`Limits::matches`](super::Limits::matches).
    #[error("`{command}` found more than {limit} matches of {pattern}")]
    TooManyMatches {
        /// The command.
        command: &'static str,
        /// The pattern, abridged.
        pattern: String,
        /// The limit.
        limit: usize,
    },
    /// The run has read and copied more than
    /// [`Limits::searched_bytes`](super::Limits::searched_bytes).
    #[error("the run has searched and copied more than {limit} bytes")]
    SearchTooLong {
        /// The limit.
        limit: u64,
    },
    /// The open files would exceed [`Limits::output_bytes`](super::Limits::output_bytes).
    #[error("the open files would have {found} bytes together, the limit is {limit}")]
    OutputTooLarge {
        /// The size that the files would have.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// There would be too many registers, or their texts would be too large.
    #[error("the workspace's registers are full (at most {registers}, {bytes} bytes together)")]
    RegistersFull {
        /// The limit on their number.
        registers: usize,
        /// The limit on their size.
        bytes: usize,
    },
}

fn hint(pattern: &str) -> &'static str {
    if pattern.starts_with("<<") { " (a heredoc matches whole lines only)" } else { "" }
}
