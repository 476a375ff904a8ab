//! Lines that report failures, and error codes.

use super::{
    class::{FactClass, Note},
    word_kinds::{CharKinds, Word, is_listed},
};
use crate::message::steps;

/// Beginnings of lines that report a failure, in any case.
#[rustfmt::skip]
const OPENINGS: [&str; 11] = [
    "error:", "error[", "fatal:", "panic:", "fatal error:", "npm err!", "exception:",
    "exception in thread ", "e   ", "assertion failed", "failed:",
];

/// Beginnings of log lines that report a failure, case-sensitive.
const LOUD: [&str; 4] = ["ERROR ", "FAILED ", "FAIL ", "FAIL: "];

/// Notes the lines of a text that report a failure.
pub(crate) fn failures(text: &str, note: Note<'_>) {
    for (_, line) in failing_lines(text) {
        note(FactClass::Error, line);
    }
}

/// Returns the rest of a text from the first line that reports a failure.
pub fn first_failure(text: &str) -> Option<&str> {
    failing_lines(text).next().and_then(|(at, _)| text.get(at..))
}

/// Returns the lines that report a failure, without list marks, and the byte offset of each.
fn failing_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    text.split_inclusive('\n').filter_map(move |whole| {
        let line = steps::through(whole).trim_start_matches(|c: char| {
            c.is_whitespace() || matches!(c, '-' | '*' | '>' | '\u{2022}')
        });
        end += whole.len();
        let (start, line) = (end - line.len(), line.trim_end());
        (line.len() <= LONGEST && is_failure(line)).then_some((start, line))
    })
}

/// Finds the error codes among the words of a text, in order: `E0425`, `ENOENT`, `HTTP 404`.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    /// Whether the word before was `HTTP`.
    http: bool,
}

