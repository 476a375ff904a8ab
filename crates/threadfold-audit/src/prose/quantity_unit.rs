//! The words next to a number: units of measure, currencies, and factors such as `million`.

use super::{
    stem::is_unspaced,
    subject_words::{Grammar, number_of},
};
use crate::message::slice;

/// A word that multiplies the number before it by a power of ten: `3k`, `1.5 million`.
#[derive(Clone, Copy)]
pub(super) struct Factor<'a> {
    /// The exponent of the power.
    zeros: usize,
    /// The rest of the word. In a script without spaces, it is the unit.
    pub(super) rest: &'a str,
}

impl<'a> Factor<'a> {
    /// Returns the factor with which a word begins.
    pub(super) fn of(word: &'a str) -> Option<Self> {
        // In a script without spaces, the unit follows: `180\u{4e07}\u{5186}`.
        let first =
            word.chars().next().filter(|c| is_unspaced(*c)).map_or(word.len(), char::len_utf8);
        let (power, rest) = word.split_at_checked(first)?;
        let zeros = match power.to_lowercase().as_str() {
            "k" | "tsd" => 3,
            "m" | "mio" | "mn" => 6,
            power => {
                let number = number_of(power, Grammar::NUMBER);
                number.filter(|number| *number >= 1_000)?.ilog10() as usize
            }
        };
        Some(Self { zeros, rest })
    }

    /// Returns the product with a number, if it is whole.
    pub(super) fn times(self, number: &str) -> Option<String> {
        let Self { zeros, .. } = self;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        (decimals.len() <= zeros).then(|| format!("{whole}{decimals:0<zeros$}"))
    }

    /// Whether digits may begin with a factor that this text after them completes.
    pub(super) fn may_begin(after: &str) -> bool {
        let next = after.chars().next();
        let is_first = |c: char| matches!(c.to_ascii_lowercase(), 'd' | 'k' | 'm' | 't');
        next.is_some_and(|c| is_first(c) || !c.is_ascii())
    }
}

/// Returns the number that stands for a unit of measure or a currency. Nouns for counted things are
/// not units, so that `12 files` equals `12 changed files`. In a script without spaces, a word may
/// begin with the unit.
pub(super) fn unit(word: &str) -> Option<u32> {
    let lower = word.to_lowercase();
    let ends = lower.char_indices().skip(1).map(|(at, _)| at).take(8);
    let ends = ends.filter(|_| word.starts_with(is_unspaced)).collect::<Vec<_>>().into_iter();
    let mut starts = [lower.len()].into_iter().chain(ends.rev()).map(|end| slice(&lower, ..end));
    starts.find_map(|start| number_of(start, Grammar::MEASURE))
}

/// Returns the number that stands for the currency whose sign is at the end of a text.
pub(super) fn currency(before: &str) -> Option<u32> {
    let (at, sign) = before.char_indices().next_back()?;
    let is_sign = matches!(sign, '$' | '\u{20ac}' | '\u{a3}' | '\u{a5}');
    is_sign.then(|| unit(slice(before, at..)))?
}
