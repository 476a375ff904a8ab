//! Versions, hashes, and numbers with their units.

use super::{
    border::is_whole,
    chunk::chunks,
    class::{FactClass, Note},
    word_kinds::{is_listed, is_listed_in_any_case},
};
use crate::message::{slice, steps};

/// Returns the UUID, digest or commit hash that a word is.
pub(crate) fn hash(word: &str) -> Option<&str> {
    let mut names = ["sha256:", "sha1:", "sha512:"].iter();
    let word = names.find_map(|name| word.strip_prefix(name)).unwrap_or(word);
    (is_uuid(word) || is_digest(word)).then_some(word)
}

/// The length of a UUID, in bytes.
pub(crate) const UUID: usize = 36;

fn is_uuid(word: &str) -> bool {
    word.len() == UUID
        && word.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && word.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

fn is_digest(word: &str) -> bool {
    if !(7..=128).contains(&word.len()) || !word.bytes().all(|b| b.is_ascii_hexdigit()) {
        return false;
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let lower = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let mixed = digits > 0 && digits < word.len();
    mixed && (lower || word.len() > 31)
}

/// Words before a version with only two parts.
#[rustfmt::skip]
const NAMES: [&str; 15] = [
    "django", "edition", "go", "java", "msrv", "node", "php", "postgres", "python", "release",
    "ruby", "rust", "rustc", "ubuntu", "version",
];

/// Returns the version that a word is. A version has three parts, or a `v` before it, or two parts
/// after a name such as `Python`.
pub(crate) fn version<'w>(word: &'w str, before: &str) -> Option<&'w str> {
    let word =
        word.rsplit_once('@').map_or(word, |(_, version)| version).trim_start_matches(['^', '~']);
    let number = word.strip_prefix(['v', 'V']).unwrap_or(word);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let core = number.split(['-', '+']).next().unwrap_or_default();
    let parts = core.split('.').take(6).filter(|part| is_number(part)).count();
    let all = core.split('.').count() == parts;
    let enough = parts == 3
        || (parts > 0 && number.len() < word.len())
        || (parts == 2
            && chunks(before).last().is_some_and(|name| is_listed_in_any_case(&NAMES, name.text)));
    let tail = number.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b));
    let is_version = all && enough && tail && core.split('.').all(|part| part.len() < 6);
    is_version.then_some(word)
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Units, case-sensitive.
#[rustfmt::skip]
const UNITS: [&str; 80] = [
    "%", "B", "EUR", "GB", "GHz", "GiB", "Hz", "K", "KB", "KiB", "M", "MB", "MHz", "MiB", "TB",
    "TiB", "USD", "byte", "bytes", "characters", "chars", "cm", "columns", "cores", "day", "days",
    "dollars", "em", "errors", "euros", "failed", "files", "g", "h", "hour", "hours", "k", "kB",
    "kHz", "kg", "km", "line", "lines", "m", "messages", "min", "mins", "minute", "minutes", "mm",
    "month", "months", "ms", "ns", "passed", "percent", "pt", "px", "rem", "requests", "retries",
    "rows", "s", "sec", "second", "seconds", "secs", "test", "tests", "threads", "times", "token",
    "tokens", "us", "warnings", "week", "weeks", "year", "years", "µs",
];

/// Whether a word is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    is_listed(&UNITS, word)
}

/// Notes the numbers with a unit in a text.
pub(crate) fn numbers(text: &str, note: Note<'_>) {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(next_digit) {
        let start = at + found;
        let end = start + number_length(slice(text, start..).as_bytes());
        at = end;
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || "._-/:#,".contains(c));
        if is_part || end - start > 24 {
            continue;
        }
        let from = start - usize::from(before == Some('$'));
        let unit = unit_length(slice(text, end..));
        let has_unit = unit > 0 || from < start;
        // A number that an audit would not find as a whole fact is not noted.
        if has_unit && is_whole(FactClass::Number, text, from, end + unit) {
            note(FactClass::Number, slice(text, from..end + unit));
            at = end + unit;
        }
    }
}

fn next_digit(text: &str) -> Option<usize> {
    steps::up_to(text, text.bytes().position(|byte| byte.is_ascii_digit()))
}

/// Returns the length in bytes of the digits at the start, with `.`, `,` and `_` between them.
fn number_length(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let follows = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !(byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'_') && follows) {
            break;
        }
        end += 1;
    }
    end
}

/// Returns the length in bytes of the unit at the start and the space before it; 0 if none.
fn unit_length(text: &str) -> usize {
    let space = usize::from(text.starts_with(' '));
    let rest = slice(text, space..);
    if rest.starts_with('%') {
        return space + 1;
    }
    let mut length = 0;
    for (count, (at, next)) in rest.char_indices().enumerate() {
        if !next.is_alphabetic() {
            break;
        }
        if count == 12 {
            return 0;
        }
        length = at + next.len_utf8();
    }
    let unit = slice(rest, ..length);
    let next = rest.get(length..).and_then(|rest| rest.chars().next());
    let ends = next.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '(');
    if length > 0 && ends && is_unit(unit) { space + length } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(NAMES.is_sorted());
        assert!(UNITS.is_sorted());
    }
}
