//! Command lines: in the fenced blocks of a shell, and after a prompt.

use super::{
    class::{FactClass, Note},
    word_kinds::is_listed,
};
use crate::message::steps;

const SHELLS: [&str; 6] = ["bash", "sh", "shell", "zsh", "console", "terminal"];

/// Commands that only read. They get little weight, because a model that needs one can type it
/// again.
#[rustfmt::skip]
const READ_ONLY: [&str; 19] = [
    "cat", "echo", "env", "file", "find", "grep", "head", "less", "ls", "nl", "pwd", "rg", "sed",
    "stat", "tail", "tree", "true", "wc", "which",
];

/// Notes the commands in a text: the lines of fenced shell blocks, and lines that begin with `$ `.
pub fn commands(text: &str, note: Note<'_>) {
    let (mut fenced, mut shell) = (false, false);
    // The delimiter of an open here-document, and whether the last line ended in a backslash.
    let (mut until, mut goes_on) = ("", false);
    for line in steps::through(text).lines() {
        let line = line.trim();
        if let Some(info) = line.strip_prefix("```") {
            fenced = !fenced;
            shell = fenced && SHELLS.contains(&info.trim());
            (until, goes_on) = ("", false);
        } else if !until.is_empty() {
            until = if line == until { "" } else { until };
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| shell || !fenced) {
            of_line(command, note);
        } else if shell {
            if !goes_on {
                of_line(line, note);
            }
            (until, goes_on) = (here_document(line), line.ends_with('\\'));
        }
    }
}

/// Returns the delimiter of the here-document that a line opens, or an empty text.
fn here_document(line: &str) -> &str {
    let word = line.split_once("<<").map_or("", |(_, word)| word.trim_start_matches(['-', ' ']));
    word.split_whitespace().next().map_or("", |word| word.trim_matches(['\'', '"']))
}

/// Notes the first line of the command in a tool call.
pub(crate) fn command_argument(text: &str, note: Note<'_>) {
    let first = text.trim().lines().next().unwrap_or_default();
    let line = first.trim_end_matches('\\').trim();
    if line.len() > 1 && opens(line) {
        note(FactClass::Command, line);
    }
}

/// Whether a command only reads: it runs one of [`READ_ONLY`] and nothing else.
pub(crate) fn only_reads(command: &str) -> bool {
    command.split_whitespace().next().is_some_and(|name| is_listed(&READ_ONLY, name))
        && !command.contains(['>', ';'])
        && !command.contains("&&")
}

fn of_line(line: &str, note: Note<'_>) {
    let line = line.trim_end_matches('\\').trim();
    if opens(line) && line.contains(' ') && line.len() > 4 {
        note(FactClass::Command, line);
    }
}

fn opens(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphabetic() || "./~_".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(READ_ONLY.is_sorted());
    }
}
