//! A broken promise.

use std::fmt;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// No request is illegal.
    Legal,
    /// No request is longer than the window.
    Fits,
    /// Every request after a summary has the rules.
    Ruled,
    /// What the model has not read stays as it is.
    Unread,
    /// Nothing that was acknowledged is lost, and log, thread and store agree.
    Kept,
    /// An undo gives the earlier thread.
    Undone,
    /// Two workers never both write under one lease.
    OneWriter,
    /// Whatever happens, work ends, and without a panic.
    Ends,
}

/// A broken promise, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The promise.
    pub promise: Promise,
    /// What was found.
    pub what: String,
}

impl Promise {
    /// The fault that breaks this promise.
    pub fn broken(self, what: impl fmt::Display) -> Fault {
        Fault { promise: self, what: what.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.promise {
            Promise::Legal => "no request is illegal",
            Promise::Fits => "no request is longer than the window",
            Promise::Ruled => "every request after a summary has the rules",
            Promise::Unread => "what the model has not read stays as it is",
            Promise::Kept => "nothing acknowledged is lost",
            Promise::Undone => "an undo gives the earlier thread",
            Promise::OneWriter => "two workers never both write under one lease",
            Promise::Ends => "work ends, without a panic",
        };
        write!(f, "\"{words}\" is broken: {}", self.what)
    }
}
