//! Runs every case under `testdata/`.
//!
//! A case is a text file. Its first lines describe it. Sections follow, each under a heading:
//!
//! | heading | lines of the section |
//! |---|---|
//! | `--- file PATH` | the text of a file in the workspace |
//! | `--- script` | a script. A case may have several, which run one after the other |
//! | `--- expect file PATH` | the text of a file after the last script |
//! | `--- expect no file PATH` | none; the file does not exist |
//! | `--- expect failures` | one for each failed file, in order: `PATH: part of the message` |
//! | `--- expect skipped` | one for each failed file: `PATH: EDITS edits, COMMANDS commands` |
//! | `--- expect warnings` | one for each warning, in order: a part of it |
//! | `--- expect registers` | one for each register, by name: `NAME = "text"` |
//! | `--- expect parse error` | parts of the message |
//! | `--- expect report` | lines of the report, without the white space around them |
//! | `--- expect whole report` | the report |
//!
//! The text of a section is its lines with their line feeds; a section without lines is the empty
//! text. Words in brackets at the end of a heading change that: `[no newline]` drops the last line
//! feed, and `[escapes]` replaces `\r`, `\n`, `\t` and `\\`.
//!
//! Files that no `expect file` names must be unchanged, and without `expect failures` and `expect
//! parse error` there must be none. Warnings, registers and the report are compared only on
//! request.

use std::collections::BTreeMap;

use threadfold_edl::{ParseError, Report, Script, Workspace};
use threadfold_testing::shared::cases;

