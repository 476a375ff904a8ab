//! Labels and headings before statements: `NOTE: the port is 8080`.

use super::{
    demand::has_demand,
    stem::{is_mark, is_unspaced},
    subject_words::Grammar,
};

/// Returns the label before a statement and the rest: a few words and a colon, as in `NOTE: text`.
pub fn label(statement: &str) -> Option<(&str, &str)> {
    const WORDS: usize = 3;
    heading(statement).filter(|(label, _)| label.split_whitespace().count() <= WORDS)
}

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

/// Returns a statement without the label or heading before it, if that is mere emphasis and the
/// rest makes sense alone: `NOTE: the port is 8080`, but not `Owner: Ada Byron`.
pub fn without_emphasis(statement: &str) -> &str {
    let Some((label, body)) = heading(statement) else { return statement };
    let is_quiet = label.contains(|c: char| c.is_lowercase() || is_unspaced(c));
    // A label in capitals is emphasis before any text that makes sense alone; another label only
    // before a sentence.
    let stresses = if is_quiet {
        body.starts_with(|c: char| !c.is_lowercase())
            && body.ends_with(['.', '!', '\u{3002}', '\u{ff01}'])
            && (body.contains(is_unspaced) || makes_sense_alone(body))
            && !has_demand(label)
            && !Grammar::NEGATION.is_in(label)
            && !label.split(' ').any(|word| Grammar::of(&word.to_lowercase()).is(Grammar::NEGATION))
    } else {
        makes_sense_alone(body)
    };
    if stresses { body } else { statement }
}

/// Whether a text has more than three words, states something or demands something.
fn makes_sense_alone(body: &str) -> bool {
    let mut words = body.split_whitespace().map(|word| word.trim_matches(is_mark).to_lowercase());
    body.split_whitespace().nth(3).is_some()
        || words.any(|word| Grammar::of(&word).is(Grammar::COPULA))
        || has_demand(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_before_a_text_that_makes_sense_alone_is_emphasis() {
        let rows = [
            ("NOTE: the port is 8080", "the port is 8080"),
            ("HARD RULE: Never touch the lexer.", "Never touch the lexer."),
            ("Important: The port is 8080.", "The port is 8080."),
            ("STATE: Next up: the old pier", "Next up: the old pier"),
        ];
        for (statement, body) in rows {
            assert_eq!(without_emphasis(statement), body);
        }
        for whole in ["Owner: Ada Byron", "Ports: the proxy has 8080", "TODO: 12", "Tea is fine."] {
            assert_eq!(without_emphasis(whole), whole);
        }
    }
}
