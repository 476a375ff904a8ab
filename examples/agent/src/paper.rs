//! Lines on the standard output, with at most one empty line between them.

use std::{
    fmt::Display,
    io::{self, Write},
};

use threadfold_terminal::Style;

/// The standard output. A reader that closed the pipe, such as `head`, is not an error.
#[derive(Debug)]
pub(crate) struct Paper {
    pub(crate) style: Style,
    /// The position of the next character.
    at: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// The start of a line after an empty one.
    Blank,
    /// The start of a line after one with text.
    Start,
    /// Within a line.
    Within,
}

impl Paper {
    pub(crate) fn new() -> Self {
        Self { style: Style::of(&io::stdout()), at: Position::Start }
    }

    /// Writes a line of its own.
    pub(crate) fn line(&mut self, text: impl Display) {
        self.end_line();
        let _ = writeln!(io::stdout(), "{text}");
        self.at = Position::Start;
    }

    /// Writes a piece of a text, which may contain line feeds.
    pub(crate) fn piece(&mut self, text: &str) {
        let _ = write!(io::stdout(), "{text}");
        match text.chars().next_back() {
            None => {}
            Some('\n') => self.at = Position::Start,
            Some(_) => self.at = Position::Within,
        }
    }

    /// Writes an empty line, if the last one is not empty.
    pub(crate) fn gap(&mut self) {
        self.end_line();
        if self.at == Position::Start {
            self.line("");
            self.at = Position::Blank;
        }
    }

    /// Ends the current line, if it has text.
    pub(crate) fn end_line(&mut self) {
        if self.at == Position::Within {
            let _ = writeln!(io::stdout());
            self.at = Position::Start;
        }
    }

    /// Records that the user ended the line by typing.
    pub(crate) fn line_was_ended(&mut self) {
        self.at = Position::Start;
    }

    pub(crate) fn flush(&self) {
        let _ = io::stdout().flush();
    }
}
