//! The classes of facts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The class of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactClass {
    /// An open task: `- [ ]`, `TODO`, an item of a tool's task list that is not done.
    Task,
    /// A line that reports a failure, or an error code: `E0425`, `ENOENT`, `HTTP 404`.
    Error,
    /// The path of a file or folder.
    Path,
    /// A URL, a host or an e-mail address: `https://...`, `localhost:3000`.
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
}

impl FactClass {
    /// All classes, in the order in which reports list them.
    pub const ALL: [Self; 10] = [
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
    ];

    /// Returns the name, as serde writes it: `task`, `error`, ...
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the title of the list for this class in an addendum.
    #[doc(hidden)]
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().1
    }

    #[doc(hidden)]
    #[must_use]
    pub fn is(self, property: Property) -> bool {
        self.row().2.contains(&property)
    }

    /// Returns the name, the title and the properties.
    fn row(self) -> (&'static str, &'static str, &'static [Property]) {
        use Property::{Abundant, Checked, Folded, Sentence, Short};
        match self {
            Self::Task => ("task", "Still to be done:", &[Folded, Sentence]),
            Self::Error => ("error", "Errors:", &[Folded, Sentence]),
            Self::Path => ("path", "Paths:", &[Checked]),
            Self::Url => ("url", "Addresses:", &[Checked]),
            Self::Command => ("command", "Commands:", &[Checked]),
            Self::Identifier => ("identifier", "Names:", &[Abundant, Checked, Short]),
            Self::Version => ("version", "Versions:", &[Checked, Short]),
            Self::Hash => ("hash", "Hashes:", &[Checked, Folded, Short]),
            Self::Number => ("number", "Numbers:", &[Abundant, Checked, Short]),
            Self::Quote => ("quote", "Quoted:", &[Abundant]),
        }
    }
}

/// A property that the facts of a class share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Property {
    /// Tool output contains many of them, and most do not matter.
    Abundant,
    /// They are checked for invention: a summary must not state one that the thread does not state.
    Checked,
    /// They are compared without case.
    Folded,
    /// They are sentences, so a full stop at the end is ignored.
    Sentence,
    /// They are single words, so that many fit one line.
    Short,
}

impl fmt::Display for FactClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
