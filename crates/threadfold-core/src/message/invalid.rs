//! The error for a value that its type refuses, and for an input that a state machine did not
//! request.

use super::text::{Text, slice};

/// The number of characters of a value that an error quotes.
const QUOTED: usize = 40;

/// Returns as much of a value as an error quotes, with dots if that is not all.
#[doc(hidden)]
#[must_use]
pub fn quoted(value: &str) -> String {
    match value.char_indices().nth(QUOTED) {
        Some((end, _)) => slice(value, ..end).to_owned() + "...",
        None => value.to_owned(),
    }
}

/// Why a value was refused: an id, a time or a number violates the rule of its type, or a state
/// machine received an input that its state does not accept. The machine is then unchanged.
///
/// ```
/// use threadfold::CheckpointId;
///
/// let error = "A1".parse::<CheckpointId>().unwrap_err();
/// let rule = "\"A1\" is not a checkpoint id; expected six characters from a to z and 0 to 9";
/// assert_eq!(error.to_string(), rule);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {what}; {rule}")]
#[non_exhaustive]
pub struct InvalidValue {
    /// What was expected, with its article, such as `a checkpoint id`.
    pub what: &'static str,
    /// What is wrong: what was expected, such as `expected a number from 0 to 1`, or what was found.
    pub rule: Text,
    /// The value, cut after 40 characters.
    pub found: Text,
}

impl InvalidValue {
    #[doc(hidden)]
    pub fn new(what: &'static str, rule: impl Into<Text>, found: &str) -> Self {
        let found: String = found.chars().take(QUOTED).collect();
        Self { what, rule: rule.into(), found: found.into() }
    }

    /// Returns the error of a state machine for an input that its state does not accept.
    #[doc(hidden)]
    pub fn unexpected(input: impl Into<Text>, state: impl Into<Text>) -> Self {
        Self { what: "what comes next", rule: state.into(), found: input.into() }
    }
}
