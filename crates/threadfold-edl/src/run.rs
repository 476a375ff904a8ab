//! Running a script.
//!
//! A file fails as a whole: after its first command that cannot be carried out, its later commands
//! are skipped, wherever they are in the script, and none of its changes are written. So edits are
//! made in copies, and the files that did not fail are written at the end. Registers are filled
//! immediately, because they keep their texts even if a file fails.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    command::{Action, Command, Value},
    document::{Document, Selected},
    error::EditError,
    limits::{Limits, Meter},
    registers::Registers,
    report::{Failure, FileChange, Report},
    report_text::{extent, selection},
    select::{Selecting, line_numbers, retain},
    workspace::{File, Workspace},
};

/// Carries out commands, writes the changed files, and returns what was done.
pub(crate) fn run(commands: &[Command], workspace: &mut Workspace, limits: &Limits) -> Report {
    let mut run = Run {
        stored: &workspace.files,
        registers: &mut workspace.registers,
        meter: Meter::new(limits),
        files: BTreeMap::new(),
        path: "",
        selected: Vec::new(),
        report: Report::default(),
    };
    for command in commands {
        run.command(command);
    }
    let (mut report, written) = run.finish();
    for (mut change, text) in written {
        change.bytes = text.len();
        change.before = workspace.write(change.path.clone(), text);
        report.changes.push(change);
    }
    report
}

struct Run<'a> {
    stored: &'a BTreeMap<String, File>,
    registers: &'a mut Registers,
    meter: Meter<'a>,
    /// The files that the script has opened so far.
    files: BTreeMap<&'a str, State<'a>>,
    /// The current file. Empty before the first command, which opens one: the parser requires it.
    path: &'a str,
    /// The selected ranges of the current file, unless it has failed.
    selected: Vec<Selected>,
    report: Report,
}

/// The state of an opened file.
enum State<'a> {
    Open(Document<'a>),
    Failed {
        /// The index of its failure in the report.
        failure: usize,
        line_ending: &'static str,
    },
}

impl<'a> Run<'a> {
    fn command(&mut self, command: &'a Command) {
        if let Action::Open { path, .. } = &command.action {
            self.path = path;
        }
        if let Some(State::Failed { failure, line_ending }) = self.files.get(self.path) {
            // Further commands for a failed file are not carried out, but their texts are kept, so
            // that the model need not write them again.
            let (failure, line_ending) = (*failure, *line_ending);
            if let Some(failure) = self.report.failures.get_mut(failure) {
                failure.skipped_commands += 1;
            }
            self.skip_edit(failure, line_ending, &command.action);
            return;
        }
        match self.carry_out(command) {
            Ok(selected) => {
                if let Some(State::Open(document)) = self.files.get(self.path) {
                    let extent = extent(document, &selected);
                    self.report.trace.push(format!("{} → {extent}", command.source));
                }
                self.selected = selected;
            }
            Err(error) => self.fail(command, error),
        }
    }

    /// Carries out a command and returns the new selection.
    fn carry_out(&mut self, command: &'a Command) -> Result<Vec<Selected>, EditError> {
        if let Action::Open { path, is_new } = &command.action {
            return self.open(path, *is_new);
        }
        let (selected, meter) = (&self.selected, &mut self.meter);
        let Some(State::Open(document)) = self.files.get_mut(self.path) else {
            return Err(EditError::FileNotFound);
        };
        match &command.action {
            // Handled above, because no file need be open for it.
            Action::Open { .. } => Ok(document.whole()),
            Action::Retain(index) => retain(selected, *index),
            Action::Select(selector, pattern) => {
                let selector = *selector;
                let found = Selecting { document, selected, selector, pattern }.select(meter)?;
                let line = command.position.0;
                self.report.warnings.extend(line_numbers(pattern).map(|position| {
                    format!(
                        "line {line}: `{position}` counts lines of the file as it was loaded; \
                         a heredoc or a regex says what is meant"
                    )
                }));
                Ok(found)
            }
            Action::Put(side, value) => {
                let text = resolve(value, document.line_ending, self.registers)?;
                document.put(*side, &text, selected, meter)
            }
            Action::Delete => document.delete(selected, meter),
            Action::Cut(register) => {
                let [range] = selected.as_slice() else {
                    return Err(EditError::SeveralSelected {
                        command: "cut",
                        found: selected.len(),
                    });
                };
                // The register is filled first: if it is full, the text stays in the file.
                let text = document.selected(range).to_owned();
                let bytes = text.len();
                self.registers.set(register, text, meter.limits)?;
                self.report.registers.insert(register.clone(), bytes);
                document.delete(selected, meter)
            }
        }
    }

