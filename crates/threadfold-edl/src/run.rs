//! Carrying out a script.
//!
//! A run reads the workspace and returns what to write; the workspace changes afterwards, in
//! [`commit`]. A file fails as a whole: from its first command that cannot be carried out on,
//! nothing more is done to it, wherever in the script, and nothing of what was done is written.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
};

use super::{
    command::{Action, Command, Mutate, Open, Pattern, Value},
    document::{Document, Meter, Selected},
    limits::Limits,
    mutate::{self, Side},
    original::LineEnding,
    outline::{extent, selection},
    path::FilePath,
    place::Place,
    registers::Registers,
    report::{Failure, FileChange, Report, SavedRegister, Status, TraceEntry, Warning},
    run_error::RunError,
    select::{line_positions, retain, select},
    workspace::Workspace,
};

/// What a run made, before any of it is written.
#[derive(Debug)]
pub(crate) struct Outcome {
    report: Report,
    /// The new texts of `report.changes`, in the same order.
    texts: Vec<String>,
    registers: BTreeMap<String, String>,
    saved: u64,
}

/// Carries out commands.
pub(crate) fn run(commands: &[Command], workspace: &Workspace, limits: &Limits) -> Outcome {
    let mut run = Run {
        workspace,
        registers: Registers::new(workspace, limits),
        meter: Meter { limits, searched_bytes: 0, open_bytes: 0 },
        documents: BTreeMap::new(),
        state: State::Start,
        failures: Vec::new(),
        failed: BTreeMap::new(),
        trace: Vec::new(),
        warnings: Vec::new(),
    };
    for command in commands {
        run.command(command);
    }
    run.finish()
}

/// Writes what a run made, and returns its report.
pub(crate) fn commit(outcome: Outcome, workspace: &mut Workspace) -> Report {
    let Outcome { mut report, texts, registers, saved } = outcome;
    for (change, text) in report.changes.iter_mut().zip(texts) {
        change.before = workspace.write(change.path.clone(), text);
    }
    workspace.keep_registers(registers, saved);
    report
}

struct Run<'a> {
    workspace: &'a Workspace,
    registers: Registers<'a>,
    meter: Meter<'a>,
    documents: BTreeMap<&'a FilePath, Document<'a>>,
    state: State<'a>,
    failures: Vec<Failure>,
    /// Which of the failures a file is.
    failed: BTreeMap<&'a FilePath, usize>,
    trace: Vec<TraceEntry>,
    warnings: Vec<Warning>,
}

/// What the commands at this point of the script apply to.
enum State<'a> {
    /// No file was opened yet. The parser lets no other command come first.
    Start,
    Editing {
        path: &'a FilePath,
        selected: Vec<Selected>,
    },
    /// A file that has failed, and which of the failures it is.
    Skipping {
        failure: usize,
    },
}

impl<'a> Run<'a> {
    fn command(&mut self, command: &'a Command) {
        if let Action::Open(Open { path, .. }) = &command.action
            && let Some(failure) = self.failed.get(path)
        {
            self.state = State::Skipping { failure: *failure };
        } else if let Action::Open(open) = &command.action {
            let opened = self.open(open);
            self.conclude(&open.path, command, opened);
            return;
        }
        match std::mem::replace(&mut self.state, State::Start) {
            State::Start => {}
            State::Skipping { failure } => {
                self.skip(failure, command);
                self.state = State::Skipping { failure };
            }
            State::Editing { path, selected } => {
                let done = self.edit(path, &selected, command);
                self.conclude(path, command, done);
            }
        }
    }

    /// Goes on with what a command has selected, or gives its file up.
    fn conclude(
        &mut self,
        path: &'a FilePath,
        command: &Command,
        done: Result<Vec<Selected>, RunError>,
    ) {
        match done {
            Ok(selected) => {
                let document = self.documents.get(path);
                let outcome = document.map(|it| extent(it, &selected)).unwrap_or_default();
                self.trace.push(TraceEntry {
                    place: command.place,
                    command: command.action.to_string(),
                    outcome,
                });
                self.state = State::Editing { path, selected };
            }
            Err(error) => {
                let failure = self.failures.len();
                self.failed.insert(path, failure);
                self.failures.push(self.failure(path, command, error));
                self.save(failure, command);
                self.state = State::Skipping { failure };
            }
        }
    }

