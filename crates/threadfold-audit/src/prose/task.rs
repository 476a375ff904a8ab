//! Tasks: the boxes of lists, and lines with `TODO` or `FIXME`.

use super::sentence;
use crate::message::steps;

/// A task in a text, open or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task<'a> {
    pub(crate) text: &'a str,
    pub(crate) done: bool,
}

/// Returns the tasks in a text.
pub(crate) fn tasks(text: &str) -> impl Iterator<Item = Task<'_>> {
    let marks = MARKS.iter().any(|mark| text.contains(mark));
    steps::through(text).lines().filter_map(move |line| {
        boxed(line.trim()).or_else(|| if marks { marked(line) } else { None })
    })
}

const MARKS: [&str; 2] = ["TODO", "FIXME"];

fn boxed(line: &str) -> Option<Task<'_>> {
    if !line.starts_with(|c: char| c.is_ascii_digit() || !c.is_ascii() || "-*>+[".contains(c)) {
        return None;
    }
    let item = sentence::item(line).or_else(|| line.strip_prefix("+ ")).unwrap_or(line);
    let marks = ["[ ] ", "\u{2610} ", "[x] ", "[X] ", "\u{2611} "];
    let (at, text) =
        marks.iter().enumerate().find_map(|(at, mark)| Some((at, item.strip_prefix(mark)?)))?;
    let text = text.trim();
    // The first two of the boxes mark an open task.
    (!text.is_empty()).then_some(Task { text, done: at > 1 })
}

/// Returns the task after a mark: `TODO: text`, `FIXME(name): text`.
fn marked(line: &str) -> Option<Task<'_>> {
    let at = MARKS.iter().find_map(|mark| line.find(mark))?;
    let before = line.get(..at)?.chars().next_back();
    let rest = line.get(at..)?;
    let (mark, text) = rest.split_once(':')?;
    let plain = mark.len() < 40
        && !mark.contains(' ')
        && before.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let text = text.trim().trim_end_matches("*/").trim_end_matches("-->").trim();
    let end = at + rest.len() - rest.split_once(text)?.1.len();
    (plain && text.len() > 3).then(|| line.get(at..end).map(|text| Task { text, done: false }))?
}
