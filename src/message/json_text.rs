//! The text of JSON, byte by byte: strings and the white space between tokens.

/// Returns valid JSON text without white space between its tokens; `None` if there is none.
pub(super) fn compacted(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut begin = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at += string(bytes.get(at..)?),
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

/// How many bytes the rest of a valid string has behind its quote.
fn string(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += run_of_text(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(_) | None => return at + 1,
        }
    }
}

/// Returns what stands between the quotes of a valid string with its escapes resolved; `None` if it
/// holds half of a character.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (plain, escape) = rest.split_at_checked(run_of_text(rest.as_bytes()))?;
        said.push_str(plain);
        let Some(escape) = escape.strip_prefix('\\') else { return Some(said) };
        let (kind, behind) = escape.split_at_checked(1)?;
        rest = behind;
        said.push(match kind {
            "n" => '\n',
            "t" => '\t',
            "r" => '\r',
            "b" => '\u{8}',
            "f" => '\u{c}',
            "u" => hexadecimal(&mut rest)?,
            other => other.chars().next()?,
        });
    }
}

/// Takes the digits of a character; of one that takes two escapes those of the second too.
fn hexadecimal(rest: &mut &str) -> Option<char> {
    let mut unit = |begin: &str| {
        let (digits, behind) = rest.strip_prefix(begin)?.split_at_checked(4)?;
        *rest = behind;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit("")?;
    let is_half = (0xd800..0xdc00).contains(&first);
    let units = [Some(first), if is_half { Some(unit("\\u")?) } else { None }];
    char::decode_utf16(units.into_iter().flatten()).next()?.ok()
}

/// Adds a text as a JSON string.
pub(crate) fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    while let Some((plain, behind)) = rest.split_at_checked(run_of_text(rest.as_bytes())) {
        json.push_str(plain);
        let mut behind = behind.chars();
        match behind.next() {
            None => break,
            Some(char @ ('"' | '\\')) => json.extend(['\\', char]),
            Some('\n') => json.push_str("\\n"),
            Some('\t') => json.push_str("\\t"),
            Some('\r') => json.push_str("\\r"),
            Some('\u{8}') => json.push_str("\\b"),
            Some('\u{c}') => json.push_str("\\f"),
            Some(control) => json.push_str(&format!("\\u{:04x}", u32::from(control))),
        }
        rest = behind.as_str();
    }
    json.push('"');
}

/// How many bytes of text come before a quote, a backslash or a control character.
///
/// Most of a body is text, so this decides how fast it is read and written. Sixteen bytes are looked
/// at at once, without a branch: compilers turn that into about as many instructions, where a look
/// at each byte takes ten times as many.
pub(crate) fn run_of_text(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        // A loop and not `map`, which is a call that the compiler does not look into.
        let mut ends = [0_u8; 16];
        for (end, byte) in ends.iter_mut().zip(block) {
            *end = if ends_run(*byte) { 0xff } else { 0 };
        }
        let ends = u128::from_le_bytes(ends);
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 16;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| ends_run(*byte)).unwrap_or(rest.len())
}

/// Asks all at once: a short-cut would be a branch.
fn ends_run(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < b' ')
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
        fn a_run_ends_where_a_string_must_be_looked_at(text in r#"[a-z\x1f"\\\x7f\u{80}é]{0,60}"#) {
            let ends = |char: char| char == '"' || char == '\\' || char < ' ';
            prop_assert_eq!(run_of_text(text.as_bytes()), text.find(ends).unwrap_or(text.len()));
        }
    }

    #[test]
    fn only_white_space_between_tokens_goes() {
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