    fn open(&mut self, open: &'a Open) -> Result<Vec<Selected>, RunError> {
        let stored = self.workspace.at(&open.path);
        let document = match self.documents.entry(&open.path) {
            Entry::Occupied(_) if open.is_new => return Err(RunError::FileExists),
            Entry::Occupied(loaded) => loaded.into_mut(),
            Entry::Vacant(vacant) => {
                let document = match (stored, open.is_new) {
                    (Some(_), true) => return Err(RunError::FileExists),
                    (None, false) => return Err(RunError::FileNotFound),
                    (None, true) => Document::new(),
                    (Some(file), false) => Document::load(file.text()),
                };
                self.meter.open_bytes += document.text().len();
                vacant.insert(document)
            }
        };
        Ok(document.whole())
    }

    fn edit(
        &mut self,
        path: &FilePath,
        selected: &[Selected],
        command: &Command,
    ) -> Result<Vec<Selected>, RunError> {
        let Some(document) = self.documents.get_mut(path) else {
            return Err(RunError::FileNotFound);
        };
        match &command.action {
            Action::Open(_) => Ok(document.whole()),
            Action::Retain(one) => retain(selected, *one),
            Action::Select(selection) => {
                let selected = select(document, selected, selection, &mut self.meter)?;
                self.warnings.extend(warnings(command.place, &selection.pattern));
                Ok(selected)
            }
            Action::Mutate(edit) => {
                mutate(document, selected, edit, &mut self.registers, &mut self.meter)
            }
        }
    }

    fn failure(&self, path: &FilePath, command: &Command, error: RunError) -> Failure {
        let counts = self.documents.get(path).map(|it| it.counts).unwrap_or_default();
        Failure {
            path: path.clone(),
            place: command.place,
            command: command.action.to_string(),
            message: error.to_string(),
            error,
            discarded_edits: counts.replacements + counts.insertions + counts.deletions,
            skipped_commands: 0,
            skipped_edits: 0,
            saved: Vec::new(),
            unsaved: 0,
        }
    }

    fn skip(&mut self, failure: usize, command: &Command) {
        if let Some(failure) = self.failures.get_mut(failure) {
            failure.skipped_commands += 1;
        }
        self.save(failure, command);
    }

    /// Counts an edit that is not carried out, and keeps its text.
    fn save(&mut self, failure: usize, command: &Command) {
        let Some(failure) = self.failures.get_mut(failure) else { return };
        let Action::Mutate(mutate) = &command.action else { return };
        failure.skipped_edits += 1;
        let document = self.documents.get(&failure.path);
        let line_ending = document.map_or(LineEnding::LineFeed, |it| it.line_ending);
        let text = match mutate.value() {
            Some(value @ (Value::Lines(_) | Value::Quoted(_))) => {
                resolve(value, line_ending, &self.registers).map(Cow::into_owned)
            }
            Some(Value::Register(_)) | None => return,
        };
        match text.and_then(|text| self.registers.save(text)) {
            Ok(saved) => failure.saved.push(saved),
            Err(_) => failure.unsaved += 1,
        }
    }

    fn finish(mut self) -> Outcome {
        for failure in &self.failures {
            self.documents.remove(&failure.path);
        }
        let selection = match &self.state {
            State::Start | State::Skipping { .. } => None,
            State::Editing { path, selected } => {
                let document = self.documents.get(path);
                document.map(|document| selection(path, document, selected))
            }
        };
        let (mut changes, mut texts) = (Vec::new(), Vec::new());
        for (path, document) in self.documents {
            let (created, counts) = (document.is_new, document.counts);
            if created || counts.is_edited() {
                let text = document.into_text();
                let (path, bytes) = (path.clone(), text.len());
                changes.push(FileChange { path, created, counts, bytes, before: None });
                texts.push(text);
            }
        }
        let status = if self.failures.is_empty() { Status::Ok } else { Status::Failed };
        let (registers, saved) = self.registers.into_set();
        let sizes = registers.iter();
        let set = sizes.map(|(name, text)| SavedRegister { name: name.clone(), bytes: text.len() });
        let report = Report {
            status,
            warnings: self.warnings,
            trace: self.trace,
            changes,
            selection,
            failures: self.failures,
            registers: set.collect(),
        };
        Outcome { report, texts, registers, saved }
    }
}

fn mutate(
    document: &mut Document<'_>,
    selected: &[Selected],
    edit: &Mutate,
    registers: &mut Registers<'_>,
    meter: &mut Meter<'_>,
) -> Result<Vec<Selected>, RunError> {
    let line_ending = document.line_ending;
    match edit {
        Mutate::Replace(value) => {
            let text = resolve(value, line_ending, registers)?;
            mutate::replace(document, selected, &text, meter)
        }
        Mutate::InsertBefore(value) => {
            let text = resolve(value, line_ending, registers)?;
            mutate::insert(document, selected, Side::Before, &text, meter)
        }
        Mutate::InsertAfter(value) => {
            let text = resolve(value, line_ending, registers)?;
            mutate::insert(document, selected, Side::After, &text, meter)
        }
        Mutate::Delete => mutate::delete(document, selected, meter),
        Mutate::Cut { register } => {
            let [range] = selected else {
                return Err(RunError::SeveralSelected { command: "cut", found: selected.len() });
            };
            let text = document.slice(range.start..range.end).to_owned();
            registers.set(register, text)?;
            mutate::delete(document, selected, meter)
        }
    }
}

