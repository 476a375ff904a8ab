//! The error of a value that breaks the rule of its type.

use super::text::Text;

/// How many characters of the value the error quotes.
const QUOTED: usize = 40;

/// Why a value is not accepted: an id, a time or a number that breaks the rule of its type.
///
/// ```
/// use threadfold::CheckpointId;
///
/// let error = "A1".parse::<CheckpointId>().unwrap_err();
/// let rule = "\"A1\" is not a checkpoint id: six characters of a to z and 0 to 9 are";
/// assert_eq!(error.to_string(), rule);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {what}: {rule}")]
#[non_exhaustive]
pub struct InvalidValue {
    /// What was expected, with its article.
    pub what: &'static str,
    /// Which values are accepted.
    pub rule: &'static str,
    /// The value, cut after 40 characters.
    pub found: Text,
}

impl InvalidValue {
    #[doc(hidden)]
    pub fn new(what: &'static str, rule: &'static str, found: &str) -> Self {
        let found = match found.char_indices().nth(QUOTED) {
            Some((end, _)) => found.get(..end).unwrap_or(found),
            None => found,
        };
        Self { what, rule, found: found.into() }
    }
}