#[test]
fn every_case_gives_the_expected_result() {
    let cases = cases::read("testdata").expect("the folder with the cases");
    assert!(cases.len() >= 47, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        if let Err(problem) = run_case(&case) {
            wrong.push(format!("{}: {problem}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// A part of a case: the heading after `---`, and the text below it.
struct Section {
    mark: String,
    text: String,
}

/// A workspace, its expected files, and the result of the last script.
#[derive(Default)]
struct Case {
    workspace: Workspace,
    expected: BTreeMap<String, String>,
    last: Option<Result<Report, ParseError>>,
    failures_checked: bool,
}

fn run_case(case: &cases::Case) -> Result<(), String> {
    let sections = case.sections.iter().map(|(mark, text)| section(mark, text.clone()));
    let sections: Vec<Section> = sections.collect();
    if !sections.iter().any(|section| section.mark == "script") {
        return Err("the case has no script".to_owned());
    }
    let mut case = Case::default();
    for section in &sections {
        case.section(section).map_err(|problem| format!("[{}] {problem}", section.mark))?;
    }
    case.close()
}

fn section(mark: &str, mut text: String) -> Section {
    let (mark, words) = mark.split_once(" [").unwrap_or((mark, ""));
    if words.contains("no newline") {
        text.pop();
    }
    if words.contains("escapes") {
        text = unescape(&text);
    }
    Section { mark: mark.to_owned(), text }
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        plain.push(match escaped {
            None => character,
            Some('r') => '\r',
            Some('n') => '\n',
            Some('t') => '\t',
            Some(other) => other,
        });
    }
    plain
}

impl Case {
    fn section(&mut self, section: &Section) -> Result<(), String> {
        let Section { mark, text } = section;
        if let Some(path) = mark.strip_prefix("file ") {
            self.workspace.insert(path, text.as_str()).map_err(|error| error.to_string())?;
            self.expected.insert(path.to_owned(), text.clone());
            return Ok(());
        }
        if let Some(path) = mark.strip_prefix("expect file ") {
            self.expected.insert(path.to_owned(), text.clone());
            return equal("the text", self.workspace.text(path).unwrap_or("(no file)"), text);
        }
        if let Some(path) = mark.strip_prefix("expect no file ") {
            return equal(
                "the text",
                self.workspace.text(path).unwrap_or("(no file)"),
                "(no file)",
            );
        }
        match mark.as_str() {
            "script" => {
                self.close()?;
                let workspace = &mut self.workspace;
                self.last = Some(Script::parse(text).map(|script| script.run(workspace)));
                self.failures_checked = false;
                Ok(())
            }
            "expect parse error" => self.parse_error(text),
            "expect failures" => self.failures(text),
            "expect skipped" => self.skipped(text),
            "expect warnings" => {
                let warnings = self.report()?.warnings.iter().map(ToString::to_string).collect();
                parts("warnings", &warnings, text)
            }
            "expect registers" => {
                let registers = self.workspace.registers();
                let found: String =
                    registers.map(|(name, text)| format!("{name} = {text:?}\n")).collect();
                equal("the registers", &found, text)
            }
            "expect report" => {
                let report = self.report()?.to_string();
                let missing = text
                    .lines()
                    .find(|line| !report.lines().any(|found| found.trim() == line.trim()));
                match missing {
                    Some(line) => Err(format!("no line `{line}` in:\n{report}")),
                    None => Ok(()),
                }
            }
            "expect whole report" => equal("the report", &format!("{}\n", self.report()?), text),
            other => Err(format!("`{other}` is no mark")),
        }
    }

    /// Checks the files and failures that the sections after a script did not mention.
    fn close(&self) -> Result<(), String> {
        for (path, text) in &self.expected {
            let found = self.workspace.text(path).unwrap_or("(no file)");
            equal(&format!("the text of {path}"), found, text)?;
        }
        for (path, _) in self.workspace.files() {
            if !self
                .expected
                .keys()
                .any(|it| self.workspace.version(it) == self.workspace.version(path))
            {
                return Err(format!("there is a file {path} that the case does not mention"));
            }
        }
        match &self.last {
            Some(Err(error)) if !self.failures_checked => Err(format!("parse error: {error}")),
            Some(Ok(report)) if !self.failures_checked && !report.is_ok() => {
                Err(format!("a file failed that should not:\n{report}"))
            }
            _ => Ok(()),
        }
    }

    fn report(&self) -> Result<&Report, String> {
        match &self.last {
            Some(Ok(report)) => Ok(report),
            Some(Err(error)) => Err(format!("parse error: {error}")),
            None => Err("there was no script before".to_owned()),
        }
    }

    fn parse_error(&mut self, text: &str) -> Result<(), String> {
        self.failures_checked = true;
        let Some(Err(error)) = &self.last else {
            return Err("the script was read without an error".to_owned());
        };
        let message = error.to_string();
        match text.lines().find(|part| !message.contains(part)) {
            Some(part) => Err(format!("no `{part}` in: {message}")),
            None => Ok(()),
        }
    }

    fn failures(&mut self, text: &str) -> Result<(), String> {
        self.failures_checked = true;
        let failures = &self.report()?.failures;
        let found = failures.iter().map(|it| format!("{}: {}", it.path, it.message)).collect();
        parts("failures", &found, text)
    }

    fn skipped(&self, text: &str) -> Result<(), String> {
        let failures = self.report()?.failures.iter();
        let found: String = failures
            .map(|it| {
                let (path, edits, commands) = (&it.path, it.skipped_edits, it.skipped_commands);
                format!("{path}: {edits} edits, {commands} commands\n")
            })
            .collect();
        equal("what was skipped", &found, text)
    }
}

/// Compares messages with expected lines: each line must be a part of its message, and a path
/// before `: ` must be equal.
fn parts(what: &str, found: &Vec<String>, expected: &str) -> Result<(), String> {
    let expected: Vec<&str> = expected.lines().collect();
    let is_part = |(message, line): (&String, &&str)| match line.split_once(": ") {
        Some((path, part)) if path.starts_with('/') => message
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with(':') && rest.contains(part)),
        _ => message.contains(*line),
    };
    if found.len() == expected.len() && found.iter().zip(&expected).all(is_part) {
        return Ok(());
    }
    Err(format!("{what} are {found:#?}, expected {expected:#?}"))
}

fn equal(what: &str, found: &str, expected: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is\n{found:?}, expected\n{expected:?}"))
}
