//! The text that the user typed in a message, without quoted, fenced or inserted text.

use std::collections::HashMap;

use crate::{
    message::{ContentBlock, Message, slice, steps},
    prose::{UNWRAPPED, closings, item, spoken_words, tag_name},
};

/// Which reports of another person's words are part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Those that stand in one paragraph with who said it: `The spec says: five retries.`
    Named,
    /// None. What somebody else said is no rule of the user.
    No,
}

/// Returns the user's own texts in a message, with these reports.
pub(crate) fn typed(message: &Message, reports: Reports) -> impl Iterator<Item = String> {
    let texts = message.typed_content().filter_map(ContentBlock::as_text);
    texts.map(move |text| own_words(text, reports))
}

/// Returns a text without fences, quoted lines, indented code, the content of tags, and reports of
/// another person's words.
///
/// Quoted text may contain its own closing mark, so it extends to the last one, or to the end of
/// the text if there is none. A tag that is never closed is an ordinary word.
fn own_words(text: &str, reports: Reports) -> String {
    if is_output(text) {
        return String::new();
    }
    let closings = closings(text);
    let (mut kept_text, mut rest, mut line_end) = (String::new(), text, 0);
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        // Search for the line end once for each line, because a line may hold many tags.
        if at >= line_end {
            let next = steps::up_to(rest, rest.find('\n'));
            line_end = next.map_or(text.len(), |end| at + end + 1);
        }
        let line = slice(rest, ..line_end - at);
        let quoted = match fence(line) {
            Some(mark) => Some((0, line.len() + fenced(slice(rest, line.len()..), mark))),
            None if is_foreign(line) => Some((0, line.len())),
            None => between_tags(line, rest, at, &closings)
                .or_else(|| reported_speech(line, rest, reports)),
        };
        let (kept, end) = quoted.unwrap_or((line.len(), line.len()));
        kept_text.push_str(slice(rest, ..kept));
        if quoted.is_some() {
            kept_text.push('\n');
        }
        rest = slice(rest, end..);
    }
    kept_text
}

/// First words of tool output that agents pass on as a user message.
const OUTPUTS: &str = " observation output stdout stderr result results ";

/// Whether a text is tool output, by its first words: `OBSERVATION:`, `Tool result:`.
fn is_output(text: &str) -> bool {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let Some((head, after)) = line.split_once(':').filter(|(head, _)| head.len() <= 60) else {
        return false;
    };
    let alone = after.trim().is_empty() || !head.contains(char::is_lowercase);
    let mut words = words(head).take(4);
    let first = words.next().unwrap_or_default();
    let of_tool = listed(" tool command execution terminal function ", &first);
    let second = words.next();
    match (of_tool, second) {
        (false, None) => alone && listed(OUTPUTS, &first),
        (true, Some(second)) => listed(OUTPUTS, &second),
        (false, Some(_)) | (true, None) => false,
    }
}

/// Returns the fence mark of a line that opens a fence.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    line.get(..length).filter(|_| length >= 3)
}

/// Returns the length in bytes of a fence's content, up to and including the last line that may
/// close it.
fn fenced(text: &str, mark: &str) -> usize {
    let (mut length, mut closed) = (0, None);
    for line in text.split_inclusive('\n') {
        length += steps::through(line).len();
        let trimmed = line.trim();
        if trimmed.starts_with(mark) && trimmed.trim_start_matches(['`', '~']).is_empty() {
            closed = Some(length);
        }
    }
    closed.unwrap_or(length)
}

/// Whether a line is quoted or indented code.
fn is_foreign(line: &str) -> bool {
    let text = line.trim_start();
    let indent = slice(line, ..line.len() - text.len());
    let deep = indent.contains('\t') || indent.len() >= 4;
    let is_item =
        text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '+' | '\u{2022}'));
    text.starts_with('>') || (deep && !is_item)
}

/// Returns the byte range, in `rest`, of the first element that opens in `line` and is closed.
/// `rest` begins with the line and lies at offset `at` of the whole text, to which `closings`
/// refers.
fn between_tags(
    line: &str,
    rest: &str,
    at: usize,
    closings: &HashMap<&str, usize>,
) -> Option<(usize, usize)> {
    let opens = line.match_indices('<').find_map(|(from, _)| {
        let name = tag_name(slice(line, from + 1..))?;
        closings.get(name).filter(|last| **last > at + from).map(|last| (from, *last - at))
    });
    steps::up_to(line, opens.map(|(from, _)| from));
    let (from, closing) = opens?;
    let end = slice(rest, closing..).find('>').map_or(rest.len(), |end| closing + end + 1);
    Some((from, end))
}

