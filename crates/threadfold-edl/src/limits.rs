//! The bounds of a script and of a run.
//!
//! A script is usually written by a model, so everything that it can make grow has a limit, and
//! running into one is a typed error: [`super::ParseErrorKind`] when the script is read,
//! [`super::RunError`] when it runs.

use serde::{Deserialize, Serialize};

/// How large a script, its patterns and what it makes of the files may get.
///
/// ```
/// use threadfold::edl::{Limits, Script};
///
/// let limits = Limits { commands: 1, ..Limits::default() };
/// assert!(Script::parse_within("file a delete", &limits).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The length of a script.
    pub script_bytes: usize,
    /// The commands in a script.
    pub commands: usize,
    /// The size of one compiled regular expression, its automaton included.
    pub regex_bytes: usize,
    /// The size of all compiled regular expressions of a script.
    pub all_regexes_bytes: usize,
    /// The matches that one command may find.
    pub matches: usize,
    /// The bytes that the searches and edits of one run may read or copy together.
    ///
    /// An edit copies the file from its first range on. A search for whole lines copies the file.
    /// What counts for a match is what may have been read before it was known as one. For a
    /// regular expression whose matches have no bounded length that is usually the rest of what is
    /// searched, or of the line, even if the match is short. Half a gigabyte takes about a second.
    pub searched_bytes: u64,
    /// The text of all files that a run has open, checked by every edit that adds to it.
    pub output_bytes: usize,
    /// The registers of a workspace.
    pub registers: usize,
    /// The text in the registers of a workspace.
    pub register_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MEBIBYTE: usize = 1 << 20;
        Self {
            script_bytes: 4 * MEBIBYTE,
            commands: 20_000,
            regex_bytes: MEBIBYTE,
            all_regexes_bytes: 256 * MEBIBYTE,
            matches: 100_000,
            searched_bytes: 4 << 30,
            output_bytes: 64 * MEBIBYTE,
            registers: 1_000,
            register_bytes: 16 * MEBIBYTE,
        }
    }
}
