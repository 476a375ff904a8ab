//! Reading the token counts of an answer.

use super::json::{Fields, Raw};
use threadfold_core::message::Usage;

/// The fields in which a dialect reports tokens, as paths of one or two keys. Counts of several
/// paths are added.
#[derive(Debug)]
pub(super) struct Counts {
    /// The whole prompt, its cached part included.
    pub(super) input: &'static [&'static str],
    /// The whole answer, its reasoning included.
    pub(super) output: &'static [&'static str],
    pub(super) cache_read: &'static str,
    pub(super) cache_write: &'static str,
    pub(super) reasoning: &'static str,
}

impl Counts {
    /// No counts. A dialect takes from here the fields that its provider does not report.
    pub(super) const NONE: Self =
        Self { input: &[], output: &[], cache_read: "", cache_write: "", reasoning: "" };

    /// Reads the counts. A missing one is zero; `None` if the value is no object.
    pub(super) fn read(&self, raw: Raw<'_>) -> Option<Usage> {
        let fields = Fields::of(raw)?;
        Some(Usage {
            input: sum(&fields, self.input),
            output: sum(&fields, self.output),
            cache_read: count(&fields, self.cache_read),
            cache_write: count(&fields, self.cache_write),
            reasoning: count(&fields, self.reasoning),
        })
    }
}

fn sum(fields: &Fields<'_>, paths: &[&str]) -> u64 {
    paths.iter().fold(0, |sum: u64, path| sum.saturating_add(count(fields, path)))
}

fn count(fields: &Fields<'_>, path: &str) -> u64 {
    let found = match path.split_once('.') {
        Some((key, inner)) => fields.object(key).and_then(|details| details.get(inner)),
        None => fields.get(path),
    };
    found.and_then(Raw::whole_number).unwrap_or(0)
}
