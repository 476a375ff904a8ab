//! Taking out of JSON what must not leave: every string as it is read, and every number.
//!
//! The raw text is walked token by token, so that everything else in it stays byte for byte, and no
//! depth is too deep.

use std::borrow::Cow;

use super::json::Json;

/// Returns the JSON with these words in the place of those that it has; the same where they are.
///
/// A number that is changed becomes a string.
pub(super) fn redacted(json: &Json, redact: &mut dyn FnMut(&str) -> Option<String>) -> Json {
    let raw = json.as_str();
    let (mut written, mut from, mut at) = (String::new(), 0, 0);
    while let Some((start, end)) = next_token(raw, at) {
        let token = raw.get(start..end).unwrap_or_default();
        let left = match token.strip_prefix('"').and_then(|token| token.strip_suffix('"')) {
            Some(inner) => redact(&read(inner)),
            None => redact(token).or_else(|| redact(&whole_number(token)?)),
        };
        if let Some(left) = left {
            written.push_str(raw.get(from..start).unwrap_or_default());
            written.push_str(&serde_json::Value::from(left).to_string());
            from = end;
        }
        at = end;
    }
    if from == 0 {
        return json.clone();
    }
    written.push_str(raw.get(from..).unwrap_or_default());
    // What is no JSON any more, which cannot be, does not leave.
    Json::parse(&written).unwrap_or_default()
}

/// Where the next string or number from here on is.
fn next_token(raw: &str, at: usize) -> Option<(usize, usize)> {
    let number = |c: char| c.is_ascii_digit() || c == '-';
    let start = at + raw.get(at..)?.find(|c| c == '"' || number(c))?;
    let rest = raw.get(start..)?;
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
    Some((start, start + length))
}

/// A number that is whole but not written so: `4.0`, `4e15`.
#[allow(clippy::float_cmp, reason = "a whole number has no fraction at all")]
fn whole_number(token: &str) -> Option<String> {
    let number: f64 = token.parse().ok()?;
    let written = token.contains(['.', 'e', 'E']);
    (written && number.fract() == 0.0 && number.abs() < 1e18).then(|| format!("{number:.0}"))
}

/// Returns a text with the escapes of JSON read; what is none stays.
pub(super) fn read(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        read.push_str(before);
        let (c, length) = character(escape).unwrap_or(('\\', 1));
        read.push(c);
        rest = escape.get(length..).unwrap_or_default();
    }
    read.push_str(rest);
    read.into()
}

/// The character that an escape stands for, and how long the escape is.
fn character(escape: &str) -> Option<(char, usize)> {
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
            assert_eq!(read(text), expected);
        }
    }
}