    fn open(&mut self, path: &'a str, is_new: bool) -> Result<Vec<Selected>, EditError> {
        let loaded = self.stored.get(path).map(|file| file.text.as_str());
        match (self.files.get(path), loaded) {
            (Some(State::Open(document)), _) if !is_new => return Ok(document.whole()),
            (Some(_), _) | (None, Some(_)) if is_new => return Err(EditError::FileExists),
            (None, None) if !is_new => return Err(EditError::FileNotFound),
            // The file is opened for the first time, or made.
            (Some(_) | None, _) => {}
        }
        let document = Document::open(path, loaded);
        self.meter.open_bytes += document.text.len();
        let whole = document.whole();
        self.files.insert(path, State::Open(document));
        Ok(whole)
    }

    /// Fails the current file.
    fn fail(&mut self, command: &Command, error: EditError) {
        let (discarded_edits, line_ending) = match self.files.get(self.path) {
            Some(State::Open(document)) => (document.change.edits(), document.line_ending),
            Some(State::Failed { .. }) | None => (0, "\n"),
        };
        let failure = self.report.failures.len();
        self.files.insert(self.path, State::Failed { failure, line_ending });
        self.report.failures.push(Failure {
            path: self.path.to_owned(),
            line: command.position.0,
            column: command.position.1,
            command: command.source.clone(),
            message: error.to_string(),
            error,
            discarded_edits,
            skipped_commands: 0,
            skipped_edits: 0,
            saved: Vec::new(),
            unsaved: 0,
        });
        self.skip_edit(failure, line_ending, &command.action);
    }

    /// Counts an edit that is not carried out, and keeps its text in a register.
    fn skip_edit(&mut self, failure: usize, line_ending: &str, action: &Action) {
        let Some(failure) = self.report.failures.get_mut(failure) else { return };
        let value = match action {
            Action::Open { .. } | Action::Select(..) | Action::Retain(_) => return,
            Action::Put(_, value @ (Value::Lines(_) | Value::Quoted(_))) => Some(value),
            Action::Put(_, Value::Register(_)) | Action::Delete | Action::Cut(_) => None,
        };
        failure.skipped_edits += 1;
        // A register still has its text, so only text of the script must be saved.
        let text = value.map(|value| resolve(value, line_ending, self.registers));
        let Some(Ok(text)) = text.map(|text| text.map(Cow::into_owned)) else { return };
        let bytes = text.len();
        match self.registers.save(text, self.meter.limits) {
            Ok(name) => {
                self.report.registers.insert(name.clone(), bytes);
                failure.saved.push(name);
            }
            Err(_) => failure.unsaved += 1,
        }
    }

    /// Returns the report, and the new texts of the files to write.
    fn finish(mut self) -> (Report, Vec<(FileChange, String)>) {
        if let Some(State::Open(document)) = self.files.get(self.path) {
            self.report.selection = Some(selection(document, &self.selected));
        }
        // A file that no edit changed keeps its version.
        let mut written = Vec::new();
        for state in self.files.into_values() {
            if let State::Open(Document { change, text, .. }) = state
                && (change.created || change.edits() > 0)
            {
                written.push((change, text));
            }
        }
        (self.report, written)
    }
}

