//! Names of code.

use super::{
    chunk::{Chunk, Trust, is_wordy},
    class::FactClass,
    scan::{has_pair, is_listed},
};

/// Names of products that are written as names of code are.
const PRODUCTS: [&str; 23] = [
    "ChatGPT",
    "DeepSeek",
    "DevOps",
    "GitHub",
    "GitLab",
    "GraphQL",
    "JavaScript",
    "LaTeX",
    "LinkedIn",
    "MongoDB",
    "MySQL",
    "OAuth",
    "OpenAI",
    "PostgreSQL",
    "PyPI",
    "StackOverflow",
    "TypeScript",
    "WebSocket",
    "YouTube",
    "iOS",
    "iPad",
    "iPhone",
    "macOS",
];

/// Tells of the name that a piece of a word is, if it is one.
pub(super) fn symbol(
    chunk: &Chunk<'_>,
    trust: Trust,
    note: &mut dyn FnMut(FactClass, &str),
) -> bool {
    let text = chunk.text.trim_start_matches(['.', '@']).trim_end_matches([':', '-', '.', '/']);
    let text = ["self.", "this."].iter().find_map(|own| text.strip_prefix(own)).unwrap_or(text);
    let length = text.chars().count();
    if !(3..=120).contains(&length) {
        return false;
    }
    let ticked = chunk.ticked && trust != Trust::Little && is_name(text) && is_wordy(text);
    let found = is_flag(text) || is_qualified(text, chunk.opens_call) || is_joined(text) || ticked;
    let found = found && !is_listed(&PRODUCTS, text);
    if found {
        note(FactClass::Identifier, text);
    }
    found
}

/// `--flag`, `--long-flag`.
fn is_flag(text: &str) -> bool {
    let name = text.strip_prefix("--").unwrap_or_default();
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// `a::b`, `a.b` before `(`, `a.someName`.
fn is_qualified(text: &str, opens_call: bool) -> bool {
    let dots = text.bytes().filter(|byte| *byte == b'.').count();
    let path = dots == 0 && has_pair(text, *b"::");
    if !path && !(1..=3).contains(&dots) {
        return false;
    }
    let parts = || text.split("::").flat_map(|part| part.split('.'));
    let named = parts().all(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        && parts().all(is_plain);
    named && (path || opens_call || parts().any(is_code))
}

/// `snake_case`, `camelCase`, `ENV_NAME`.
fn is_joined(text: &str) -> bool {
    is_plain(text) && is_code(text)
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(plain)
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
