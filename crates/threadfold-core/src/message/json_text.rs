//! JSON text, byte by byte: strings, and white space between tokens.

use std::borrow::Cow;

/// Returns valid JSON text without the white space between its tokens; `None` if it has none.
pub(super) fn compacted(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut begin = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at += rest_of_string(bytes.get(at..)?),
            b' ' | b'\n' | b'\r' | b'\t' => {
                if kept.capacity() == 0 {
                    kept.reserve(text.len());
                }
                kept.push_str(text.get(begin..at - 1)?);
                begin = at;
            }
            _ => {}
        }
    }
    if begin == 0 {
        return None;
    }
    kept.push_str(text.get(begin..)?);
    Some(kept)
}

/// Returns the length in bytes of the rest of a valid string after its opening quote.
fn rest_of_string(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += run_of_text(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(_) | None => return at + 1,
        }
    }
}

/// Returns the text between the quotes of a valid string with its escapes resolved; `None` if it
/// contains half of a surrogate pair.
pub fn unescaped(text: &str) -> Option<String> {
    unescaped_or(text, None)
}

/// Returns the text with its JSON escapes resolved. A backslash that starts no valid escape stays.
pub(super) fn unescaped_lossy(text: &str) -> Cow<'_, str> {
    let unescaped = text.contains('\\').then(|| unescaped_or(text, Some(('\\', 1)))).flatten();
    unescaped.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Resolves the escapes of a text. An invalid escape is replaced by the character of `invalid`,
/// which stands for that many bytes; if `invalid` is `None`, the result is `None`.
fn unescaped_or(text: &str, invalid: Option<(char, usize)>) -> Option<String> {
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (plain, escape) = rest.split_at_checked(run_before_escape(rest.as_bytes()))?;
        unescaped.push_str(plain);
        if escape.is_empty() {
            return Some(unescaped);
        }
        let (character, length) = escaped_character(escape).or(invalid)?;
        unescaped.push(character);
        rest = escape.get(length..)?;
    }
}

/// Returns the character that an escape at the start of a text stands for, and the length of the
/// escape in bytes.
fn escaped_character(escape: &str) -> Option<(char, usize)> {
    let character = match escape.as_bytes().get(1)? {
        b'u' => return escaped_code_point(escape),
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    };
    Some((character, 2))
}

/// As [`escaped_character`], for `\u` escapes. A surrogate pair takes two of them.
fn escaped_code_point(escape: &str) -> Option<(char, usize)> {
    let first = code_unit(escape.get(..6)?)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, 6));
    }
    let pair = char::decode_utf16([first, code_unit(escape.get(6..12)?)?]).next()?.ok()?;
    Some((pair, 12))
}

/// Returns the number of an escape such as `\u00e9`.
fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Appends a text as a JSON string.
pub fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    while let Some((plain, after)) = rest.split_at_checked(run_of_text(rest.as_bytes())) {
        json.push_str(plain);
        let mut after = after.chars();
        match after.next() {
            None => break,
            Some('"') => json.push_str("\\\""),
            Some('\\') => json.push_str("\\\\"),
            Some('\n') => json.push_str("\\n"),
            Some('\t') => json.push_str("\\t"),
            Some('\r') => json.push_str("\\r"),
            Some('\u{8}') => json.push_str("\\b"),
            Some('\u{c}') => json.push_str("\\f"),
            Some(control) => json.push_str(&format!("\\u{:04x}", u32::from(control))),
        }
        rest = after.as_str();
    }
    json.push('"');
}

/// Returns how many bytes precede the first quote, backslash or control character.
///
/// Most of a body is text, so this function determines how fast bodies are read and written.
#[inline(always)]
pub fn run_of_text(bytes: &[u8]) -> usize {
    run(
        bytes,
        // One comparison of the minimum with zero takes 15 instructions per block; three joined
        // comparisons take 32.
        |byte| (byte ^ b'"').min(byte ^ b'\\').min(byte.saturating_sub(LAST_CONTROL)) == 0,
        |eight| {
            let control = eight.wrapping_sub(ALL * u64::from(LAST_CONTROL + 1));
            (borrows(eight, b'"') | borrows(eight, b'\\') | control) & !eight & HIGH
        },
    )
}

