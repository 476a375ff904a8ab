//! Scripts: parsed once, run as often as needed.

use std::collections::BTreeSet;

use super::{
    command::{Action, Command},
    error::ParseError,
    limits::Limits,
    parse::parse,
    report::Report,
    run::run,
    workspace::Workspace,
};

/// A script that has been read and can be run.
#[derive(Clone, Debug)]
pub struct Script {
    commands: Vec<Command>,
}

impl Script {
    /// Reads a script, within the default limits.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the line and column, what was expected and what was found.
    ///
    /// ```
    /// use threadfold_edl::Script;
    ///
    /// assert!(Script::parse("file notes.md select /draft/ delete").is_ok());
    /// assert!(Script::parse("file notes.md select /(?=draft)/").is_err());
    /// ```
    pub fn parse(script: &str) -> Result<Self, ParseError> {
        Self::parse_within(script, &Limits::default())
    }

    /// Reads a script.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the text is not a script, or exceeds a limit.
    ///
    /// ```
    /// use threadfold_edl::{Limits, Script};
    ///
    /// let limits = Limits { script_bytes: 10, ..Limits::default() };
    /// assert!(Script::parse_within("file notes.md delete", &limits).is_err());
    /// ```
    pub fn parse_within(script: &str, limits: &Limits) -> Result<Self, ParseError> {
        Ok(Self { commands: parse(script, limits)? })
    }

    /// Runs the script, within the default limits, and returns what it did.
    ///
    /// A file on which a command fails stays as it was; the other files get their changes.
    /// [`Report::is_ok`] is `false` if any failed.
    ///
    /// ```
    /// use threadfold_edl::{Script, Workspace};
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("notes.md", "a draft\n")?;
    /// let report = Script::parse("file notes.md select /draft/ replace \"text\"")?.run(&mut workspace);
    /// assert!(report.is_ok());
    /// assert_eq!(workspace.text("notes.md"), Some("a text\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(&self, workspace: &mut Workspace) -> Report {
        self.run_within(workspace, &Limits::default())
    }

    /// Runs the script and returns what it did. A command that exceeds a limit fails its file.
    ///
    /// ```
    /// use threadfold_edl::{Limits, Script, Workspace};
    ///
    /// let limits = Limits { output_bytes: 3, ..Limits::default() };
    /// let report = Script::parse("newfile a insert_after \"long\"")?
    ///     .run_within(&mut Workspace::new(), &limits);
    /// assert!(!report.is_ok());
    /// # Ok::<(), threadfold_edl::ParseError>(())
    /// ```
    pub fn run_within(&self, workspace: &mut Workspace, limits: &Limits) -> Report {
        run(&self.commands, workspace, limits)
    }

    /// Returns the files that the script makes or edits, so that a host can ask before it runs.
    ///
    /// ```
    /// use threadfold_edl::Script;
    ///
    /// let script = Script::parse("file a select /x/ delete file b newfile c")?;
    /// assert_eq!(script.files_written().into_iter().collect::<Vec<_>>(), ["a", "c"]);
    /// # Ok::<(), threadfold_edl::ParseError>(())
    /// ```
    #[must_use]
    pub fn files_written(&self) -> BTreeSet<&str> {
        let mut files = BTreeSet::new();
        let mut current = "";
        for command in &self.commands {
            let is_written = match &command.action {
                Action::Open { path, is_new } => {
                    current = path;
                    *is_new
                }
                Action::Put(..) | Action::Delete | Action::Cut(_) => true,
                Action::Select(..) | Action::Retain(_) => false,
            };
            if is_written {
                files.insert(current);
            }
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_edited_or_new_is_written() {
        let script = "file a newfile b select /x/ file a retain_first file c delete newfile c";
        let script = Script::parse(script).expect("a script");
        assert_eq!(script.files_written(), ["b", "c"].into());
    }
}
