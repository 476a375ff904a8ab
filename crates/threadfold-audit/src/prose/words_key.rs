//! The key by which what somebody said is compared: a statement, a sentence or a rule.

use super::{label::heading, word_kinds::one_line};
use crate::message::Author;

/// Separates the author and the words of a key, which are on one line.
const BY: char = '\n';

/// Returns the key of these words: in lower case, without a label in capital letters and without the
/// mark at the end.
pub fn words_key(text: &str) -> String {
    let text = one_line(text);
    let text = without_stress(&text).to_lowercase().replace('\u{2019}', "'");
    text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}', '\u{964}']).trim_end().to_owned()
}

/// Returns the key of an author's words. It differs from that of anybody else's.
pub fn key_by(author: Option<&Author>, text: &str) -> String {
    let key = words_key(text);
    author.map_or_else(|| key.clone(), |author| format!("{author}{BY}{key}"))
}

/// Returns a key without its author.
pub fn own_key(key: &str) -> &str {
    key.rsplit(BY).next().unwrap_or(key)
}

/// Returns a statement without a label in capital letters, as in `NOTE: text`: it stresses the
/// statement, but says nothing about its subject.
pub(crate) fn without_stress(text: &str) -> &str {
    let is_stress = |label: &str| {
        label.chars().filter(|c| c.is_uppercase()).count() > 1
            && !label.contains(char::is_lowercase)
    };
    heading(text).filter(|(label, _)| is_stress(label)).map_or(text, |(_, body)| body)
}
