//! The ways in which models and networks misbehave, as answers of a script.

use super::scripted::{Answer, turn_of};
use crate::message::{Json, Message, ModelError, ModelErrorKind, Role, StopReason, ToolUse, Turn};

/// The text of an answer that stops at the output limit.
pub(super) const HALF: &str = "This is only the first half of an";

impl Answer {
    /// Returns all ways in which a model or its network misbehaves.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Request, model::Model, testing::{Answer, ScriptedModel}};
    ///
    /// for way in Answer::misbehaving() {
    ///     let model = ScriptedModel::repeating([way.clone()]);
    ///     let answer = block_on(model.complete(Request::default()));
    ///     // The code under test must survive the answer, and what follows it.
    ///     assert_eq!(answer.is_err_and(|error| error.is_overflow()), matches!(way, Answer::Overflow));
    /// }
    /// ```
    #[must_use]
    pub fn misbehaving() -> [Self; 11] {
        let [cut, slow] = ["this will not be said to its end", "slowly said"];
        [
            Self::Overflow,
            Self::Blank,
            Self::Empty,
            Self::CallsTool,
            Self::Cut(turn_of(Message::assistant(cut))),
            Self::Fails,
            Self::Overloaded,
            Self::Truncated,
            Self::Refuses,
            Self::Slow(turn_of(Message::assistant(slow))),
            Self::Inflates,
        ]
    }

    /// Returns the turn or the error of the answer, however its stream goes.
    pub(super) fn outcome(self) -> Result<Turn, ModelError> {
        let (text, stop_reason) = match self {
            Self::Turn(turn) | Self::Slow(turn) | Self::Cut(turn) => return Ok(turn),
            Self::Error(error) => return Err(error),
            Self::Overflow => {
                let kind =
                    ModelErrorKind::Overflow { limit: Some(1_000), found: None, output: None };
                return Err(ModelError::new(kind, "hostile"));
            }
            Self::Fails => return Err(ModelError::new(ModelErrorKind::Other, "hostile")),
            Self::Overloaded => {
                let kind = ModelErrorKind::Retryable { after: None };
                return Err(ModelError::new(kind, "hostile"));
            }
            Self::Empty => return Ok(turn_of(Message::new(Role::Assistant, Vec::new()))),
            Self::CallsTool => {
                let call = ToolUse::new("hostile", "rm", Json::default());
                return Ok(turn_of(Message::new(Role::Assistant, vec![call.into()])));
            }
            Self::Blank => (" \n\t ".to_owned(), StopReason::EndTurn),
            Self::Truncated => (HALF.to_owned(), StopReason::MaxTokens),
            Self::Refuses => ("no".to_owned(), StopReason::Refusal),
            Self::Inflates => ("word ".repeat(200_000), StopReason::EndTurn),
        };
        Ok(Turn::new(Message::assistant(text), stop_reason, None))
    }
}
