//! Two errors: a value that its type does not accept, and an input that a machine did not ask for.

use super::text::Text;

/// The number of characters of the value that the error quotes.
const QUOTED: usize = 40;

/// Why a value is not accepted: an id, a time or a number that violates the rule of its type.
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
}

/// A state machine received an input that its state does not accept, because the host's loop did
/// not do what the machine asked for. The machine is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{input} is not expected: {state}")]
#[non_exhaustive]
pub struct UnexpectedInput {
    /// The input.
    pub input: Text,
    /// The state of the machine.
    pub state: Text,
}

impl UnexpectedInput {
    #[doc(hidden)]
    pub fn new(input: impl Into<Text>, state: impl Into<Text>) -> Self {
        Self { input: input.into(), state: state.into() }
    }
}
