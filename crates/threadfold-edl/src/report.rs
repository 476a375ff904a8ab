//! The result of a run, as data. `report_text` writes it as text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::error::EditError;

/// The changes of a run, and the files that failed.
///
/// `Display` gives the text for the model that wrote the script.
///
/// ```
/// use threadfold_edl::{Script, Workspace};
///
/// let mut workspace = Workspace::new();
/// workspace.insert("a", "one\n")?;
/// let report = Script::parse("file a select /two/ replace \"three\"")?.run(&mut workspace);
/// assert!(!report.is_ok());
/// assert!(report.to_string().starts_with("FAILED"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Edits that succeeded but may have hit the wrong text, such as those by line number.
    pub warnings: Vec<String>,
    /// The commands that were carried out, each with the size of the new selection.
    pub trace: Vec<String>,
    /// The files that were written.
    pub changes: Vec<FileChange>,
    /// The selected texts at the end, abridged, with their lines and columns. `None` if the current
    /// file failed.
    pub selection: Option<String>,
    /// The files that failed. They are unchanged.
    pub failures: Vec<Failure>,
    /// The registers that the run filled, and the sizes of their texts in bytes.
    pub registers: BTreeMap<String, usize>,
}

/// A file that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileChange {
    /// The path of the file.
    pub path: String,
    /// Whether the file is new.
    pub created: bool,
    /// The number of ranges that were replaced.
    pub replacements: usize,
    /// The number of positions at which text was inserted.
    pub insertions: usize,
    /// The number of ranges that were deleted or cut.
    pub deletions: usize,
    /// The number of inserted lines. A changed line counts here and in `lines_removed`.
    pub lines_added: usize,
    /// The number of removed lines.
    pub lines_removed: usize,
    /// The size of the file after the run.
    pub bytes: usize,
    /// The text before the run, `None` for a new file. Not serialized, because it can be large.
    #[serde(skip)]
    pub before: Option<String>,
}

/// A file that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The path of the file.
    pub path: String,
    /// The line of the script with the command that failed, counted from 1.
    pub line: usize,
    /// The column of that command, counted from 1.
    pub column: usize,
    /// The command that failed, without the text that it inserts.
    pub command: String,
    /// Why it failed.
    pub error: EditError,
    /// The text of `error`.
    pub message: String,
    /// The number of edits of this file that were carried out before, and are not written.
    pub discarded_edits: usize,
    /// The number of later commands for this file.
    pub skipped_commands: usize,
    /// The number of edits that were not carried out, including the failed command if it is an
    /// edit.
    pub skipped_edits: usize,
    /// The registers that hold the texts of the skipped edits.
    pub saved: Vec<String>,
    /// The number of texts that were lost because the registers are full.
    pub unsaved: usize,
}

impl Report {
    /// Whether every command was carried out and every change is written.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.failures.is_empty()
    }
}

impl FileChange {
    /// The number of edits.
    pub(crate) fn edits(&self) -> usize {
        self.replacements + self.insertions + self.deletions
    }
}
