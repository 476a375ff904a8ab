//! Lines that tell of failures, and their codes.

use super::{
    class::FactClass,
    scan::{self, Signs, Word, is_listed},
};
use crate::message::steps;

/// How lines begin that tell of a failure.
const OPENINGS: [&str; 11] = [
    "error:",
    "error[",
    "fatal:",
    "panic:",
    "fatal error:",
    "npm err!",
    "exception:",
    "exception in thread ",
    "e   ",
    "assertion failed",
    "failed:",
];

/// How lines of logs begin that tell of a failure, in this case alone.
const LOUD: [&str; 3] = ["ERROR ", "FAILED ", "FAIL "];

/// Tells of the failures in a text: lines, and codes wherever they stand.
pub(crate) fn failures(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    for (_, line) in failing_lines(text) {
        note(FactClass::Error, line);
    }
    codes(text, note);
}

/// Returns a text from its first line on that tells of a failure.
pub fn first_failure(text: &str) -> Option<&str> {
    failing_lines(text).next().and_then(|(at, _)| text.get(at..))
}

/// The lines that tell of a failure, without the signs around them, and where each begins.
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

fn codes(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    let mut http = false;
    for Word { text: word, signs } in scan::words(text) {
        // Every code has two capitals, or one and digits; so has `HTTP`.
        let may_be_code = signs.has_any(Signs::INNER)
            || (signs.has_any(Signs::UPPER) && signs.has_any(Signs::DIGIT));
        if !may_be_code && !http {
            continue;
        }
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let word =
            word.split(['[', ']', ':', '(', ')', '`']).find(|part| is_code(part)).unwrap_or(word);
        if is_code(word) {
            note(FactClass::Error, word);
        }
        let failed = matches!(word.as_bytes(), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9']);
        if failed && http {
            note(FactClass::Error, &format!("HTTP {word}"));
        }
        http = word == "HTTP" || word.starts_with("HTTP/");
    }
}

const LONGEST: usize = 400;

fn is_failure(line: &str) -> bool {
    let code = ["=>", "${", "({", "</", "();", "\u{2192}", "raise ", "except ", "catch", "throw "];
    (opens(line) || tells(line))
        && !line.ends_with(['{', ';', ',', '(', '[', ':'])
        && !code.iter().any(|sign| line.contains(sign))
}

fn opens(line: &str) -> bool {
    let rest = |opening: &&str| {
        let head = line.get(..opening.len())?;
        head.eq_ignore_ascii_case(opening).then(|| line.get(opening.len()..))?
    };
    let loud = || LOUD.iter().any(|opening| line.starts_with(opening));
    line.starts_with(['e', 'E', 'f', 'F', 'p', 'P', 'n', 'N', 'a', 'A'])
        && (OPENINGS.iter().filter_map(rest).any(|rest| rest.chars().any(char::is_alphabetic))
            || loud())
}

/// Whether a line says what only failures say, or what was raised.
///
/// Every phrase is looked for where its two letters around a space are, and the name of what was
/// raised at a colon. So one look at each byte is enough for nearly all lines; to search for nine
/// phrases took a fifth of all the time.
fn tells(line: &str) -> bool {
    let bytes = line.as_bytes();
    let mut before = 0;
    let mut colon = false;
    let phrased = bytes.iter().enumerate().any(|(at, byte)| {
        colon |= *byte == b':' && matches!(before, b'r' | b'n' | b'c');
        let last = std::mem::replace(&mut before, *byte);
        *byte == b' ' && is_phrase(bytes, at, last)
    });
    phrased || (colon && is_raised(line))
}

/// Whether a phrase that only failures say has its space here, in any case.
fn is_phrase(line: &[u8], at: usize, before: u8) -> bool {
    let after = line.get(at + 1).copied().unwrap_or_default();
    let (phrase, space) = match [before | 0x20, after | 0x20] {
        [b'd', b'a'] => ("panicked at", 8),
        [b'd', b'n'] => ("command not found", 7),
        [b'o', b's'] => ("no such file or directory", 2),
        [b'n', b'd'] => ("permission denied", 10),
        [b'n', b'f'] => ("segmentation fault", 12),
        [b'n', b'r'] => ("connection refused", 10),
        [b't', b'f'] => ("cannot find module", 6),
        [b't', b'o'] => ("out of memory", 3),
        [b'd', b'r'] => ("undefined reference", 9),
        _ => return false,
    };
    let found = at.checked_sub(space).and_then(|start| line.get(start..start + phrase.len()));
    found.is_some_and(|found| found.eq_ignore_ascii_case(phrase.as_bytes()))
}

/// Whether `ValueError:` or `java.io.IOException:` is among the first words.
fn is_raised(line: &str) -> bool {
    let raised = |word: &str| {
        let name = word.strip_suffix(':').unwrap_or_default();
        let kind = ["Error", "Exception", "Panic"].iter().find_map(|end| name.strip_suffix(end));
        kind.is_some_and(|kind| {
            kind.starts_with(char::is_alphabetic) && !kind.contains(['"', '\'', '('])
        })
    };
    line.split_whitespace().take(3).any(|word| raised(word) && line.len() > word.len() + 2)
}

/// Names of the failures of systems.
#[rustfmt::skip]
const SYSTEM: [&str; 32] = [
    "EACCES", "EADDRINUSE", "EAGAIN", "EAI_AGAIN", "EBADF", "EBUSY", "ECONNABORTED", "ECONNREFUSED",
    "ECONNRESET", "EEXIST", "EINVAL", "EIO", "EISDIR", "ELOOP", "EMFILE", "ENOENT", "ENOMEM",
    "ENOSPC", "ENOTDIR", "ENOTEMPTY", "ENOTFOUND", "EPERM", "EPIPE", "ERESOLVE", "EROFS",
    "ETIMEDOUT", "EXDEV", "SIGABRT", "SIGBUS", "SIGKILL", "SIGSEGV", "SIGTERM",
];

/// `E0425`, `TS2345`, `ENOENT`.
fn is_code(word: &str) -> bool {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    word.strip_prefix('E').is_some_and(|rest| digits(rest, 4))
        || word.strip_prefix("TS").is_some_and(|rest| digits(rest, 4))
        || word.strip_prefix("CVE-").is_some()
        || (word.starts_with(['E', 'S']) && is_listed(&SYSTEM, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_its_first_failure_on() {
        let text = "running\n  error[E0502]: cannot borrow\n --> src/a.rs:1\nmore";
        let rest = "error[E0502]: cannot borrow\n --> src/a.rs:1\nmore";
        assert_eq!(first_failure(text), Some(rest));
        assert_eq!(first_failure("ValueError: no\n"), Some("ValueError: no\n"));
        assert_eq!(first_failure("a\nFAILED tests/a.py::b"), Some("FAILED tests/a.py::b"));
        assert_eq!(first_failure("failed tests are fixed"), None);
        assert_eq!(first_failure("no errors at all"), None);
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(SYSTEM.is_sorted());
    }
}
