//! Command lines: in fences of a shell, and behind a prompt.

use super::{class::FactClass, scan::is_listed};
use crate::message::steps;

const SHELLS: [&str; 6] = ["bash", "sh", "shell", "zsh", "console", "terminal"];

/// Commands that only look. What they showed is gone, and they are soon typed again.
#[rustfmt::skip]
const LOOKS: [&str; 19] = [
    "cat", "echo", "env", "file", "find", "grep", "head", "less", "ls", "nl", "pwd", "rg", "sed",
    "stat", "tail", "tree", "true", "wc", "which",
];

/// Tells of the commands in a text: the lines of fenced blocks of a shell, and lines behind `$ `.
pub(crate) fn commands(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    let (mut fenced, mut shell) = (false, false);
    // What ends the text that a command is given, and whether the last line goes on.
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
            (until, goes_on) = (here(line), line.ends_with('\\'));
        }
    }
}

/// The line that ends the text which a command is given from here on, if it is given one.
fn here(line: &str) -> &str {
    let word = line.split_once("<<").map_or("", |(_, word)| word.trim_start_matches(['-', ' ']));
    let word = word.split_whitespace().next().unwrap_or_default();
    word.trim_matches(['\'', '"'])
}

/// Tells of the command that a tool was given.
pub(crate) fn given(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    let first = text.trim().lines().next().unwrap_or_default();
    let line = first.trim_end_matches('\\').trim();
    if line.len() > 1 && opens(line) {
        note(FactClass::Command, line);
    }
}

/// Whether a command changes and proves nothing.
pub(crate) fn only_looks(command: &str) -> bool {
    let name = command.split_whitespace().next().unwrap_or_default();
    is_listed(&LOOKS, name) && !command.contains(['>', ';']) && !command.contains("&&")
}

fn of_line(line: &str, note: &mut dyn FnMut(FactClass, &str)) {
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
        assert!(LOOKS.is_sorted());
    }
}
