//! What both APIs of OpenAI share.

use super::{
    cache::{CacheMarks, CacheRules},
    piece::MINUTE,
    rule::{Found, Rule, Violation},
};

/// The version in a name such as `gpt-6.2-sol`.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let (_, rest) = model.split_once("gpt-")?;
    let digits = rest.split(|char: char| char != '.' && !char.is_ascii_digit()).next()?;
    let mut numbers = digits.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}

/// Whether a model is one of OpenAI's. Other servers of its dialects ignore fields that they do not
/// know.
pub(super) fn is_own(model: &str) -> bool {
    let names = ["gpt-", "o1", "o3", "o4", "chatgpt-", "codex-", "computer-use-"];
    names.iter().any(|name| model.starts_with(name))
}

/// Reports a violation that is answered with status 400 and the name of a parameter.
pub(super) fn wrong(
    rule: &'static Rule,
    param: impl Into<String>,
    message: impl Into<String>,
) -> Found {
    Some(Violation::new(rule, message).at(param))
}

/// The cache of a model.
pub(super) fn cache_rules(model: &str, rule: &'static Rule) -> CacheRules {
    let version = version(model).unwrap_or_default();
    let is_new = version >= (5, 6);
    CacheRules {
        minimum: 1_024,
        marks: CacheMarks::Implicit { life: if is_new { 30 * MINUTE } else { 5 * MINUTE } },
        read_price: if version >= (5, 0) { 0.1 } else { 0.5 },
        write_price: if is_new { 1.25 } else { 1.0 },
        hour_write_price: if is_new { 1.25 } else { 1.0 },
        rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::rule::Source;

    #[test]
    fn writing_to_the_cache_costs_since_gpt_5_6() {
        static RULE: Rule = Rule { name: "cache", says: "", source: Source::Common };
        assert_eq!(cache_rules("gpt-6.2-sol", &RULE).write_price, 1.25);
        assert_eq!(cache_rules("gpt-5.2", &RULE).write_price, 1.0);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version("gpt-6.2-astra"), Some((6, 2)));
        assert_eq!(version("gpt-6-sol"), Some((6, 0)));
        assert_eq!(version("gpt-4o"), Some((4, 0)));
        assert_eq!(version("o3"), None);
    }
}
