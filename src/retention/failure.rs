//! Lines that tell of failures, and their codes.

use super::class::FactClass;

/// How lines begin that tell of a failure.
const OPENINGS: [&str; 10] = [
    "error:",
    "error[",
    "fatal:",
    "panic:",
    "fatal error:",
    "npm err!",
    "exception:",
    "e   ",
    "assertion failed",
    "failed:",
];

/// What only failures say.
const PHRASES: [&str; 9] = [
    "panicked at",
    "command not found",
    "no such file or directory",
    "permission denied",
    "segmentation fault",
    "connection refused",
    "cannot find module",
    "out of memory",
    "undefined reference",
];

/// Tells of the failures in a text: lines, and codes wherever they stand.
pub(super) fn failures(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    for line in text.lines() {
        let line = line
            .trim_start_matches(|c: char| c.is_whitespace() || "-*>\u{2022}".contains(c))
            .trim_end();
        if line.len() <= LONGEST && is_failure(line) {
            note(FactClass::Error, line);
        }
    }
    let mut before = "";
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let word =
            word.split(['[', ']', ':', '(', ')', '`']).find(|part| is_code(part)).unwrap_or(word);
        if is_code(word) {
            note(FactClass::Error, word);
        }
        let failed = matches!(word.as_bytes(), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9']);
        if failed && (before == "HTTP" || before.starts_with("HTTP/")) {
            note(FactClass::Error, &format!("HTTP {word}"));
        }
        before = word;
    }
}

const LONGEST: usize = 400;

fn is_failure(line: &str) -> bool {
    let code = ["=>", "${", "({", "</", "();", "\u{2192}", "raise ", "except ", "catch", "throw "];
    if line.ends_with(['{', ';', ',', '(', '[', ':']) || code.iter().any(|sign| line.contains(sign))
    {
        return false;
    }
    let lower = line.to_lowercase();
    let opens = OPENINGS.iter().any(|opening| {
        lower.strip_prefix(opening).is_some_and(|rest| rest.chars().any(char::is_alphabetic))
    });
    let says = PHRASES.iter().any(|phrase| lower.contains(phrase));
    let mut words = line.split_whitespace().take(3);
    opens || says || words.any(|word| is_raised(word) && line.len() > word.len() + 3)
}

/// `ValueError:`, `java.io.IOException:`.
fn is_raised(word: &str) -> bool {
    let name = word.strip_suffix(':').unwrap_or_default();
    let kind = ["Error", "Exception", "Panic"].iter().find_map(|end| name.strip_suffix(end));
    kind.is_some_and(|kind| {
        kind.starts_with(char::is_alphabetic) && !kind.contains(['"', '\'', '('])
    })
}

/// Names of the failures of systems.
const SYSTEM: &str = " ENOENT EACCES EPERM EEXIST ENOTDIR EISDIR ENOTEMPTY EADDRINUSE ECONNREFUSED ECONNRESET ECONNABORTED \
    ETIMEDOUT EPIPE EMFILE ENOSPC ENOMEM EINVAL EAGAIN EBUSY EROFS ENOTFOUND EAI_AGAIN ERESOLVE EBADF EIO ELOOP EXDEV \
    SIGSEGV SIGKILL SIGABRT SIGTERM SIGBUS ";

/// `E0425`, `TS2345`, `ENOENT`.
fn is_code(word: &str) -> bool {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    word.strip_prefix('E').is_some_and(|rest| digits(rest, 4))
        || word.strip_prefix("TS").is_some_and(|rest| digits(rest, 4))
        || word.strip_prefix("CVE-").is_some()
        || (word.len() > 2 && word.len() < 16 && SYSTEM.contains(&format!(" {word} ")))
}