/// Returns the byte range, in `rest`, of another person's words that `line` announces. Words on the line extend to the last quotation mark on it, if they begin with one, else to
/// the end of the paragraph. Words on later lines, and a letter that begins on the line, extend to the
/// last quotation mark or to the end: where they end is not known. Announced text that is a fence, a
/// quoted line or a tag has its own marks, which are handled elsewhere.
fn reported_speech(line: &str, rest: &str, reports: Reports) -> Option<(usize, usize)> {
    const OPENING: [char; 2] = ['"', '\u{201c}'];
    const CLOSING: [char; 2] = ['"', '\u{201d}'];
    let from = announcement(line)?;
    let words = slice(rest, from..).trim_start();
    let first = steps::through(words).lines().next().unwrap_or_default();
    if first.is_empty() || fence(first).is_some() || first.starts_with(['>', '<']) {
        return None;
    }
    let start = rest.len() - words.len();
    let opened = words.strip_prefix(OPENING);
    let on_line = first.strip_prefix(OPENING).filter(|opened| opened.contains(CLOSING));
    // A letter begins with an address: `Hi all,`.
    let ends_here = on_line.is_some() || (opened.is_none() && !first.trim_end().ends_with(','));
    let is_named = start < line.trim_end().len() && ends_here;
    if is_named && reports == Reports::Named {
        return None;
    }
    // The bytes after the last closing mark.
    let after = |quoted: &str| quoted.rsplit_once(CLOSING).map(|(_, after)| after.len());
    let end = match (is_named, on_line.and_then(after)) {
        (true, Some(after)) => start + first.len() - after,
        (true, None) => start + paragraph_length(words),
        (false, _) => rest.len() - opened.and_then(after).unwrap_or_default(),
    };
    Some((from.min(start), end))
}

/// Returns the bytes of the paragraph that a text begins with. A short line was not wrapped, so it ends
/// the paragraph, like a blank line or an item of a list after it.
fn paragraph_length(text: &str) -> usize {
    let (mut lines, mut length) = (text.split_inclusive('\n').peekable(), 0);
    while let Some(line) = lines.next() {
        length += line.len();
        let goes_on = |next: &&str| !next.trim().is_empty() && item(next.trim_start()).is_none();
        if line.len() < UNWRAPPED || !lines.peek().is_some_and(goes_on) {
            break;
        }
    }
    length
}

/// Nouns for pasted text in an announcement.
const PASTED: &str = " output log logs traceback error errors page text content contents mail email message response file diff readme ticket ";

/// Returns the byte offset after an announcement: `The page says:`, `Here is the log:`.
fn announcement(line: &str) -> Option<usize> {
    let colons = line.match_indices(':').take(8);
    colons.map(|(at, _)| at + 1).find(|from| {
        let (head, after) = (slice(line, ..*from), slice(line, *from..).chars().next());
        let ends = after.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\u{201c}'));
        let is_in_code = head.matches('`').count() % 2 == 1;
        ends && !is_in_code && announces(head)
    })
}

/// Whether the text before a colon announces another person's words or pasted text.
fn announces(head: &str) -> bool {
    let words: Vec<String> = words(head).take(40).collect();
    let last = words.len().saturating_sub(4);
    let reports = words.iter().enumerate().skip(last).any(|(at, word)| {
        listed(" says said wrote writes reads claims claimed told states replied ", word)
            && !is_of_speaker(&words, at)
    });
    let shows = words.first().is_some_and(|first| listed(" here here's below this ", first));
    reports || (shows && words.last().is_some_and(|last| listed(PASTED, last)))
}

/// Returns the words of a text in lower case, with straight apostrophes.
fn words(text: &str) -> impl Iterator<Item = String> {
    spoken_words(text).map(|word| word.to_lowercase().replace('\u{2019}', "'"))
}

/// Whether a list of words between spaces contains a word.
fn listed(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word && !word.is_empty())
}

/// Whether the subject of the verb at `at` is `I`.
fn is_of_speaker(words: &[String], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|subject| subject == "i")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_the_users_own_is_left_out() {
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
            ("<p>x</p>\nIgnore it.\n<p>y</p>\nz", "\n\nz"),
            ("one\n```\n```js\ntwo\n```\nthree\n```\nfour", "one\n\nfour"),
            ("The page says:\none\n\ntwo", "The page says:\n"),
            ("He wrote: \"one. two \"three\" four.\"\nfive", "He wrote:\n\nfive"),
            ("It says:\n> one\ntwo", "It says:\n\ntwo"),
            ("Here is the log:\none", "Here is the log:\n"),
            ("I said: one.\ntwo", "I said: one.\ntwo"),
            ("Rules for the log:\none", "Rules for the log:\none"),
            ("OBSERVATION:\none", ""),
            ("Tool output: one", ""),
            ("Output: JSON", "Output: JSON"),
            ("EXECUTION RESULT of [ls]:\none", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(own_words(text, Reports::No), expected, "{text:?}");
        }
    }

    #[test]
    fn what_somebody_said_on_one_line_ends_there() {
        let rows = [
            ("He says: the port is 9443.\n\nNever push.", "He says:\n\nNever push."),
            ("- The spec says: 5\n- Never push.", "- The spec says:\n- Never push."),
            ("She told me: go.\nNever push.", "She told me:\nNever push."),
            (
                "It reads: the first of two wrapped lines\nand the second.\n\nNo.",
                "It reads:\n\nNo.",
            ),
            ("He said: \"go\". I go.\nSay \"no\".", "He said:\n. I go.\nSay \"no\"."),
            ("It says `port: 30`, raise it.", "It says `port: 30`, raise it."),
            // These are longer than the line.
            ("He wrote: Hi all,\n\nalways push.", "He wrote:\n"),
            ("He wrote: \"Hi\nalways push\"\nNo.", "He wrote:\n\nNo."),
            ("He wrote: \"", "He wrote:\n"),
        ];
        for (text, expected) in rows {
            assert_eq!(own_words(text, Reports::No), expected, "{text:?}");
            let (whole, is_longer) = (own_words(text, Reports::Named), text.contains("wrote"));
            assert_eq!(whole == text, !is_longer, "{text:?} {whole:?}");
        }
    }
}
