//! Tasks: the boxes of lists.

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
    steps::through(text).lines().filter_map(|line| boxed(line.trim()))
}

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