/// Returns how many bytes precede the first backslash.
#[inline]
fn run_before_escape(bytes: &[u8]) -> usize {
    run(bytes, |byte| byte == b'\\', |eight| borrows(eight, b'\\') & !eight & HIGH)
}

const LAST_CONTROL: u8 = 0x1f;
/// The lowest bit of each of eight bytes, and below it the highest bit of each.
const ALL: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks the first of eight ASCII bytes that equals `byte`, by its highest bit: subtracting one
/// from an equal byte, which is now zero, borrows. The borrow may also mark later bytes by mistake.
#[inline]
fn borrows(eight: u64, byte: u8) -> u64 {
    (eight ^ (ALL * u64::from(byte))).wrapping_sub(ALL)
}

/// Returns how many bytes precede the first byte that ends a run. `ends` tests one byte. `marks`
/// tests eight bytes at once; its lowest set bit is the highest bit of the first byte that ends the
/// run.
///
/// Blocks of 16 bytes are tested without a branch, which compilers turn into few instructions. The
/// byte within the block is located once, at the end.
#[inline(always)]
fn run(bytes: &[u8], ends: impl Fn(u8) -> bool, marks: impl Fn(u64) -> u64) -> usize {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let passed = blocks
        .iter()
        .position(|block| block.iter().fold(false, |any, byte| any | ends(*byte)))
        .unwrap_or(blocks.len());
    let at = match blocks.get(passed) {
        Some(block) => {
            let block = u128::from_le_bytes(*block);
            let (low, high) = (marks(block as u64), marks((block >> 64) as u64));
            let bits = if low == 0 { 64 + high.trailing_zeros() } else { low.trailing_zeros() };
            bits as usize / 8
        }
        None => rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len()),
    };
    passed * 16 + at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_written_and_read_as_serde_json_does(text in r#"([ -~]|[\x00-\x1f"\\]|\PC){0,80}"#) {
            let mut written = String::new();
            push_string(&mut written, &text);
            prop_assert_eq!(&written, &serde_json::to_string(&text).unwrap());
            let between = written.get(1..written.len() - 1).unwrap();
            prop_assert_eq!(unescaped(between), Some(text));
        }

        #[test]
        fn escapes_are_resolved_as_serde_json_does(text in r#"(a|\\n|\\/|\\u0041|\\u00e9|\\ud83d|\\uDE00|\\ud83d\\ude00){0,6}"#) {
            let expected: Option<String> = serde_json::from_str(&format!("\"{text}\"")).ok();
            prop_assert_eq!(unescaped(&text), expected);
        }

        #[test]
        fn a_run_ends_at_the_first_quote_backslash_or_control_character(text in r#"[a-z\x1f"\\\x7f\u{80}é]{0,60}"#) {
            let ends = |char: char| char == '"' || char == '\\' || char < ' ';
            prop_assert_eq!(run_of_text(text.as_bytes()), text.find(ends).unwrap_or(text.len()));
            let escape = text.find('\\').unwrap_or(text.len());
            prop_assert_eq!(run_before_escape(text.as_bytes()), escape);
        }
    }

    #[test]
    fn invalid_escapes_stay() {
        let rows = [
            (r"a\u00e9\n", "a\u{e9}\n"),
            (r"\ud83d\ude00", "\u{1f600}"),
            (r"\ud83d \u12 \x \", r"\ud83d \u12 \x \"),
            (r"C:\\new", r"C:\new"),
        ];
        for (text, expected) in rows {
            assert_eq!(unescaped_lossy(text), expected);
        }
    }

    #[test]
    fn only_white_space_between_tokens_is_removed() {
        let rows = [
            ("{\"a b\": [1, \"\\\" \\\\\" ,2 ]\n}", Some("{\"a b\":[1,\"\\\" \\\\\",2]}")),
            ("\"a b\"", None),
            (" 1 ", Some("1")),
        ];
        for (text, expected) in rows {
            assert_eq!(compacted(text).as_deref(), expected, "{text}");
        }
    }
}
