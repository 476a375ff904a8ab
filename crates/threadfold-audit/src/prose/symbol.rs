//! Names in code: `snake_case`, `CamelCase`, `a::b`, `--flag`.

use super::{
    chunk::{Chunk, Trust, is_wordy},
    word_kinds::{has_pair, is_listed},
};

/// Names of products that look like names in code.
#[rustfmt::skip]
const PRODUCTS: [&str; 23] = [
    "ChatGPT", "DeepSeek", "DevOps", "GitHub", "GitLab", "GraphQL", "JavaScript", "LaTeX",
    "LinkedIn", "MongoDB", "MySQL", "OAuth", "OpenAI", "PostgreSQL", "PyPI", "StackOverflow",
    "TypeScript", "WebSocket", "YouTube", "iOS", "iPad", "iPhone", "macOS",
];

/// Returns the name in code that a piece of a word is.
pub(crate) fn symbol<'w>(chunk: &Chunk<'w>, trust: Trust) -> Option<&'w str> {
    let text = chunk.text.trim_start_matches(['.', '@']).trim_end_matches([':', '-', '.', '/']);
    let text = ["self.", "this."].iter().find_map(|own| text.strip_prefix(own)).unwrap_or(text);
    // A text of 12 bytes or more has at least 3 characters, so these need not be counted.
    if !(12..=120).contains(&text.len()) && !(3..=120).contains(&text.chars().count()) {
        return None;
    }
    let ticked = chunk.ticked && trust != Trust::Little && is_name(text) && is_wordy(text);
    let found = is_flag(text) || is_qualified(text, chunk.opens_call) || is_joined(text) || ticked;
    (found && !is_listed(&PRODUCTS, text)).then_some(text)
}

/// Whether a text is a flag: `--flag`, `--long-flag`.
fn is_flag(text: &str) -> bool {
    let name = text.strip_prefix("--").unwrap_or_default();
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a text is a qualified name: `a::b`, `a.b` before `(`, `a.someName`.
fn is_qualified(text: &str, opens_call: bool) -> bool {
    let dots = text.bytes().filter(|byte| *byte == b'.').count();
    let path = dots == 0 && has_pair(text, *b"::");
    if !path && !(1..=3).contains(&dots) {
        return false;
    }
    let named = text.split('.').all(is_joined_by_colons);
    named && (path || opens_call || text.split(['.', ':']).any(is_code))
}

/// Whether names are joined by double colons: `a`, `a::b`. The text is split at single colons, so
/// that every second part is empty: splitting at `::` costs a search for each word.
fn is_joined_by_colons(text: &str) -> bool {
    text.split(':').count() % 2 == 1
        && text.split(':').enumerate().all(|(at, part)| match at % 2 {
            0 => part.starts_with(|c: char| c.is_alphabetic() || c == '_') && is_plain(part),
            _ => part.is_empty(),
        })
}

/// Whether a text is a name of several words in one of the styles of code: `snake_case`,
/// `camelCase`, `ENV_NAME`.
fn is_joined(text: &str) -> bool {
    is_plain(text) && is_code(text)
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_code(text: &str) -> bool {
    let mut before = ' ';
    let (mut letters, mut snake, mut camel) = (0, false, false);
    for next in text.chars() {
        snake |= next.is_alphanumeric() && before == '_' && letters > 0;
        camel |= next.is_uppercase() && before.is_lowercase();
        letters += usize::from(next.is_alphabetic());
        before = next;
    }
    let dunder = text.starts_with("__") && text.ends_with("__");
    letters > 2 && (snake || camel || dunder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(PRODUCTS.is_sorted());
    }
}