/// Returns the text of a value. The lines of a heredoc end as those of the file do.
fn resolve<'v>(
    value: &'v Value,
    line_ending: LineEnding,
    registers: &'v Registers<'_>,
) -> Result<Cow<'v, str>, RunError> {
    Ok(match (value, line_ending) {
        (Value::Quoted(text), _) => Cow::Borrowed(text),
        (Value::Register(name), _) => Cow::Borrowed(registers.text(name)?),
        (Value::Lines(lines), LineEnding::LineFeed) => Cow::Owned(format!("{lines}\n")),
        (Value::Lines(lines), LineEnding::CarriageReturnLineFeed) => {
            let plain = format!("{lines}\n").replace("\r\n", "\n");
            Cow::Owned(plain.replace('\n', line_ending.as_str()))
        }
    })
}

fn warnings(place: Place, pattern: &Pattern) -> impl Iterator<Item = Warning> {
    line_positions(pattern)
        .map(move |position| Warning::LineNumber { place, position: position.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn error(script: &str, limits: &Limits) -> Option<RunError> {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "a a a\n").expect("a path");
        let commands = parse(&format!("file /a\n{script}"), limits).expect("a script");
        let outcome = run(&commands, &workspace, limits);
        outcome.report.failures.into_iter().next().map(|failure| failure.error)
    }

    #[test]
    fn what_a_run_can_make_grow_has_a_limit() {
        let limits = Limits {
            matches: 2,
            searched_bytes: 20,
            output_bytes: 10,
            registers: 1,
            ..Limits::default()
        };
        let (command, pattern) = ("select_multiple", "/a/".to_owned());
        let expected = RunError::TooManyMatches { command, pattern, limit: 2 };
        assert_eq!(error("select_multiple /a/", &limits), Some(expected));
        let expected = RunError::SearchTooLong { limit: 20 };
        assert_eq!(error(&"select_multiple /\\n/ ".repeat(4), &limits), Some(expected));
        let expected = RunError::OutputTooLarge { found: 11, limit: 10 };
        assert_eq!(error("insert_after \"12345\"", &limits), Some(expected));
        let expected = RunError::RegistersFull { registers: 1, bytes: limits.register_bytes };
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
            let outcome = run(&commands, &workspace, &limits);
            let error = outcome.report.failures.into_iter().next().map(|failure| failure.error);
            assert_eq!(error, Some(RunError::SearchTooLong { limit: 3_000_000 }), "{pattern}");
        }
        let commands = parse("file /a select_multiple /a{20}/", &limits).expect("a script");
        assert!(run(&commands, &workspace, &limits).report.is_ok());
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
        let outcome = run(&commands, &workspace, &limits);
        let last = outcome.report.failures.into_iter().next_back().map(|failure| failure.error);
        assert_eq!(last, Some(RunError::SearchTooLong { limit: 7 }));
    }

    #[test]
    fn texts_that_find_no_register_are_counted() {
        let limits = Limits { registers: 1, ..Limits::default() };
        let script = "file /a replace \"b\" replace \"c\" delete insert_after \"d\"";
        let commands = parse(script, &limits).expect("a script");
        let report = run(&commands, &Workspace::new(), &limits).report;
        let [failure] = report.failures.as_slice() else { panic!("{report}") };
        assert_eq!((failure.skipped_edits, failure.saved.len(), failure.unsaved), (4, 1, 2));
        let last = report.to_string().lines().next_back().map(str::to_owned);
        assert_eq!(last.as_deref(), Some("    2 texts not kept: the registers are full"));
    }

    #[test]
    fn a_run_writes_nothing_before_it_is_committed() {
        let mut workspace = Workspace::new();
        let limits = Limits::default();
        let commands = parse("newfile /a insert_after \"x\" cut r", &limits).expect("a script");
        let outcome = run(&commands, &workspace, &limits);
        assert_eq!(workspace, Workspace::new());
        let report = commit(outcome, &mut workspace);
        assert_eq!((report.status, workspace.register("r")), (Status::Ok, Some("")));
        assert_eq!(workspace.text("/a"), Some("x"));
    }
}
