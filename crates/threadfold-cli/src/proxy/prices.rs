//! What prompts cost: for the money on the page of all threads, and for what pays while an agent is
//! quiet.

use threadfold::compact::Prices;

/// The fewest tokens that any vendor caches.
pub(super) const CACHE_MIN: u64 = 1_024;

/// Returns the published prices of a model. `None` if the model is not in the table, whose source
/// stands in `prices.txt`; nothing is guessed. A cache whose life no vendor states lives for no time.
pub(super) fn of(model: &str) -> Option<Prices> {
    let model = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let rows = include_str!("prices.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| line.split_once(" = "));
    let named = rows.filter(|(name, _)| model.strip_prefix(name).is_some_and(is_release));
    let (_, row) = named.max_by_key(|(name, _)| name.len())?;
    let mut numbers = row.split(' ').map_while(|number| number.parse::<f64>().ok());
    let mut next = || numbers.next();
    let (input, cached, cache_write, output, minutes) =
        (next()?, next()?, next()?, next()?, next()?);
    let cache_life_ms = (minutes * 60_000.0) as u64;
    let (cache_min, cache_block) = (CACHE_MIN, 0);
    Some(Prices { input, cached, cache_write, output, cache_life_ms, cache_min, cache_block })
}

/// Returns the price of a million tokens of a prompt that the provider reads from its cache, in
/// dollars: the least that a token costs which is not sent.
pub(super) fn cached(model: &str) -> Option<f64> {
    of(model).map(|prices| prices.cached)
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

    #[test]
    fn every_row_is_read_and_its_cache_is_cheaper() {
        let rows = include_str!("prices.txt").lines().filter(|line| !line.starts_with('#'));
        for row in rows {
            let prices = of(row.split(' ').next().unwrap()).unwrap();
            prices.check().unwrap();
            assert!(prices.cached < prices.input && prices.input <= prices.cache_write, "{row}");
        }
        let minutes = |model| of(model).unwrap().cache_life_ms / 60_000;
        assert_eq!(["claude-opus-5-5", "gpt-5.5", "gpt-5.6-sol"].map(minutes), [5, 5, 30]);
        assert_eq!(minutes("gemini-4-argon"), 0, "nobody states it");
    }
}
