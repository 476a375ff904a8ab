//! The commands of a script after parsing: actions, patterns, positions, values.

use std::{fmt, sync::Arc};

use super::{
    regex::Regex,
    text::{counted, shorten},
    whole_lines::LinesPattern,
};

/// A command and its position in the script.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The line and column of the script, both counted from 1.
    pub(crate) position: (usize, usize),
    /// The command as reports quote it: on one line, without the texts that it inserts.
    pub(crate) source: String,
    pub(crate) action: Action,
}

/// What a command does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Makes a file the current one.
    Open {
        path: String,
        is_new: bool,
    },
    /// Selects the matches of a pattern.
    Select(Selector, Pattern),
    /// Keeps one of the selected ranges. The index counts from 0, or from -1 for the last range
    /// backwards.
    Retain(i64),
    /// Inserts text, or replaces the selection by it.
    Put(Side, Value),
    Delete,
    /// Moves the selected text into the register of this name.
    Cut(String),
}

/// A selection command: which text it searches, and which of the matches it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) word: &'static str,
    pub(crate) area: Area,
    pub(crate) take: Take,
    /// Also selects the text between the old selection and the match.
    pub(crate) extends: bool,
}

/// The text that a selection command searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    File,
    /// Each of the selected ranges.
    Selection,
    /// The text after the only selected range.
    After,
    /// The text before the only selected range.
    Before,
}

/// Which matches a selection command selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The only match. Several matches are an error.
    Only,
    All,
    First,
    Last,
}

/// Where text is inserted: before a selected range, after it, or in place of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Instead,
    Before,
    After,
}

/// What a selection command searches for.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Regex(Arc<Regex>),
    Lines(LinesPattern),
    /// A position, or the range from the first to the second.
    Positions(Position, Option<Position>),
}

/// A point in a file, or a whole line of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Start,
    End,
    /// A line of the file as loaded, counted from 1.
    Line(usize),
    /// A column counts characters from 0.
    Column {
        line: usize,
        column: usize,
    },
}

/// The text that an edit inserts.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The lines of a heredoc, joined by line feeds. The last line has none.
    Lines(String),
    Quoted(String),
    Register(String),
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regex(regex) => regex.fmt(formatter),
            Self::Lines(lines) => lines.fmt(formatter),
            Self::Positions(position, None) => position.fmt(formatter),
            Self::Positions(from, Some(to)) => write!(formatter, "{from}-{to}"),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => formatter.write_str("bof"),
            Self::End => formatter.write_str("eof"),
            Self::Line(line) => write!(formatter, "{line}"),
            Self::Column { line, column } => write!(formatter, "{line}:{column}"),
        }
    }
}

/// Writes the kind and the size of a value, not its text: the text may be long, and the model wrote
/// it.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(lines) => {
                write!(formatter, "<<({})", counted(lines.split('\n').count(), "line"))
            }
            Self::Quoted(text) => write!(formatter, "\"({})\"", counted(text.len(), "byte")),
            Self::Register(name) => formatter.write_str(&shorten(name)),
        }
    }
}
