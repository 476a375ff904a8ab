//! What a script says, once it has been read: commands, patterns, positions, values.

use std::{fmt, sync::Arc};

use super::{
    lines_pattern::LinesPattern,
    path::FilePath,
    place::Place,
    regex::Regex,
    words::{QUOTE_CHARACTERS, abridge, count},
};

/// A command and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) place: Place,
    pub(crate) action: Action,
}

/// What a command does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Open(Open),
    Select(Select),
    Retain(Retain),
    Mutate(Mutate),
}

/// Makes a file the current one.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) path: FilePath,
    pub(crate) is_new: bool,
}

/// Selects what matches a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) selector: Selector,
    pub(crate) pattern: Pattern,
}

/// Where a selection looks, and what it makes of what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    Select,
    SelectMultiple,
    Narrow,
    NarrowMultiple,
    SelectNext,
    SelectPrev,
    ExtendForward,
    ExtendBack,
}

/// Keeps one of the selected ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    First,
    Last,
    /// Counted from 0, from the end if negative.
    Nth(i64),
}

/// Changes the current file.
#[derive(Clone, Debug)]
pub(crate) enum Mutate {
    Replace(Value),
    InsertBefore(Value),
    InsertAfter(Value),
    Delete,
    Cut { register: String },
}

/// What to look for.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Regex(Arc<Regex>),
    Lines(Box<LinesPattern>),
    Position(Position),
    Range(Position, Position),
}

/// A place in a file, or a whole line of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Start,
    End,
    /// Counted from 1 in the file as it was loaded.
    Line(usize),
    /// A column is counted from 0 in characters.
    Column {
        line: usize,
        column: usize,
    },
}

/// The text of a change.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The lines of a heredoc, joined by line feeds, without the last one's.
    Lines(String),
    Quoted(String),
    Register(String),
}

impl Selector {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::SelectMultiple => "select_multiple",
            Self::Narrow => "narrow",
            Self::NarrowMultiple => "narrow_multiple",
            Self::SelectNext => "select_next",
            Self::SelectPrev => "select_prev",
            Self::ExtendForward => "extend_forward",
            Self::ExtendBack => "extend_back",
        }
    }
}

impl Mutate {
    /// The text to put in, if this puts in any.
    pub(crate) fn value(&self) -> Option<&Value> {
        match self {
            Self::Replace(value) | Self::InsertBefore(value) | Self::InsertAfter(value) => {
                Some(value)
            }
            Self::Delete | Self::Cut { .. } => None,
        }
    }
}

/// A command as a report repeats it: on one line, without the texts that it holds.
impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(Open { path, is_new: false }) => write!(formatter, "file {path}"),
            Self::Open(Open { path, is_new: true }) => write!(formatter, "newfile {path}"),
            Self::Select(Select { selector, pattern }) => {
                write!(formatter, "{} {pattern}", selector.word())
            }
            Self::Retain(Retain::First) => formatter.write_str("retain_first"),
            Self::Retain(Retain::Last) => formatter.write_str("retain_last"),
            Self::Retain(Retain::Nth(index)) => write!(formatter, "retain_nth {index}"),
            Self::Mutate(Mutate::Replace(value)) => write!(formatter, "replace {value}"),
            Self::Mutate(Mutate::InsertBefore(value)) => write!(formatter, "insert_before {value}"),
            Self::Mutate(Mutate::InsertAfter(value)) => write!(formatter, "insert_after {value}"),
            Self::Mutate(Mutate::Delete) => formatter.write_str("delete"),
            Self::Mutate(Mutate::Cut { register }) => {
                write!(formatter, "cut {}", abridge(register, QUOTE_CHARACTERS))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regex(regex) => regex.fmt(formatter),
            Self::Lines(lines) => lines.fmt(formatter),
            Self::Position(position) => position.fmt(formatter),
            Self::Range(from, to) => write!(formatter, "{from}-{to}"),
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

/// The kind of a value and its size, but not its text.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(lines) => {
                write!(formatter, "<<({})", count(lines.split('\n').count(), "line"))
            }
            Self::Quoted(text) => write!(formatter, "\"({})\"", count(text.len(), "byte")),
            Self::Register(name) => formatter.write_str(&abridge(name, QUOTE_CHARACTERS)),
        }
    }
}
