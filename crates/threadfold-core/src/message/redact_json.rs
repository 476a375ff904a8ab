//! Redacting JSON: every string, unescaped, and every number.
//!
//! The raw text is walked token by token. Everything else stays byte for byte, and any depth is
//! possible.

use std::borrow::Cow;

use super::json::Json;

/// Returns the JSON with the replacements that `redact` returns for its strings and numbers; the
/// same handle if there are none.
///
/// A number that is replaced becomes a string.
pub(super) fn redacted(json: &Json, redact: &mut dyn FnMut(&str) -> Option<String>) -> Json {
    let (mut written, mut rest, mut changed) = (String::new(), json.as_str(), false);
    while let Some((before, token, after)) = split_token(rest) {
        let replacement = match token.strip_prefix('"').and_then(|token| token.strip_suffix('"')) {
            Some(inner) => redact(&unescaped(inner)),
            None => redact(token).or_else(|| redact(&whole_number(token)?)),
        };
        changed |= replacement.is_some();
        let replacement = replacement.map(|text| serde_json::Value::from(text).to_string());
        written.push_str(before);
        written.push_str(replacement.as_deref().unwrap_or(token));
        rest = after;
    }
    if !changed {
        return json.clone();
    }
    written.push_str(rest);
    // Replacing tokens keeps the JSON valid. If that were wrong, `null` leaves instead of a secret.
    Json::parse(&written).unwrap_or_default()
}

/// Splits a text around its first string or number: before, token, after.
fn split_token(raw: &str) -> Option<(&str, &str, &str)> {
    let number = |c: char| c.is_ascii_digit() || c == '-';
    let (before, rest) = raw.split_at_checked(raw.find(|c| c == '"' || number(c))?)?;
    let length = if let Some(inner) = rest.strip_prefix('"') {
        let mut escaped = false;
        let end = inner.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        end.map_or(rest.len(), |end| end + 2)
    } else {
        let part = |c: char| number(c) || matches!(c, '.' | 'e' | 'E' | '+');
        rest.find(|c| !part(c)).unwrap_or(rest.len())
    };
    let (token, after) = rest.split_at_checked(length)?;
    Some((before, token, after))
}

/// Returns the digits of a whole number that is written otherwise: `4.0`, `4e15`.
#[allow(clippy::float_cmp, reason = "a whole number has no fraction at all")]
fn whole_number(token: &str) -> Option<String> {
    let number: f64 = token.parse().ok()?;
    let not_digits = token.contains(['.', 'e', 'E']);
    (not_digits && number.fract() == 0.0 && number.abs() < 1e18).then(|| format!("{number:.0}"))
}

/// Returns the text with its JSON escapes resolved. A backslash that starts no valid escape stays.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        unescaped.push_str(before);
        let (c, length) = escaped_character(escape).unwrap_or(('\\', 1));
        unescaped.push(c);
        rest = escape.get(length..).unwrap_or_default();
    }
    unescaped.push_str(rest);
    unescaped.into()
}

/// Returns the character that an escape stands for, and the length of the escape in bytes.
fn escaped_character(escape: &str) -> Option<(char, usize)> {
    let c = match escape.as_bytes().get(1)? {
        b'u' => return unicode(escape),
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
    Some((c, 2))
}

fn unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = escape.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(first.into()) {
        return Some((c, 6));
    }
    let pair = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((pair, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_and_numbers_are_seen_and_the_rest_stays_byte_for_byte() {
        let mut secret = |text: &str| {
            let secret = text.contains("4111111111111111") || text.contains("J\u{fc}rgen");
            secret.then(|| "*".to_owned())
        };
        let rows = [
            (r#"{"z":1.0,"a":1e2}"#, r#"{"z":1.0,"a":1e2}"#),
            (r#"{"n":4111111111111111}"#, r#"{"n":"*"}"#),
            (r#"[4111111111111111.0,4.111111111111111e15,-3]"#, r#"["*","*",-3]"#),
            (r#"{"J\u00fcrgen":"a\"b","\\":[true]}"#, r#"{"*":"a\"b","\\":[true]}"#),
            (r#""J\u00FCrgen""#, r#""*""#),
        ];
        for (json, expected) in rows {
            assert_eq!(redacted(&Json::parse(json).unwrap(), &mut secret).as_str(), expected);
        }
    }

    #[test]
    fn escapes_are_read_and_what_is_none_stays() {
        let rows = [
            (r"a\u00e9\n", "a\u{e9}\n"),
            (r"\ud83d\ude00", "\u{1f600}"),
            (r"\ud83d \u12 \x \", r"\ud83d \u12 \x \"),
            (r"C:\\new", r"C:\new"),
        ];
        for (text, expected) in rows {
            assert_eq!(unescaped(text), expected);
        }
    }
}
