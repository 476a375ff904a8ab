//! Redacting JSON: every string, unescaped, and every number.
//!
//! The raw text is read token by token, without a tree. So all other bytes stay unchanged, and the
//! JSON may nest to any depth.

use super::{json::Json, json_text::unescaped_lossy};

/// Returns the JSON with the replacements that `redact` returns for its strings and numbers; the
/// same handle if there are none.
///
/// A number that is replaced becomes a string.
pub(super) fn redacted(json: &Json, redact: &mut dyn FnMut(&str) -> Option<String>) -> Json {
    let (mut written, mut rest, mut changed) = (String::new(), json.as_str(), false);
    while let Some((before, token, after)) = split_token(rest) {
        let replacement = match token.strip_prefix('"').and_then(|token| token.strip_suffix('"')) {
            Some(inner) => redact(&unescaped_lossy(inner)),
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
    // Replacing tokens keeps the JSON valid. The default, `null`, would leak nothing either.
    Json::parse(&written).unwrap_or_default()
}

/// Returns a redacted text of this JSON as JSON of the same kind. If the text is no longer JSON of
/// that kind, it becomes the only field of an object, because a tool's input must be an object.
pub(super) fn of_text(json: &Json, text: String) -> Json {
    let is_object = |json: &Json| json.as_str().starts_with('{');
    match Json::parse(&text) {
        Ok(parsed) if is_object(&parsed) == is_object(json) => parsed,
        Ok(_) | Err(_) => {
            let text = serde_json::Value::from(text);
            Json::parse(&format!("{{\"redacted\":{text}}}")).unwrap_or_default()
        }
    }
}

/// Splits a text around its first string or number: before, token, after.
fn split_token(raw: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = raw.split_at_checked(raw.find(|c| c == '"' || begins_number(c))?)?;
    let length = if let Some(inner) = rest.strip_prefix('"') {
        let mut escaped = false;
        let end = inner.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        end.map_or(rest.len(), |end| end + 2)
    } else {
        rest.find(|c| !(begins_number(c) || matches!(c, '.' | 'e' | 'E' | '+')))
            .unwrap_or(rest.len())
    };
    let (token, after) = rest.split_at_checked(length)?;
    Some((before, token, after))
}

fn begins_number(c: char) -> bool {
    c.is_ascii_digit() || c == '-'
}

/// Returns the digits of a whole number that is written otherwise: `4.0`, `4e15`.
#[allow(clippy::float_cmp, reason = "a whole number has no fraction at all")]
fn whole_number(token: &str) -> Option<String> {
    let number: f64 = token.parse().ok()?;
    let not_digits = token.contains(['.', 'e', 'E']);
    (not_digits && number.fract() == 0.0 && number.abs() < 1e18).then(|| format!("{number:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_text_that_is_no_longer_json_becomes_a_field() {
        let json = Json::parse(r#"{"user":"bob","password":"hunter42"}"#).unwrap();
        for (text, expected) in [
            (r#"{"user":"bob","password":"*"}"#, r#"{"user":"bob","password":"*"}"#),
            (r#"{"user":"bob","*"}"#, r#"{"redacted":"{\"user\":\"bob\",\"*\"}"}"#),
            ("7", r#"{"redacted":"7"}"#),
        ] {
            assert_eq!(of_text(&json, text.to_owned()).as_str(), expected);
        }
    }

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
}
