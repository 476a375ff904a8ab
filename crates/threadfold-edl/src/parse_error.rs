//! Why a script cannot be read.

use serde::Serialize;

use super::{pattern_error::RegexError, place::Place};

/// A script that is not one. Nothing of it has run.
///
/// ```
/// use threadfold::edl::Script;
///
/// let error = Script::parse("file notes.md\nselect here").unwrap_err();
/// assert_eq!((error.place.line, error.place.column), (2, 8));
/// assert!(error.to_string().starts_with("line 2, column 8: expected a pattern"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {}, column {}: {kind}{}", place.line, place.column, note(reused_tags))]
#[non_exhaustive]
pub struct ParseError {
    /// Where in the script.
    pub place: Place,
    /// What is wrong there.
    pub kind: ParseErrorKind,
    /// Heredoc tags that stand more than once on a line of their own. Such a line within a text
    /// ends the heredoc early, and what follows is then read as commands.
    pub reused_tags: Vec<String>,
}

/// What is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Something else was due.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was due.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A command that does not exist.
    #[error("unknown command `{word}`, expected one of: {}", super::words::COMMANDS.join(", "))]
    UnknownCommand {
        /// The word.
        word: String,
    },
    /// A command that needs a file, before the first `file` or `newfile`.
    #[error("`{command}` stands before any `file` or `newfile`, so there is no text to work on")]
    NoFile {
        /// The command.
        command: String,
    },
    /// A text, pattern or path that does not end.
    #[error("{what} is not closed: expected {closer} before the end of the {end}")]
    Unclosed {
        /// What was opened.
        what: &'static str,
        /// What would close it.
        closer: String,
        /// `line` or `script`.
        end: &'static str,
    },
    /// An escape in a quoted string that is neither `\"` nor `\\`.
    #[error(
        "a quoted string knows only the escapes `\\\"` and `\\\\`, found `\\{found}`; \
         use a heredoc for text of several lines"
    )]
    Escape {
        /// The character after the backslash.
        found: char,
    },
    /// A path that names no file.
    #[error("path `{path}` names no file")]
    EmptyPath {
        /// The path.
        path: String,
    },
    /// A register that cannot be told from a position.
    #[error(
        "`{word}` reads as a position and cannot name a register; \
         `replace`, `insert_before` and `insert_after` act on what is selected"
    )]
    PositionAsRegister {
        /// The word.
        word: String,
    },
    /// A number that is not one, or is too large.
    #[error("expected a whole number, found `{word}`")]
    Number {
        /// The word.
        word: String,
    },
    /// A regular expression that cannot be used.
    #[error("regular expression `/{pattern}/`: {error}")]
    Regex {
        /// The expression, abridged.
        pattern: String,
        /// What is wrong with it.
        error: RegexError,
    },
    /// The script is over its limit.
    #[error("the script has {found} bytes, the limit is {limit}")]
    ScriptTooLong {
        /// Its length.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The script has too many commands.
    #[error("the script has more than {limit} commands")]
    TooManyCommands {
        /// The limit.
        limit: usize,
    },
}

fn note(tags: &[String]) -> String {
    if tags.is_empty() {
        return String::new();
    }
    let tags: Vec<String> = tags.iter().map(|tag| format!("`{tag}`")).collect();
    format!(
        "\nnote: a heredoc ends at the first line that is its tag, and {} stands more than once \
         on a line of its own; if a text contains that line, choose a tag that it does not contain",
        tags.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_where_what_and_why_a_tag_may_be_at_fault() {
        let error = ParseError {
            place: Place { line: 3, column: 1 },
            kind: ParseErrorKind::UnknownCommand { word: "more".to_owned() },
            reused_tags: vec!["END".to_owned()],
        };
        let text = error.to_string();
        assert!(
            text.starts_with("line 3, column 1: unknown command `more`, expected one of: file")
        );
        assert!(text.contains("note: ") && text.contains("`END` stands more than once"));
    }
}