/// Returns the text of a value. The lines of a heredoc get the line endings of the file.
fn resolve<'v>(
    value: &'v Value,
    line_ending: &str,
    registers: &'v Registers,
) -> Result<Cow<'v, str>, EditError> {
    Ok(match value {
        Value::Quoted(text) => Cow::Borrowed(text),
        Value::Register(name) => Cow::Borrowed(registers.text(name)?),
        Value::Lines(lines) if line_ending == "\n" => Cow::Owned(format!("{lines}\n")),
        Value::Lines(lines) => {
            let plain = format!("{lines}\n").replace("\r\n", "\n");
            Cow::Owned(plain.replace('\n', line_ending))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn error(script: &str, limits: &Limits) -> Option<EditError> {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "a a a\n").expect("a path");
        let commands = parse(&format!("file /a\n{script}"), limits).expect("a script");
        run(&commands, &mut workspace, limits)
            .failures
            .into_iter()
            .next()
            .map(|failure| failure.error)
    }

    #[test]
    fn exceeding_a_limit_fails_the_file() {
        let limits = Limits {
            matches: 2,
            searched_bytes: 20,
            output_bytes: 10,
            registers: 1,
            ..Limits::default()
        };
        let (command, pattern) = ("select_multiple", "/a/".to_owned());
        let expected = EditError::TooManyMatches { command, pattern, limit: 2 };
        assert_eq!(error("select_multiple /a/", &limits), Some(expected));
        let expected = EditError::SearchTooLong { limit: 20 };
        assert_eq!(error(&"select_multiple /\\n/ ".repeat(4), &limits), Some(expected));
        let expected = EditError::OutputTooLarge { found: 11, limit: 10 };
        assert_eq!(error("insert_after \"12345\"", &limits), Some(expected));
        let expected = EditError::RegistersFull { registers: 1, bytes: limits.register_bytes };
        assert_eq!(error("cut r cut s", &limits), Some(expected));
    }

    #[test]
    fn a_search_that_reads_on_after_its_matches_is_stopped() {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "a".repeat(1_000_000)).expect("a path");
        let limits = Limits { searched_bytes: 3_000_000, ..Limits::default() };
        for pattern in ["/a[^]*z|a/", "/a.*z|a/"] {
            let script = format!("file /a select_multiple {pattern}");
            let commands = parse(&script, &limits).expect("a script");
            let report = run(&commands, &mut workspace, &limits);
            let error = report.failures.into_iter().next().map(|failure| failure.error);
            assert_eq!(error, Some(EditError::SearchTooLong { limit: 3_000_000 }), "{pattern}");
        }
        let commands = parse("file /a select_multiple /a{20}/", &limits).expect("a script");
        assert!(run(&commands, &mut workspace, &limits).is_ok());
    }

    #[test]
    fn a_search_that_fails_uses_up_the_limit() {
        let limits = Limits { searched_bytes: 7, matches: 1, ..Limits::default() };
        let script = "select_multiple /a/ file /b select /a/";
        let mut workspace = Workspace::new();
        for path in ["/a", "/b"] {
            workspace.insert(path, "a a").expect("a path");
        }
        let commands = parse(&format!("file /a {script}"), &limits).expect("a script");
        let report = run(&commands, &mut workspace, &limits);
        let last = report.failures.into_iter().next_back().map(|failure| failure.error);
        assert_eq!(last, Some(EditError::SearchTooLong { limit: 7 }));
    }

    #[test]
    fn texts_that_do_not_fit_into_registers_are_counted() {
        let limits = Limits { registers: 1, ..Limits::default() };
        let script = "file /a replace \"b\" replace \"c\" delete insert_after \"d\"";
        let commands = parse(script, &limits).expect("a script");
        let report = run(&commands, &mut Workspace::new(), &limits);
        let [failure] = report.failures.as_slice() else { panic!("{report}") };
        assert_eq!((failure.skipped_edits, failure.saved.len(), failure.unsaved), (4, 1, 2));
        let last = report.to_string().lines().next_back().map(str::to_owned);
        assert_eq!(last.as_deref(), Some("    2 texts not kept: the registers are full"));
    }
}