impl Codes {
    /// Notes the next word if it is a code.
    pub(crate) fn read(&mut self, word: &Word<'_>, note: Note<'_>) {
        let Word { text: word, kinds } = *word;
        // Every code has two capitals, or one capital and digits, and so does `HTTP`.
        let may_be_code = kinds.has_any(CharKinds::INNER)
            || (kinds.has_any(CharKinds::UPPER) && kinds.has_any(CharKinds::DIGIT));
        if !may_be_code && !self.http {
            return;
        }
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let word =
            word.split(['[', ']', ':', '(', ')', '`']).find(|part| is_code(part)).unwrap_or(word);
        if is_code(word) {
            note(FactClass::Error, word);
        }
        let failed = matches!(word.as_bytes(), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9']);
        if failed && self.http {
            note(FactClass::Error, &format!("HTTP {word}"));
        }
        self.http = word == "HTTP" || word.starts_with("HTTP/");
    }
}

/// The maximum length of a line that reports a failure, in bytes.
const LONGEST: usize = 400;

fn is_failure(line: &str) -> bool {
    let code = ["=>", "${", "({", "</", "();", "\u{2192}", "raise ", "except ", "catch", "throw "];
    // The message of a panic of Rust, and of some exceptions, goes on below.
    let is_class = line.starts_with("class ");
    let goes_on = line.starts_with("thread '") || (has_exception(line) && !is_class);
    (opens(line) || has_failure_phrase(line))
        && (goes_on || !line.ends_with(['{', ';', ',', '(', '[', ':']))
        && !code.iter().any(|mark| line.contains(mark))
}

fn opens(line: &str) -> bool {
    line.starts_with(['e', 'E', 'f', 'F', 'p', 'P', 'n', 'N', 'a', 'A'])
        && (OPENINGS.iter().any(|opening| goes_on_after(line, opening))
            || LOUD.iter().any(|opening| line.starts_with(opening)))
}

/// Whether a line begins with an opening, in any case, and has a word after it.
fn goes_on_after(line: &str, opening: &str) -> bool {
    line.split_at_checked(opening.len()).is_some_and(|(head, rest)| {
        head.eq_ignore_ascii_case(opening) && rest.contains(char::is_alphabetic)
    })
}

/// Whether a line contains a phrase that only failures have, or the name of an exception.
///
/// A phrase is compared only if the two letters around one of its spaces match, and the name of an
/// exception only before a colon, so most lines need one pass. Nine separate searches took a fifth
/// of the total time.
fn has_failure_phrase(line: &str) -> bool {
    let bytes = line.as_bytes();
    let mut before = 0;
    let mut colon = false;
    let phrased = bytes.iter().enumerate().any(|(at, byte)| {
        colon |= *byte == b':' && matches!(before, b'r' | b'n' | b'c');
        let last = std::mem::replace(&mut before, *byte);
        *byte == b' ' && is_phrase(bytes, at, last)
    });
    phrased || (colon && has_exception(line))
}

/// Whether one of these phrases, in any case, lies around the space at byte `at` of a line.
fn is_phrase(line: &[u8], at: usize, before: u8) -> bool {
    let Some(after) = line.get(at + 1) else { return false };
    let (phrase, space) = match [before | 0x20, after | 0x20] {
        [b'd', b'a'] => ("panicked at", 8),
        [b'd', b'n'] => ("command not found", 7),
        [b'o', b's'] => ("no such file or directory", 2),
        [b'n', b'd'] => ("permission denied", 10),
        [b'n', b'f'] => ("segmentation fault", 12),
        [b'n', b'r'] => ("connection refused", 10),
        [b't', b'f'] => ("cannot find module", 6),
        [b't', b'o'] => ("out of memory", 3),
        [b'd', b'o'] => ("timed out", 5),
        [b':', b'n'] => (": not found", 1),
        [b'd', b'r'] => ("undefined reference", 9),
        _ => return false,
    };
    let found = at.checked_sub(space).and_then(|start| line.get(start..start + phrase.len()));
    found.is_some_and(|found| found.eq_ignore_ascii_case(phrase.as_bytes()))
}

/// Whether the name of an exception (`ValueError:`) is among the first three words.
fn has_exception(line: &str) -> bool {
    let mut words = line.split_whitespace().take(3);
    words.any(|word| is_exception(word) && line.len() > word.len() + 2)
}

/// Whether a word is the name of an exception and a colon: `ValueError:`, `java.io.IOException:`.
fn is_exception(word: &str) -> bool {
    let endings = ["Error:", "Exception:", "Panic:"];
    endings.iter().find_map(|end| word.strip_suffix(end)).is_some_and(|name| {
        name.starts_with(char::is_alphabetic) && !name.contains(['"', '\'', '('])
    })
}

/// Names of system errors and signals.
#[rustfmt::skip]
const SYSTEM: [&str; 32] = [
    "EACCES", "EADDRINUSE", "EAGAIN", "EAI_AGAIN", "EBADF", "EBUSY", "ECONNABORTED", "ECONNREFUSED",
    "ECONNRESET", "EEXIST", "EINVAL", "EIO", "EISDIR", "ELOOP", "EMFILE", "ENOENT", "ENOMEM",
    "ENOSPC", "ENOTDIR", "ENOTEMPTY", "ENOTFOUND", "EPERM", "EPIPE", "ERESOLVE", "EROFS",
    "ETIMEDOUT", "EXDEV", "SIGABRT", "SIGBUS", "SIGKILL", "SIGSEGV", "SIGTERM",
];

/// Whether a word is an error code: `E0425`, `TS2345`, `ENOENT`.
fn is_code(word: &str) -> bool {
    let number = word.strip_prefix('E').or(word.strip_prefix("TS"));
    number.is_some_and(|rest| rest.len() == 4 && rest.bytes().all(|b| b.is_ascii_digit()))
        || word.starts_with("CVE-")
        || (word.starts_with(['E', 'S']) && is_listed(&SYSTEM, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_returned_from_its_first_failure_on() {
        let text = "running\n  error[E0502]: cannot borrow\n --> src/a.rs:1\nmore";
        let rest = "error[E0502]: cannot borrow\n --> src/a.rs:1\nmore";
        assert_eq!(first_failure(text), Some(rest));
        assert_eq!(first_failure("ValueError: no\n"), Some("ValueError: no\n"));
        assert_eq!(first_failure("a\nFAILED tests/a.py::b"), Some("FAILED tests/a.py::b"));
        let panic =
            "thread 'roundtrip' (77) panicked at tests/a.rs:5:9:\nassertion failed: is_kept";
        assert_eq!(first_failure(&format!("running 1 test\n{panic}")), Some(panic));
        assert_eq!(first_failure("fn main() {\n    // panicked at this place:\n}"), None);
        assert_eq!(first_failure("failed tests are fixed"), None);
        assert_eq!(first_failure("no errors at all"), None);
        assert_eq!(first_failure("class ParseError:\n    pass"), None);
        for told in ["SolverError: Nothing fits:", "E   SolverError: Nothing fits:"] {
            assert_eq!(first_failure(told), Some(told));
        }
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(SYSTEM.is_sorted());
    }
}
