//! How a command ends, and what its exit code means.

use std::{fmt, process::ExitCode};

/// How a command ended that did what it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It did what was asked.
    Done,
    /// There was nothing to do; what it wrote is what it read.
    Unchanged,
}

/// Why a command did not do what was asked, in one line that names the file and the remedy.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Ended {
    pub(crate) fn code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::Unchanged => ExitCode::from(3),
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
