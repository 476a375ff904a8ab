//! Tasks: the boxes of lists.

use super::sentence;
use crate::message::steps;

/// Returns the tasks in a text, and whether each is done.
pub(crate) fn tasks(text: &str) -> impl Iterator<Item = (&str, bool)> {
    steps::through(text).lines().filter_map(|line| boxed(line.trim()))
}

fn boxed(line: &str) -> Option<(&str, bool)> {
    const OPEN: [&str; 2] = ["[ ] ", "\u{2610} "];
    const DONE: [&str; 3] = ["[x] ", "[X] ", "\u{2611} "];
    let item = sentence::item(line).or_else(|| line.strip_prefix("+ ")).unwrap_or(line);
    let after = |marks: &[&str]| marks.iter().find_map(|mark| item.strip_prefix(mark));
    let found = after(&OPEN).map(|text| (text, false)).or_else(|| Some((after(&DONE)?, true)));
    found.map(|(text, is_done)| (text.trim(), is_done)).filter(|(text, _)| !text.is_empty())
}
