//! The classes of facts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The class of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactClass {
    /// A sentence of the user that demands, forbids or prefers.
    Constraint,
    /// An open task: `- [ ]`, `TODO`, an item of a tool's task list that is not done.
    Task,
    /// A line that reports a failure, or an error code: `E0425`, `ENOENT`, `HTTP 404`.
    Error,
    /// The path of a file or folder.
    Path,
    /// A URL or a host: `https://...`, `localhost:3000`.
    Url,
    /// A command line.
    Command,
    /// A name in code: `snake_case`, `CamelCase`, `a::b`, `a.b()`, `--flag`, `ENV_NAME`.
    Identifier,
    /// A version: `1.2.3`, `v2`.
    Version,
    /// A commit hash, a digest or a UUID.
    Hash,
    /// A number with its unit: `12 ms`, `40 %`, `$100`.
    Number,
    /// A text between quotation marks.
    Quote,
    /// The id of a checkpoint, mentioned in a text.
    Checkpoint,
}

impl FactClass {
    /// All classes, in the order in which reports list them.
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

    /// Returns the name, as serde writes it: `constraint`, `task`, ...
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

    /// Whether facts of this class are compared without case.
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

    /// Whether tool output is full of such facts, most of which do not matter.
    pub(crate) fn abounds(self) -> bool {
        matches!(self, Self::Identifier | Self::Quote | Self::Number)
    }
}

impl fmt::Display for FactClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
