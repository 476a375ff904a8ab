//! The provider's own words in a message: without the texts that it quotes, and the field of the
//! request that it is about.

use serde_json::Value;

/// Fields whose length is the length of the thread or of the answer. An error about any other field
/// is no overflow, because a shorter thread does not change it.
const OF_THE_THREAD: [&str; 14] = [
    "messages",
    "input",
    "inputs",
    "prompt",
    "prompts",
    "contents",
    "input_ids",
    "input_tokens",
    "max_tokens",
    "max_new_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "none",
    "null",
];

/// Fields of requests. A message that begins with one of them and a dot or colon is about it.
const FIELDS: [&str; 12] = [
    "tools",
    "tool_choice",
    "system",
    "instructions",
    "metadata",
    "thinking",
    "stop",
    "stop_sequences",
    "response_format",
    "text",
    "user",
    "functions",
];

/// The words before a quotation that make it the report of another server.
const REPORTS: [&str; 8] =
    ["error", "exception", "message", "msg", "detail", "returned", "responded", "response"];

/// The words before a quotation that make it a part of the request.
const FAULTS: [&str; 19] = [
    "invalid ",
    "unknown ",
    "unexpected ",
    "unsupported ",
    "duplicate ",
    "value",
    "pars",
    "argument",
    "content",
    "input",
    "tool",
    "function",
    "schema",
    "name",
    // Somebody speaks, and no server.
    "said",
    "says",
    "wrote",
    "user",
    "assistant",
];

/// The number of bytes before a quotation in which its introduction is looked for.
const INTRODUCTION: usize = 60;

/// Returns a message in lower case without the texts that it quotes, which may be the user's.
///
/// A quotation of one word is a name and stays. So does one that is introduced as the report of
/// another server: `error: "..."`, `'message': '...'`.
pub(super) fn without_quotes(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let (mut own, mut rest) = (String::new(), text.as_str());
    while let Some((start, quote)) = opening(rest, own.chars().last()) {
        let (before, quoted) = rest.split_at(start);
        let quoted = quoted.get(quote.len_utf8()..).unwrap_or_default();
        own.push_str(before);
        let end = closing(quoted, quote).unwrap_or(quoted.len());
        let (inside, after) = quoted.split_at(end);
        let is_name = !inside.trim().contains(char::is_whitespace);
        if is_name || is_report(&own) {
            // The text within is read like the text around it.
            own.push(quote);
            rest = quoted;
            if is_name {
                own.push_str(inside);
                rest = after;
                if let Some(after) = after.strip_prefix(quote) {
                    own.push(quote);
                    rest = after;
                }
            }
        } else {
            rest = after.strip_prefix(quote).unwrap_or(after);
        }
    }
    own.push_str(rest);
    own
}

/// Whether an error is about another field of the request than the messages as a whole. The
/// subjects are the fields that the body names; the texts are its messages.
pub(super) fn blames_other_field<'a>(
    subjects: impl Iterator<Item = &'a str>,
    texts: &[&'a str],
) -> bool {
    let named = texts.iter().filter_map(|text| named_field(text));
    subjects.chain(named).any(is_other_field)
}

/// Returns the error body that a message holds as JSON, and the words before it.
pub(super) fn inner_body(text: &str) -> Option<(&str, Value)> {
    let start = text.find('{')?;
    let (before, body) = text.split_at(start);
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let fields = value.as_object()?;
    let is_error =
        ["error", "errors", "message", "detail"].iter().any(|key| fields.contains_key(*key));
    let before = before.trim_end_matches(['b', '\'', '"']).trim_end();
    is_error.then_some((before.trim_end_matches([':', '-', ' ']), value))
}

/// The next opening quote of a text, and its position. `before` is the character before the text.
fn opening(text: &str, before: Option<char>) -> Option<(usize, char)> {
    let mut before = before;
    text.char_indices().find(|(_, letter)| {
        let before = before.replace(*letter);
        let within_word = before.is_some_and(char::is_alphanumeric);
        match letter {
            '"' | '`' | '\u{201c}' => true,
            '\'' => !within_word || before == Some('b'),
            _ => false,
        }
    })
}

