//! Removes lines of logs and code that a user pasted without a fence.

use std::borrow::Cow;

use crate::message::steps;

/// Returns a text without runs of two or more lines that look like machine output or code. A single
/// such line among prose stays.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    let lines: Vec<(&str, bool)> =
        steps::through(text).split_inclusive('\n').map(|line| (line, is_machine(line))).collect();
    let runs = |at: usize| {
        let next = |at: usize| lines.get(at + 1).filter(|(_, is)| *is).map(|(line, _)| *line);
        let heads = |(line, _): &(&str, bool)| next(at).is_some_and(|next| heads_table(line, next));
        if lines.get(at).is_some_and(heads) {
            return true;
        }
        let is_full = |(line, _): &&(&str, bool)| !line.trim().is_empty();
        let before = lines.get(..at).and_then(|lines| lines.iter().rev().find(is_full));
        let after = lines.get(at + 1..).and_then(|lines| lines.iter().find(is_full));
        lines.get(at).is_some_and(|(_, is)| *is)
            && [before, after].into_iter().flatten().any(|(_, is)| *is)
    };
    if !(0..lines.len()).any(runs) {
        return text.into();
    }
    let kept = |(at, (line, _)): (usize, &(&str, bool))| {
        if runs(at) { "\n".to_owned() } else { (*line).to_owned() }
    };
    lines.iter().enumerate().map(kept).collect::<String>().into()
}

/// Whether a line has as many columns as the row below it.
fn heads_table(line: &str, row: &str) -> bool {
    let columns = |text: &str, mark: char| text.matches(mark).count();
    let alike = |mark: char| columns(line, mark) > 1 && columns(line, mark) == columns(row, mark);
    [';', '|', '\t'].into_iter().any(alike)
}

fn is_machine(line: &str) -> bool {
    let line = line.trim();
    if line.is_empty() {
        return false;
    }
    let ends_code = line.ends_with(['{', '}', ';']) || line.ends_with("};") || line.ends_with("),");
    let first = line.split_whitespace().next().unwrap_or_default();
    let stamped = first.len() >= 8
        && first.bytes().filter(u8::is_ascii_digit).count() * 2 > first.len()
        && first.contains([':', '-', '/']);
    let levels = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE", "FATAL"];
    let level = levels.contains(&first.trim_matches(['[', ']', ':']));
    let traced = (line.starts_with("at ") && line.contains('(') && line.contains(':'))
        || line.starts_with("File \"")
        || line.starts_with("Traceback (")
        || first.strip_suffix(':').is_some_and(is_exception);
    let (mut signs, mut all) = (0, 0);
    for c in line.chars() {
        all += 1;
        signs += usize::from(!c.is_alphanumeric() && !c.is_whitespace() && c != '.' && c != ',');
    }
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    let row = digits > letters && line.contains([';', '|', '\t', ',']);
    row || ends_code || stamped || level || traced || signs * 4 > all
}

/// Whether a word is the type of an exception, as in the last line of a trace.
fn is_exception(word: &str) -> bool {
    ["Error", "Exception", "Warning"].iter().any(|end| word.ends_with(end))
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
}
