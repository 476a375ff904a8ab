//! Parses a digest.
//!
//! A summary is a digest if its first line is exactly the first line of one; lines that do not
//! belong to a digest are ignored. Every quoted line begins with a mark, so none of them is taken
//! for a heading.

use super::{
    facts::{Command, Facts, File, List, Quote},
    write,
};
use crate::message::steps;

/// Returns the contents of a digest, or `None` if the text is no digest.
pub(super) fn read(text: &str) -> Option<Facts> {
    let (opening, body) = text.split_once('\n').unwrap_or((text, ""));
    let count = opening.strip_prefix("Digest of ")?.split_once(' ')?.0.parse().ok()?;
    if !write::is_opening(opening, count) {
        return None;
    }
    let mut facts = Facts { messages: count, ..Facts::default() };
    let (mut title, mut root) = ("", String::new());
    for line in steps::through(body).split('\n') {
        if let Some(next) = line.strip_prefix("## ") {
            title = next;
            continue;
        }
        if title == write::FILES && root.is_empty() {
            root = root_in(line);
        }
        take(&mut facts, title, line, &root);
    }
    Some(facts)
}

/// Returns the folder from the line that explains [`write::ROOT`]; empty for any other line.
fn root_in(line: &str) -> String {
    let root = line.strip_prefix(write::ROOT_IS).and_then(code);
    root.filter(|(_, rest)| *rest == ".").map(|(root, _)| root.to_owned()).unwrap_or_default()
}

fn take(facts: &mut Facts, title: &str, line: &str, root: &str) {
    match title {
        write::REQUEST => facts.request.take(line),
        write::EARLIER => facts.earlier.take(line),
        write::STATE => facts.state.take(line),
        write::LATER => facts.later.take(line, |item| Some(item.to_owned())),
        write::ERRORS => facts.errors.take(line, |item| Some(item.to_owned())),
        write::COMMANDS => facts.commands.take(line, command),
        write::FILES => facts.files.take(line, |item| file(item, root)),
        _ => {}
    }
}

impl Quote {
    fn take(&mut self, line: &str) {
        if let Some(quoted) = line.strip_prefix('>') {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(quoted.strip_prefix(' ').unwrap_or(quoted));
        } else if let Some(count) = left_out(line, "bytes") {
            self.left_out = count;
        }
    }
}

impl<T> List<T> {
    fn take(&mut self, line: &str, item: impl Fn(&str) -> Option<T>) {
        match line.strip_prefix("- ") {
            Some(text) => self.items.extend(item(text)),
            None => {
                let count = left_out(line, "more").unwrap_or_default();
                self.left_out = self.left_out.saturating_add(count);
            }
        }
    }
}

fn left_out(line: &str, what: &str) -> Option<u64> {
    let count = line.strip_prefix('(')?.split_once(' ')?.0.parse().ok()?;
    (write::note(count, what).trim_end() == line).then_some(count)
}

fn command(item: &str) -> Option<Command> {
    let (line, rest) = code(item)?;
    Some(Command { line: line.to_owned(), failed: !rest.is_empty() })
}

fn file(item: &str, root: &str) -> Option<File> {
    let (path, rest) = code(item)?;
    let tools = rest.strip_prefix(": ")?;
    let tools = tools.split(", ").map(|tool| {
        let (name, count) = tool.rsplit_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    let below = path.strip_prefix(write::ROOT).filter(|_| !root.is_empty());
    let path = below.map_or_else(|| path.to_owned(), |below| format!("{root}{below}"));
    Some(File { path, tools: tools.collect::<Option<_>>()? })
}

/// Returns the content of the code span that a text begins with, and the text after the span.
fn code(text: &str) -> Option<(&str, &str)> {
    let body = text.trim_start_matches('`');
    let mark = text.get(..text.len() - body.len()).filter(|mark| !mark.is_empty())?;
    // A longer run of backticks does not end the span.
    let mut runs = body.match_indices(mark).filter(|(at, _)| {
        let (before, rest) = body.split_at(*at);
        !before.ends_with('`') && rest.trim_start_matches('`').len() + mark.len() == rest.len()
    });
    let (line, rest) = body.split_at(runs.next()?.0);
    let kept_apart = line.strip_prefix(' ').and_then(|line| line.strip_suffix(' '));
    let kept_apart = kept_apart.filter(|line| line.starts_with('`') || line.ends_with('`'));
    Some((kept_apart.unwrap_or(line), rest.strip_prefix(mark)?))
}
