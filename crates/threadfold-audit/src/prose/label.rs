//! Labels before statements: `NOTE: the port is 8080`.

/// Returns the heading before a statement and the rest: words and a colon, as in `My three wishes
/// are: text`.
pub(crate) fn heading(statement: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 40;
    const WORDS: usize = 8;
    let head: usize = statement.char_indices().take(LONGEST).last().map_or(0, |(at, _)| at);
    let head = statement.get(..head)?;
    let at = head.find([':', '\u{ff1a}'])?;
    let (label, rest) = statement.split_at_checked(at)?;
    let body = rest.trim_start_matches([':', '\u{ff1a}']);
    let is_apart = rest.starts_with('\u{ff1a}') || body.starts_with(char::is_whitespace);
    let words = label.split_whitespace().count();
    (is_apart
        && (1..=WORDS).contains(&words)
        && label.chars().all(|c| c.is_alphabetic() || c == ' ' || c == '-' || c == '_')
        && !body.trim().is_empty())
    .then(|| (label.trim(), body.trim()))
}
