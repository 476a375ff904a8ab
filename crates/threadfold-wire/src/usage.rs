//! Reading the token counts of an answer.

use super::json::{Fields, Raw};
use threadfold_core::message::Usage;

/// The fields in which a dialect reports tokens, as paths of one or two keys. Counts of several
/// paths are added.
#[derive(Debug)]
pub(super) struct Counts {
    /// The whole prompt, including its cached part.
    pub(super) input: &'static [&'static str],
    /// The whole answer, including its reasoning.
    pub(super) output: &'static [&'static str],
    /// The cached part of the prompt: the largest of these fields, because servers leave the fields
    /// of others as zeros.
    pub(super) cache_read: &'static [&'static str],
    pub(super) cache_write: &'static str,
    pub(super) reasoning: &'static str,
}

impl Counts {
    /// No counts. A dialect takes from here the fields that its provider does not report.
    pub(super) const NONE: Self =
        Self { input: &[], output: &[], cache_read: &[], cache_write: "", reasoning: "" };

    /// Reads the counts. A missing one is zero; `None` if the value is no object.
    pub(super) fn read(&self, raw: Raw<'_>) -> Option<Usage> {
        let fields = Fields::of(raw)?;
        Some(self.find(|key| fields.get(key)))
    }

    /// Reads the counts in the fields that this function finds. A missing one is zero.
    pub(super) fn find<'a>(&self, get: impl Fn(&str) -> Option<Raw<'a>>) -> Usage {
        let count = |path: &str| {
            let found = match path.split_once('.') {
                Some((key, inner)) => Fields::of(get(key)?)?.get(inner),
                None => get(path),
            };
            found?.whole_number()
        };
        let sum = |paths: &[&str]| {
            paths.iter().fold(0, |sum: u64, path| sum.saturating_add(count(path).unwrap_or(0)))
        };
        Usage {
            input: sum(self.input),
            output: sum(self.output),
            cache_read: self.cache_read.iter().filter_map(|path| count(path)).max().unwrap_or(0),
            cache_write: count(self.cache_write).unwrap_or(0),
            reasoning: count(self.reasoning).unwrap_or(0),
        }
    }
}
