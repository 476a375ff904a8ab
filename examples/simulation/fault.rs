//! Violations of a promise.

use std::fmt;

use super::world::World;

/// The kind of a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A request was not sent although its smallest form fits.
    Locked,
    /// A request exceeded the window.
    TooLong,
    /// A request or thread was illegal.
    Illegal,
    /// A compaction did not have one start and one end.
    Told,
    /// Thread, log and store differ.
    Log,
    /// Anything else.
    Other,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) what: String,
}

/// A broken promise, and the world in which it was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) world: World,
    pub(crate) seed: u64,
    pub(crate) turn: u64,
    pub(crate) fault: Fault,
}

impl Fault {
    pub(super) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self { kind: Kind::Other, what }
    }
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { world, seed, turn, fault: Fault { kind, what } } = self;
        write!(f, "{kind:?}: {world}, seed {seed}, turn {turn}: {what}")
    }
}
