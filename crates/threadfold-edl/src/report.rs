//! What a run did, as data.

use serde::Serialize;

use super::{document::EditCounts, path::FilePath, place::Place, run_error::RunError};

/// What a run did and did not do.
///
/// [`Report::status`] alone says whether every file got what the script meant for it. `Display`
/// gives the text for the model that wrote the script.
///
/// ```
/// use threadfold::edl::{Script, Status, Workspace};
///
/// let mut workspace = Workspace::new();
/// workspace.insert("a", "one\n")?;
/// let report = Script::parse("file a select /two/ replace \"three\"")?.run(&mut workspace);
/// assert_eq!(report.status, Status::Failed);
/// assert!(report.to_string().starts_with("FAILED"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Whether any file failed.
    pub status: Status,
    /// What went well but may not have been meant.
    pub warnings: Vec<Warning>,
    /// The commands that were carried out, without the texts that they touched.
    pub trace: Vec<TraceEntry>,
    /// The files that were written.
    pub changes: Vec<FileChange>,
    /// What is selected at the end, unless the file that it is in failed.
    pub selection: Option<Selection>,
    /// The files that failed, and were left as they were.
    pub failures: Vec<Failure>,
    /// The registers that the run has set.
    pub registers: Vec<SavedRegister>,
}

/// Whether a run did everything that it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Every command was carried out and every change is written.
    Ok,
    /// At least one file failed. Nothing was written to it; the other files have their changes.
    Failed,
}

/// Something that went well but may not have been meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// A pattern counts lines.
    #[error(
        "line {}: `{position}` counts lines of the file as it was loaded; \
         a heredoc or a regex says what is meant", place.line
    )]
    LineNumber {
        /// Where the command stands in the script.
        place: Place,
        /// The position.
        position: String,
    },
}

/// A command that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TraceEntry {
    /// Where the command stands in the script.
    pub place: Place,
    /// The command, without the text that it puts in.
    pub command: String,
    /// What came of it, in numbers.
    pub outcome: String,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileChange {
    /// Which file.
    pub path: FilePath,
    /// The run has made the file.
    pub created: bool,
    /// How often and how much it was changed.
    #[serde(flatten)]
    pub counts: EditCounts,
    /// The size that the file has now.
    pub bytes: usize,
    /// The text that the file had, `None` if it is new. Not serialised: it is as large as the file.
    #[serde(skip)]
    pub before: Option<String>,
}

/// What is selected at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Selection {
    /// In which file.
    pub path: FilePath,
    /// How many ranges.
    pub count: usize,
    /// The first few of them.
    pub ranges: Vec<SelectedRange>,
}

/// A selected range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SelectedRange {
    /// Where it begins.
    pub start: LineColumn,
    /// Where it ends.
    pub end: LineColumn,
    /// The text, its middle left out if it is long.
    pub text: String,
}

/// A place in a file: lines count from 1, columns from 0, as in the positions of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LineColumn {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

/// A file that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// Which file. It was left as it was.
    pub path: FilePath,
    /// Where the command that failed stands in the script.
    pub place: Place,
    /// The command, without the text that it puts in.
    pub command: String,
    /// Why it failed.
    pub error: RunError,
    /// The same in words.
    pub message: String,
    /// How many edits of this file were carried out before and are not written.
    pub discarded_edits: usize,
    /// How many commands of this file were skipped, not counting the one that failed.
    pub skipped_commands: usize,
    /// How many edits were not carried out: skipped ones, and the failed command if it is one.
    pub skipped_edits: usize,
    /// The registers that hold the texts of the skipped edits.
    pub saved: Vec<SavedRegister>,
    /// How many texts found no place in a register.
    pub unsaved: usize,
}

/// A register that a run has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SavedRegister {
    /// Its name.
    pub name: String,
    /// The size of its text.
    pub bytes: usize,
}

impl Report {
    /// Whether every command was carried out and every change is written.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }
}
