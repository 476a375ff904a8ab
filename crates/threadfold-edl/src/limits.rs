//! The limits of a script and of a run, and how much of them a run has used.
//!
//! Scripts are usually written by a model and cannot be trusted, so everything that a script can
//! make grow has a limit. Exceeding one is a [`ParseError`](super::ParseError) or an [`EditError`].

use serde::{Deserialize, Serialize};

use super::error::EditError;

/// The maximum sizes of a script, of its patterns and of the files that it writes, and the maximum
/// work of a run.
///
/// ```
/// use threadfold_edl::{Limits, Script};
///
/// let limits = Limits { commands: 1, ..Limits::default() };
/// assert!(Script::parse_within("file a delete", &limits).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The length of a script.
    pub script_bytes: usize,
    /// The number of commands in a script.
    pub commands: usize,
    /// The memory of one compiled regular expression.
    pub regex_bytes: usize,
    /// The memory of all compiled regular expressions of a script together.
    pub all_regexes_bytes: usize,
    /// The number of matches of one command.
    pub matches: usize,
    /// The bytes that the searches and edits of one run read or copy together.
    ///
    /// An edit copies the file from its first range on. A search for whole lines copies the file.
    /// For a match, all text counts that the search may have read to decide it. If the expression
    /// has no longest match, this is usually the rest of the line or of the searched text, even for
    /// a short match. Half a gigabyte takes about a second.
    pub searched_bytes: u64,
    /// The size of all files that a run has open. Checked by every edit that adds text.
    pub output_bytes: usize,
    /// The number of registers in a workspace.
    pub registers: usize,
    /// The size of all registers of a workspace together.
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

/// The part of its limits that a run has used up.
#[derive(Debug)]
pub(crate) struct Meter<'l> {
    pub(crate) limits: &'l Limits,
    pub(crate) searched_bytes: u64,
    pub(crate) open_bytes: usize,
}

impl<'l> Meter<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self { limits, searched_bytes: 0, open_bytes: 0 }
    }

    /// Uses up bytes that a run may read and copy.
    ///
    /// Bytes over the limit count as used, so that nothing is searched after the first refusal.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), EditError> {
        self.searched_bytes = self.searched_bytes.saturating_add(bytes as u64);
        let limit = self.limits.searched_bytes;
        if self.searched_bytes > limit { Err(EditError::SearchTooLong { limit }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_after_the_first_refusal() {
        let limits = Limits { searched_bytes: 5, ..Limits::default() };
        let mut meter = Meter::new(&limits);
        let refused = Err(EditError::SearchTooLong { limit: 5 });
        let spent = [5, 1, 0].map(|bytes| meter.spend(bytes));
        assert_eq!(spent, [Ok(()), refused.clone(), refused]);
    }
}
