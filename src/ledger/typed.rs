//! What the user typed in a message, without what was quoted, fenced, or put in by a host.

use std::{borrow::Cow, collections::HashMap};

use crate::message::{ContentBlock, Message, steps};

/// Returns the user's own texts in a message.
pub(super) fn typed(message: &Message) -> impl Iterator<Item = Cow<'_, str>> {
    let blocks = message.typed_blocks().filter_map(|block| message.content.get(block));
    blocks.filter_map(ContentBlock::as_text).map(|text| own(text))
}

/// Returns a text without fences, quoted lines, code by its indent, and what stands between tags.
/// An open fence goes on to the end; a tag that nothing closes is a word like any other.
fn own(text: &str) -> Cow<'_, str> {
    // As nearly all that people type: a third of what reading it for rules costs.
    let plain = |line: &str| fence(line).is_none() && !is_foreign(line);
    if !steps::through(text).contains('<') && text.split_inclusive('\n').all(plain) {
        return text.into();
    }
    let closings = closings(text);
    let (mut own, mut rest, mut at, mut line_end) = (String::new(), text, 0, 0);
    while !rest.is_empty() {
        // Looked for once a line, because a line may hold many tags.
        if at >= line_end {
            let next = steps::up_to(rest, rest.find('\n'));
            line_end = next.map_or(text.len(), |end| at + end + 1);
        }
        let line = rest.get(..line_end - at).unwrap_or(rest);
        let taken = match fence(line) {
            Some(mark) => Some((0, line.len() + fenced(behind(rest, line.len()), mark))),
            None if is_foreign(line) => Some((0, line.len())),
            None => between_tags(line, rest, at, &closings),
        };
        let end = match taken {
            Some((from, end)) => {
                own.push_str(rest.get(..from).unwrap_or_default());
                own.push('\n');
                end
            }
            None => {
                own.push_str(line);
                line.len()
            }
        };
        rest = behind(rest, end);
        at += end;
    }
    own.into()
}

fn behind(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// The mark of a line that opens a fence.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    line.get(..length).filter(|_| length >= 3)
}

/// How long the text of a fence is, with the line that closes it.
fn fenced(text: &str, mark: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += steps::through(line).len();
        let trimmed = line.trim();
        if trimmed.starts_with(mark) && trimmed.trim_start_matches(['`', '~']).is_empty() {
            break;
        }
    }
    length
}

/// Whether a line is a quotation, or code by its indent.
fn is_foreign(line: &str) -> bool {
    let text = line.trim_start();
    let indent = line.get(..line.len() - text.len()).unwrap_or_default();
    let deep = indent.contains('\t') || indent.len() >= 4;
    let item = |c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '+' | '\u{2022}');
    text.starts_with('>') || (deep && !text.starts_with(item))
}

/// Where each tag is closed for the last time.
fn closings(text: &str) -> HashMap<&str, usize> {
    let closed = steps::through(text).match_indices("</").filter_map(|(at, mark)| {
        let rest = behind(text, at + mark.len());
        let name = name(rest)?;
        behind(rest, name.len()).trim_start().starts_with('>').then_some((name, at))
    });
    closed.collect()
}

/// The first pair of tags that opens in a line, as a range of the text that begins with the line
/// and lies at `at` of the whole.
fn between_tags(
    line: &str,
    rest: &str,
    at: usize,
    closings: &HashMap<&str, usize>,
) -> Option<(usize, usize)> {
    let opens = line.match_indices('<').find_map(|(from, _)| {
        let name = name(behind(line, from + 1))?;
        closings.get(name).filter(|last| **last > at + from).map(|_| (from, name))
    });
    steps::up_to(line, opens.map(|(from, _)| from));
    let (from, name) = opens?;
    let closing = format!("</{name}");
    let body = behind(rest, from);
    // A longer name may begin like this one.
    let ends = body
        .match_indices(&closing)
        .find(|(found, closing)| behind(body, found + closing.len()).trim_start().starts_with('>'));
    steps::up_to(body, ends.map(|(found, _)| found));
    let (found, closing) = ends?;
    let tail = behind(body, found + closing.len());
    let end = tail.find('>').map_or(tail.len(), |end| end + 1);
    Some((from, from + found + closing.len() + end))
}

/// The name of the tag that a text goes on with, if it is one that can be closed.
fn name(text: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
    let end = text.find(|c| !plain(c))?;
    let name = text.get(..end).filter(|name| name.len() <= 60)?;
    let next = behind(text, end);
    let whole = next.starts_with('>') || next.starts_with(char::is_whitespace);
    (whole && name.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_users_own_is_left_out() {
        let rows = [
            ("one\n```\ntwo\n```\nthree", "one\n\nthree"),
            ("one\n~~~~\n```\ntwo\n~~~~\nthree", "one\n\nthree"),
            ("one\n```\ntwo", "one\n\n"),
            ("> one\ntwo", "\ntwo"),
            ("one\n    two\n    - three", "one\n\n    - three"),
            ("a <log>b\n```\n</log> c", "a \n c"),
            ("a <log at=\"1\">b</log> c", "a \n c"),
            ("a <a>b</ab></a>c", "a \nc"),
            ("Vec<String> a\nb", "Vec<String> a\nb"),
            ("a < b and </c>", "a < b and </c>"),
        ];
        for (text, expected) in rows {
            assert_eq!(own(text), expected, "{text:?}");
        }
    }
}
