//! What kinds of facts there are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of thing a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactClass {
    /// A sentence of the user that demands, forbids or prefers.
    Constraint,
    /// Something still to be done: `- [ ]`, `TODO`, an item of a list of tasks that is not done.
    Task,
    /// A line that tells of a failure, or the code of one: `E0425`, `ENOENT`, `HTTP 404`.
    Error,
    /// A file or a folder.
    Path,
    /// An address: `https://...`, `localhost:3000`.
    Url,
    /// A command line.
    Command,
    /// A name of code: `snake_case`, `CamelCase`, `a::b`, `a.b()`, `--flag`, `ENV_NAME`.
    Identifier,
    /// A version: `1.2.3`, `v2`.
    Version,
    /// A commit, a digest, a UUID.
    Hash,
    /// A number with its unit: `12 ms`, `40 %`, `$100`.
    Number,
    /// A text between quotation marks.
    Quote,
    /// The name of a checkpoint that somebody speaks of.
    Checkpoint,
}

impl FactClass {
    /// All of them, in the order in which reports list them.
    pub const ALL: [Self; 12] = [
        Self::Constraint,
        Self::Task,
        Self::Error,
        Self::Path,
        Self::Url,
        Self::Command,
        Self::Identifier,
        Self::Version,
        Self::Hash,
        Self::Number,
        Self::Quote,
        Self::Checkpoint,
    ];

    /// The name, as serde writes it: `constraint`, `task`, ...
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Constraint => "constraint",
            Self::Task => "task",
            Self::Error => "error",
            Self::Path => "path",
            Self::Url => "url",
            Self::Command => "command",
            Self::Identifier => "identifier",
            Self::Version => "version",
            Self::Hash => "hash",
            Self::Number => "number",
            Self::Quote => "quote",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// Whether `Never` and `never` are the same in it.
    pub(crate) fn folds_case(self) -> bool {
        match self {
            Self::Constraint | Self::Task | Self::Error | Self::Hash => true,
            Self::Path
            | Self::Url
            | Self::Command
            | Self::Identifier
            | Self::Version
            | Self::Number
            | Self::Quote
            | Self::Checkpoint => false,
        }
    }

    /// Whether such facts abound in what tools give, where most of them matter to nobody.
    pub(crate) fn abounds(self) -> bool {
        matches!(self, Self::Identifier | Self::Quote | Self::Number)
    }
}

impl fmt::Display for FactClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