/// The end of a quotation.
fn closing(text: &str, quote: char) -> Option<usize> {
    let quote = if quote == '\u{201c}' { '\u{201d}' } else { quote };
    let mut ends = text.match_indices(quote).map(|(at, _)| at);
    ends.find(|at| {
        let follows = text.get(at + quote.len_utf8()..).and_then(|rest| rest.chars().next());
        quote != '\'' || !follows.is_some_and(char::is_alphanumeric)
    })
}

/// Whether a message begins with the path of one message: `messages.3.content: ...`. A shorter thread
/// may leave this message as it is, and the rest may repeat its text.
pub(super) fn blames_one_message(text: &str) -> bool {
    let path = text.trim_start().split([':', ' ']).next().unwrap_or_default();
    let path = path.trim_matches(['`', '\'', '"']);
    let Some((field, rest)) = path.split_once(['.', '[']) else { return false };
    ["messages", "input", "contents"].contains(&field)
        && rest.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether the words before a quotation introduce the report of another server.
fn is_report(before: &str) -> bool {
    let start = before.len().saturating_sub(INTRODUCTION);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or(0);
    let words = before.get(start..).unwrap_or_default();
    let key = words.trim_end_matches(['"', '\'', '\\', ':', ' ']);
    if ["message", "msg", "detail", "error"].iter().any(|name| key.ends_with(name)) {
        return !key.ends_with("parse error");
    }
    REPORTS.iter().any(|word| words.contains(word))
        && !FAULTS.iter().any(|word| words.contains(word))
}

/// The field that a message is about: `Invalid 'tools': ...`, `tools.0.name: ...`.
fn named_field(text: &str) -> Option<&str> {
    let lower = text.trim_start();
    for begin in ["Invalid '", "invalid '", "Invalid `"] {
        if let Some(rest) = lower.strip_prefix(begin) {
            return rest.split(['\'', '`']).next();
        }
    }
    let path = lower.split([':', ' ']).next()?;
    let field = path.split('.').next()?;
    let is_path = lower.get(path.len()..).is_some_and(|rest| rest.starts_with(':'));
    (is_path && FIELDS.contains(&field)).then_some(path)
}

/// Whether a field is another one than the messages as a whole.
fn is_other_field(path: &str) -> bool {
    let path = path.trim().to_ascii_lowercase();
    let path = path.strip_prefix("body.").unwrap_or(&path);
    !path.is_empty() && !OF_THE_THREAD.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_left_out_unless_they_are_reports() {
        let rows = [
            (r#"invalid value: "prompt is too long". try"#, "invalid value: . try"),
            ("unknown tool 'the prompt is too long' in it", "unknown tool  in it"),
            ("this model's limit isn't 'max_tokens'", "this model's limit isn't 'max_tokens'"),
            (
                r#"streaming error for request 1: "prompt is too long""#,
                r#"streaming error for request 1: "prompt is too long""#,
            ),
            (
                "code 400 - {'message': 'prompt is too long'}",
                "code 400 - {'message': 'prompt is too long'}",
            ),
            (r#"expected an object, got "prompt is too long"#, "expected an object, got "),
        ];
        for (text, own) in rows {
            assert_eq!(without_quotes(text), own, "{text}");
        }
    }

    #[test]
    fn the_field_that_an_error_is_about_is_found() {
        let other = [
            "tools",
            "messages[3].content",
            "messages[0].tool_calls",
            "tools[0].function.name",
            "metadata",
            "input[2].output",
        ];
        assert!(other.iter().all(|field| is_other_field(field)));
        let own = ["messages", "input", "", "None", "max_tokens"];
        assert!(!own.iter().any(|field| is_other_field(field)));
        assert_eq!(named_field("Invalid 'tools': array too long"), Some("tools"));
        assert_eq!(
            named_field("tools.5.custom.name: String too long"),
            Some("tools.5.custom.name")
        );
        assert_eq!(named_field("prompt: it is too long"), None);
    }
}
