//! What prompts cost, for the money on the page of all threads.

/// Returns the price of a million tokens of a prompt that the provider reads from its cache, in
/// dollars: the least that a token costs which is not sent. `None` if the model is not in the table,
/// whose source stands in `prices.txt`; nothing is guessed.
pub(super) fn cached(model: &str) -> Option<f64> {
    let model = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let rows = include_str!("prices.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| line.split_once(" = "));
    let named = rows.filter(|(name, _)| model.strip_prefix(name).is_some_and(is_release));
    let (_, price) = named.max_by_key(|(name, _)| name.len())?;
    price.parse().ok()
}

/// A sum of money in dollars, with as many digits as say something.
pub(crate) fn dollars(sum: f64) -> String {
    match sum {
        ..0.01 => "under $0.01".to_owned(),
        0.01..100.0 => format!("${sum:.2}"),
        _ => format!("${sum:.0}"),
    }
}

/// Whether these words after the name of a model name only its release, such as `-2026-04-20` or
/// `-latest`.
fn is_release(rest: &str) -> bool {
    let is_date = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let rest = rest.strip_suffix("-latest").or(rest.strip_suffix("-preview")).unwrap_or(rest);
    match rest.strip_prefix('-') {
        None => rest.is_empty(),
        // A number of one digit is a version: another model.
        Some(date) => date.len() > 3 && date.split('-').all(is_date),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_that_of_the_model_and_of_no_other() {
        let rows = [
            ("claude-haiku-4-5", Some(0.1)),
            ("claude-haiku-4-5-20251001", Some(0.1)),
            ("anthropic/Claude-Sonnet-4-5", Some(0.3)),
            ("gpt-5.2-2025-12-11", Some(0.175)),
            ("gpt-5.2-codex", Some(0.175)),
            ("gpt-5.21", None),
            ("gpt-5-9", None),
            ("models/gemini-2.5-pro", Some(0.125)),
            ("llama3.1:8b", None),
            ("", None),
        ];
        for (model, price) in rows {
            assert_eq!(cached(model), price, "{model}");
        }
    }
}
