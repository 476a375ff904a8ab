//! Versions, hashes, and numbers with their units.

use super::class::FactClass;

/// Tells of the hash that a word is: a UUID, a digest, a commit.
pub(super) fn hash(word: &str, note: &mut dyn FnMut(FactClass, &str)) -> bool {
    let word = ["sha256:", "sha1:", "sha512:"]
        .iter()
        .find_map(|name| word.strip_prefix(name))
        .unwrap_or(word);
    let is_hash = is_uuid(word) || is_digest(word);
    if is_hash {
        note(FactClass::Hash, word);
    }
    is_hash
}

fn is_uuid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    word.len() == 36
        && lengths.eq([8, 4, 4, 4, 12])
        && word.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

fn is_digest(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let lower = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let upper = word.len() > 31 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mixed = digits > 0 && digits < word.len();
    (7..=128).contains(&word.len()) && mixed && (lower || upper)
}

/// Words before a version of two parts.
const NAMES: &str =
    " version python node rust rustc ruby go java php django release msrv edition postgres ubuntu ";

/// Tells of the version that a word is: three parts; a `v`; two parts behind a name such as
/// `Python`.
pub(super) fn version(word: &str, before: &str, note: &mut dyn FnMut(FactClass, &str)) -> bool {
    let word =
        word.rsplit_once('@').map_or(word, |(_, version)| version).trim_start_matches(['^', '~']);
    let number = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let core = number.split(['-', '+']).next().unwrap_or_default();
    let parts = core.split('.').take(6).filter(|part| is_number(part)).count();
    let all = core.split('.').count() == parts;
    let named = NAMES.contains(&format!(" {} ", before.to_lowercase()));
    let enough = parts == 3 || (parts == 2 && named) || (parts > 0 && number.len() < word.len());
    let tail = number.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b));
    let is_version = all && enough && tail && core.split('.').all(|part| part.len() < 6);
    if is_version {
        note(FactClass::Version, word);
    }
    is_version
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Units, as they are written.
const UNITS: &str = " ns us \u{b5}s ms s sec secs second seconds min mins minute minutes h hour hours day days week weeks \
    month months year years B kB KB MB GB TB KiB MiB GiB TiB byte bytes k K M px em rem pt mm cm m km kg g Hz kHz MHz GHz \
    % percent tokens token lines line tests test files errors warnings passed failed requests retries rows columns \
    messages characters chars threads cores times USD EUR dollars euros ";

/// Tells of the numbers with a unit in a text.
pub(super) fn numbers(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) =
        bytes.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit))
    {
        let start = at + found;
        let end = start + number_length(bytes.get(start..).unwrap_or_default());
        at = end;
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let free = before.is_none_or(|c| !c.is_alphanumeric() && !"._-/:#,".contains(c));
        if !free || end - start > 24 {
            continue;
        }
        let from = start - usize::from(before == Some('$'));
        let unit = unit_length(text.get(end..).unwrap_or_default());
        if unit > 0 || from < start {
            note(FactClass::Number, text.get(from..end + unit).unwrap_or_default());
            at = end + unit;
        }
    }
}

/// Digits with points and commas between them.
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

/// The unit that a text begins with, and the space before it.
fn unit_length(text: &str) -> usize {
    let space = usize::from(text.starts_with(' '));
    let rest = text.get(space..).unwrap_or_default();
    if rest.starts_with('%') {
        return space + 1;
    }
    let letters = rest.char_indices().take(12).find(|(_, c)| !c.is_alphabetic()).map(|(at, _)| at);
    let length = letters.unwrap_or(if rest.chars().take(12).count() < 12 { rest.len() } else { 0 });
    let unit = rest.get(..length).unwrap_or_default();
    let next = rest.get(length..).and_then(|rest| rest.chars().next());
    let ends = next.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '(');
    if length > 0 && ends && UNITS.contains(&format!(" {unit} ")) { space + length } else { 0 }
}
