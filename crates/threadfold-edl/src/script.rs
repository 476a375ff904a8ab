//! Scripts: read once, run as often as wanted.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    command::{Action, Command, Open},
    limits::Limits,
    parse::parse,
    parse_error::ParseError,
    path::FilePath,
    report::Report,
    run::{commit, run},
    workspace::Workspace,
};

/// A script that has been read and can be run.
#[derive(Clone, Debug)]
pub struct Script {
    commands: Vec<Command>,
}

/// What a script does with a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Access {
    /// The file must be there, and its text is looked at.
    pub read: bool,
    /// The file is made or changed.
    pub write: bool,
}

impl Script {
    /// Reads a script, within the default limits.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if it is not a script, with the place, what is due there and what was found.
    ///
    /// ```
    /// use threadfold::edl::Script;
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
    /// [`ParseError`] if it is not a script or is over a limit.
    ///
    /// ```
    /// use threadfold::edl::{Limits, Script};
    ///
    /// let limits = Limits { script_bytes: 10, ..Limits::default() };
    /// assert!(Script::parse_within("file notes.md delete", &limits).is_err());
    /// ```
    pub fn parse_within(script: &str, limits: &Limits) -> Result<Self, ParseError> {
        Ok(Self { commands: parse(script, limits)? })
    }

    /// Runs the script, within the default limits, and returns what it did.
    ///
    /// A file on which a command fails is left as it was; the others get their changes.
    /// [`Report::status`] says whether any failed.
    ///
    /// ```
    /// use threadfold::edl::{Script, Workspace};
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

    /// Runs the script and returns what it did. A limit that is met fails the file in hand.
    ///
    /// ```
    /// use threadfold::edl::{Limits, Script, Workspace};
    ///
    /// let limits = Limits { output_bytes: 3, ..Limits::default() };
    /// let report = Script::parse("newfile a insert_after \"long\"")?
    ///     .run_within(&mut Workspace::new(), &limits);
    /// assert!(!report.is_ok());
    /// # Ok::<(), threadfold::edl::ParseError>(())
    /// ```
    pub fn run_within(&self, workspace: &mut Workspace, limits: &Limits) -> Report {
        let outcome = run(&self.commands, workspace, limits);
        commit(outcome, workspace)
    }

    /// Returns which files the script opens and what it does with them.
    ///
    /// A file that is opened is read; from its first edit on it is also written. A new file is only
    /// written.
    ///
    /// ```
    /// use threadfold::edl::Script;
    ///
    /// let script = Script::parse("file a select /x/ delete file b newfile c")?;
    /// let access = script.file_access();
    /// let read_and_written: Vec<_> = access.values().map(|file| (file.read, file.write)).collect();
    /// assert_eq!(read_and_written, [(true, true), (true, false), (false, true)]);
    /// # Ok::<(), threadfold::edl::ParseError>(())
    /// ```
    #[must_use]
    pub fn file_access(&self) -> BTreeMap<FilePath, Access> {
        let mut files: BTreeMap<FilePath, Access> = BTreeMap::new();
        let mut current: Option<&FilePath> = None;
        for command in &self.commands {
            match &command.action {
                Action::Open(Open { path, is_new }) => {
                    let access = files.entry(path.clone()).or_default();
                    access.read |= !is_new;
                    access.write |= is_new;
                    current = Some(path);
                }
                Action::Mutate(_) => {
                    if let Some(access) = current.and_then(|path| files.get_mut(path)) {
                        access.write = true;
                    }
                }
                Action::Select(_) | Action::Retain(_) => {}
            }
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_opened_is_read_and_one_that_is_edited_or_new_is_written() {
        let script = "file a newfile b select /x/ file a retain_first file c delete newfile c";
        let access = Script::parse(script).map(|script| script.file_access());
        let found: Vec<_> = access
            .iter()
            .flatten()
            .map(|(path, file)| (path.to_string(), file.read, file.write))
            .collect();
        let expected = [("a", true, false), ("b", false, true), ("c", true, true)];
        assert_eq!(found, expected.map(|(path, read, write)| (path.to_owned(), read, write)));
    }
}
