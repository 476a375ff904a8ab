//! The ways in which models and networks misbehave, as answers of a script.

use super::scripted::Answer;
use crate::message::{Json, Message, ModelError, ModelErrorKind, Role, StopReason, ToolUse, Turn};

/// One way of misbehaving, as an answer of a [`ScriptedModel`](super::ScriptedModel).
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Request, model::Model, testing::{Misbehaviour, ScriptedModel}};
///
/// let model = ScriptedModel::repeating([Misbehaviour::Overflow]);
/// assert!(block_on(model.complete(Request::default())).unwrap_err().is_overflow());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Fails because the prompt exceeds the window.
    Overflow,
    /// Answers with white space only.
    Blank,
    /// Answers without any block.
    Empty,
    /// Calls a tool instead of writing text.
    CallsTool,
    /// Ends the stream in the middle of the answer.
    CutStream,
    /// Fails permanently.
    Fails,
    /// Fails with a retryable error.
    Overloaded,
    /// Stops at the output limit.
    Truncated,
    /// Stops with a refusal.
    Refuses,
    /// Answers, but its stream is pending a hundred times before each delta.
    Slow,
    /// Answers with about a megabyte of text.
    Inflates,
}

/// The text of an answer that stops at the output limit.
pub(super) const HALF: &str = "This is only the first half of an";

impl Misbehaviour {
    /// All ways of misbehaving.
    pub const ALL: [Self; 11] = [
        Self::Overflow,
        Self::Blank,
        Self::Empty,
        Self::CallsTool,
        Self::CutStream,
        Self::Fails,
        Self::Overloaded,
        Self::Truncated,
        Self::Refuses,
        Self::Slow,
        Self::Inflates,
    ];
}

impl From<Misbehaviour> for Answer {
    fn from(way: Misbehaviour) -> Self {
        let turn = |message, stop_reason| Turn::new(message, stop_reason, None);
        let fails = |kind| Answer::Error(ModelError::new(kind, "hostile"));
        match way {
            Misbehaviour::Overflow => {
                fails(ModelErrorKind::Overflow { limit: Some(1_000), found: None, output: None })
            }
            Misbehaviour::Fails => fails(ModelErrorKind::Other),
            Misbehaviour::Overloaded => fails(ModelErrorKind::Retryable { after: None }),
            Misbehaviour::Blank => Answer::from(" \n\t "),
            Misbehaviour::Empty => {
                turn(Message::new(Role::Assistant, Vec::new()), StopReason::EndTurn).into()
            }
            Misbehaviour::CallsTool => {
                let call = ToolUse::new("hostile", "rm", Json::default());
                Message::new(Role::Assistant, vec![call.into()]).into()
            }
            Misbehaviour::CutStream => Answer::Cut(turn(
                Message::assistant("this will not be said to its end"),
                StopReason::EndTurn,
            )),
            Misbehaviour::Truncated => turn(Message::assistant(HALF), StopReason::MaxTokens).into(),
            Misbehaviour::Refuses => turn(Message::assistant("no"), StopReason::Refusal).into(),
            Misbehaviour::Slow => {
                Answer::Slow(turn(Message::assistant("slowly said"), StopReason::EndTurn))
            }
            Misbehaviour::Inflates => Answer::from("word ".repeat(200_000)),
        }
    }
}
