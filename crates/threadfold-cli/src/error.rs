//! The outcome of a command, and its exit code.

use std::{fmt, process::ExitCode};

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The command did its work.
    Done,
    /// There was nothing to do; its output equals its input.
    Unchanged,
    /// The output differs from the input, but misses the target.
    Missed,
    /// Another program was run, and ended with this exit code.
    With(u8),
}

/// Why a command failed, in one line that names the file and the remedy.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Ended {
    pub(crate) fn code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::Unchanged => ExitCode::from(3),
            Self::Missed => ExitCode::from(1),
            Self::With(code) => ExitCode::from(code),
        }
    }
}

impl<T: fmt::Display> From<T> for Failure {
    fn from(error: T) -> Self {
        Self(error.to_string().replace('\n', "; "))
    }
}

impl Failure {
    pub(crate) fn line(&self) -> &str {
        &self.0
    }
}
