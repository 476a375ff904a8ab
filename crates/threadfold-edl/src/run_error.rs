//! Why a command fails, and with it everything that a script does to the file.

use serde::Serialize;

/// A command that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunError {
    /// `file` names a file that the workspace does not have.
    #[error("there is no such file; `newfile` makes one")]
    FileNotFound,
    /// `newfile` names a file that the workspace has, or that the script has opened before.
    #[error("the file exists already; `file` opens it")]
    FileExists,
    /// Nothing matches.
    #[error("`{command}` found no match of {pattern}{}", hint(pattern))]
    NoMatch {
        /// The command.
        command: &'static str,
        /// The pattern, abridged.
        pattern: String,
    },
    /// One match is due, and there are more.
    #[error("`{command}` expected 1 match of {pattern}, found {found}")]
    SeveralMatches {
        /// The command.
        command: &'static str,
        /// The pattern, abridged.
        pattern: String,
        /// How many there are.
        found: usize,
    },
    /// The command goes on from one selected range, and there are more.
    #[error("`{command}` needs 1 selected range, there are {found}")]
    SeveralSelected {
        /// The command.
        command: &'static str,
        /// How many there are.
        found: usize,
    },
    /// `retain_nth` names a range that is not there.
    #[error("there is no selected range {index}, only {found} (counted from 0, or from -1 back)")]
    NoSuchRange {
        /// The number that was given.
        index: i64,
        /// How many ranges are selected.
        found: usize,
    },
    /// The file had no such line when it was loaded.
    #[error("there is no line {line}: the file was loaded with lines 1 to {lines}")]
    LineOutOfRange {
        /// The line.
        line: usize,
        /// How many lines there were.
        lines: usize,
    },
    /// A column past the end of its line.
    #[error("there is no column {column} in line {line}, which has columns 0 to {columns}")]
    ColumnOutOfRange {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
        /// The characters in the line.
        columns: usize,
    },
    /// A position within a text that the script has replaced.
    #[error("position {position} lies inside text that this script has replaced")]
    PositionReplaced {
        /// The position.
        position: String,
    },
    /// A position outside of where the command looks.
    #[error("{pattern} lies outside of what `{command}` looks at")]
    PositionOutside {
        /// The command.
        command: &'static str,
        /// The position or range.
        pattern: String,
    },
    /// A range that ends before it begins.
    #[error("the range {pattern} ends before it begins")]
    ReversedRange {
        /// The range.
        pattern: String,
    },
    /// A heredoc without text as a pattern.
    #[error("the pattern is empty")]
    EmptyPattern,
    /// A register that was never filled.
    #[error("there is no register `{register}`")]
    UnknownRegister {
        /// Its name, abridged.
        register: String,
    },
    /// A command matches too often.
    #[error("`{command}` found more than {limit} matches of {pattern}")]
    TooManyMatches {
        /// The command.
        command: &'static str,
        /// The pattern, abridged.
        pattern: String,
        /// The limit.
        limit: usize,
    },
    /// The run has searched and copied too much text.
    #[error("the run has searched and copied more than {limit} bytes")]
    SearchTooLong {
        /// The limit.
        limit: u64,
    },
    /// The files would grow too large.
    #[error("the open files would have {found} bytes together, the limit is {limit}")]
    OutputTooLarge {
        /// What they would have.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The registers would be too many or too large.
    #[error("the workspace's registers are full (at most {registers}, {bytes} bytes together)")]
    RegistersFull {
        /// How many there may be.
        registers: usize,
        /// How many bytes they may have.
        bytes: usize,
    },
}

fn hint(pattern: &str) -> &'static str {
    if pattern.starts_with("<<") { " (a heredoc matches whole lines only)" } else { "" }
}
