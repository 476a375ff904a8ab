//! The numbers in the message of an overflow: the window, the prompt, and the tokens reserved for
//! the answer.
//!
//! Most providers compare the window with the sum of the prompt and the tokens that the request
//! reserves for its answer. Their messages state both, or one of them and the sum, or only the sum.
//! All texts are in lower case.

use super::phrases::phrases;

/// The prompt in tokens: as the message states it, or the sum without the reserve, or the sum.
pub(super) fn found(words: &str) -> Option<u64> {
    if phrases("lower", "text").any(|bound| words.contains(bound)) {
        return None;
    }
    stated(words, "found").or_else(|| number(terms(words)?.0)).or_else(|| {
        let sum = sum(words)?;
        output(words).map_or(Some(sum), |output| sum.checked_sub(output))
    })
}

/// The tokens that were reserved for the answer.
pub(super) fn output(words: &str) -> Option<u64> {
    stated(words, "output").or_else(|| number(terms(words)?.1))
}

/// The number that a message states with this meaning.
pub(super) fn stated(words: &str, meaning: &str) -> Option<u64> {
    let after = phrases(meaning, "after").find_map(|start| number(after(words, start)?));
    after.or_else(|| phrases(meaning, "before").find_map(|end| last_number(words, end)))
}

/// Prompt and reserve as Anthropic and its resellers write them: `188240 + 21333 > 200000`.
fn terms(words: &str) -> Option<(&str, &str)> {
    after(words, "exceed context limit: ")?.split_once('+')
}

/// A count that the message does not attribute to the prompt or the answer.
fn sum(words: &str) -> Option<u64> {
    phrases("sum", "after").find_map(|start| {
        let rest = after(words, start)?;
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '_');
        // Counts of the answer, and counts in another unit.
        let other = [" output tokens", " characters"].iter().any(|other| unit.starts_with(other));
        number(rest).filter(|_| !other)
    })
}

/// The text after the first of these words.
pub(super) fn after<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    text.split_once(words).map(|(_, rest)| rest)
}

/// Reads the number that a text begins with. Digits may be grouped.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '_').unwrap_or(text.len());
    let digits: String = text.get(..end)?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Reads the number right before the first of these words.
fn last_number(text: &str, words: &str) -> Option<u64> {
    let (before, _) = text.split_once(words)?;
    number(before.rsplit(|c: char| !c.is_ascii_digit() && c != ',' && c != '_').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_grouped() {
        assert_eq!(number("200,000 tokens"), Some(200_000));
        assert_eq!(number("99999999999999999999999"), None);
        assert_eq!(last_number("with 32768 maximum", " maximum"), Some(32_768));
        assert_eq!(last_number("é maximum", " maximum"), None);
    }
}
