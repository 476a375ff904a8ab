//! The error of a value that its type does not accept, and of an input that a machine did not ask for.

use super::text::Text;

/// The number of characters of the value that the error quotes.
const QUOTED: usize = 40;

/// Why a value is not accepted: an id, a time or a number that violates the rule of its type, or an
/// input that the state of a machine does not take, which is then unchanged.
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
    /// What was expected, with its article, such as `a checkpoint id`.
    pub what: &'static str,
    /// Which values are accepted.
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

    /// Returns the error of a machine for an input that its state does not take.
    #[doc(hidden)]
    pub fn unexpected(input: impl Into<Text>, state: impl Into<Text>) -> Self {
        Self { what: "what comes next", rule: state.into(), found: input.into() }
    }
}
