//! Removes lines of logs and code that a user pasted without a fence.

use std::{borrow::Cow, collections::HashSet};

use crate::message::steps;

/// Returns a text without runs of two or more lines that look like machine output or code. A single
/// such line among prose stays.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    let lines: Vec<(&str, bool)> =
        steps::through(text).split_inclusive('\n').map(|line| (line, is_machine(line))).collect();
    let mut pasted = HashSet::new();
    let full = lines.iter().enumerate().filter(|(_, (line, _))| !line.trim().is_empty());
    for pair in full.collect::<Vec<_>>().windows(2) {
        if let [(one, (_, true)), (next, (_, true))] = pair {
            pasted.extend([*one, *next]);
        }
    }
    for (at, pair) in lines.windows(2).enumerate() {
        if let [(line, _), (row, true)] = pair
            && heads_table(line, row)
        {
            pasted.insert(at);
        }
    }
    if pasted.is_empty() {
        return text.into();
    }
    let kept = lines.iter().enumerate();
    kept.map(|(at, (line, _))| if pasted.contains(&at) { "\n" } else { line })
        .collect::<String>()
        .into()
}

/// Whether a line has as many columns as the row below it.
fn heads_table(line: &str, row: &str) -> bool {
    [';', '|', '\t'].into_iter().any(|mark| {
        let columns = line.matches(mark).count();
        columns > 1 && columns == row.matches(mark).count()
    })
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
