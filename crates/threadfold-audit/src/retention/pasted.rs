//! Removes lines of logs and code that a user pasted without a fence.

use std::collections::HashSet;

use crate::message::steps;

/// Returns a text without runs of two or more lines that look like machine output or code. A single
/// such line among prose stays, unless it is certainly a line of a log.
pub(super) fn without(text: &str) -> String {
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
    let logged = lines.iter().enumerate().filter(|(_, (line, is))| *is && is_logged(line));
    pasted.extend(logged.map(|(at, _)| at));
    let kept = lines.iter().enumerate();
    kept.map(|(at, (line, _))| if pasted.contains(&at) { "\n" } else { line }).collect()
}

/// Whether a line is the header of a table: it has as many columns as the row below it.
fn heads_table(line: &str, row: &str) -> bool {
    [';', '|', '\t'].into_iter().any(|mark| {
        let columns = line.matches(mark).count();
        columns > 1 && columns == row.matches(mark).count()
    })
}

/// Whether a text before a semicolon is code: it has few words, or signs that prose lacks.
fn is_instruction(text: &str) -> bool {
    text.contains(['=', '(', ')', '{', '}', '"', '<', '>']) || text.split_whitespace().count() < 4
}

fn is_machine(line: &str) -> bool {
    let line = line.trim();
    if line.is_empty() {
        return false;
    }
    let ends_code = line.ends_with(['{', '}'])
        || line.ends_with("),")
        || line.strip_suffix(';').is_some_and(is_instruction);
    let first = line.split_whitespace().next().unwrap_or_default();
    let traced = (line.starts_with("at ") && line.contains('(') && line.contains(':'))
        || begins(line, "file \"")
        || begins(line, "traceback (")
        || first.strip_suffix(':').is_some_and(is_exception);
    let level = is_level(first) && !first.contains(char::is_lowercase);
    let (mut signs, mut all) = (0, 0);
    for c in line.chars() {
        all += 1;
        signs += usize::from(!c.is_alphanumeric() && !c.is_whitespace() && c != '.' && c != ',');
    }
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    let row = digits > letters && line.contains([';', '|', '\t', ',']);
    row || ends_code || is_stamp(first) || level || traced || signs * 4 > all
}

/// Whether a line begins with a time stamp followed by another one or by a log level, or is the
/// first line of a stack trace.
fn is_logged(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let third = words.next().unwrap_or_default();
    begins(line.trim_start(), "traceback (most recent")
        || (is_stamp(first) && (is_level(second) || (is_stamp(second) && is_level(third))))
}

/// Whether a line begins with a text, ignoring ASCII case.
fn begins(line: &str, text: &str) -> bool {
    line.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
}

/// Whether a word looks like a time or a date: it has more digits than other characters.
fn is_stamp(word: &str) -> bool {
    word.len() >= 8
        && word.bytes().filter(u8::is_ascii_digit).count() * 2 > word.len()
        && word.contains([':', '-', '/'])
}

/// Whether a word is a log level.
fn is_level(word: &str) -> bool {
    const LEVELS: [&str; 7] = ["error", "warn", "warning", "info", "debug", "trace", "fatal"];
    let word = word.trim_matches(['[', ']', ':']);
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

/// Whether a word is the type of an exception, as in the last line of a stack trace.
fn is_exception(word: &str) -> bool {
    ["Error", "Exception", "Warning"].iter().any(|end| word.ends_with(end))
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
}
