//! Strategies without a driver: a test answers their calls.

use futures::FutureExt;

use super::scripted::{Scripted, ScriptedModel};
use crate::{
    message::{Answer, ModelError, ModelErrorKind},
    model::Model,
    strategy::{Ask, CompactionStrategy, ModelCall, Proposal, StrategyError, View},
};

/// Runs a strategy whose calls this function answers, and returns the calls and the outcome. The
/// proposal is not checked yet, see [`Snapshot::settle`](crate::strategy::Snapshot::settle). A
/// strategy that awaits something else than an answer ends with [`StrategyError::NeedsModel`].
///
/// ```
/// use threadfold::{Message, strategy::{Brief, Snapshot, Summarize, View}};
/// use threadfold::testing::{answers, asked};
///
/// let story = Message::assistant("I read on. ".repeat(40));
/// let thread = vec![Message::user("Read it."), story, Message::user("And?")];
/// let view = View::new(Snapshot::new(thread), Brief::default());
/// let strategy = Summarize { messages: 1, user_messages: 0, ..Summarize::default() };
/// let (calls, proposal) = asked(&strategy, &view, answers(["They read it."]));
/// assert_eq!((calls.len(), proposal?.plan.messages_after()), (1, 2));
/// # Ok::<(), threadfold::strategy::StrategyError>(())
/// ```
pub fn asked(
    strategy: &dyn CompactionStrategy,
    view: &View,
    mut answer: impl FnMut(&ModelCall) -> Result<Answer, ModelError> + Send,
) -> (Vec<ModelCall>, Result<Proposal, StrategyError>) {
    let mut calls = Vec::new();
    let mut answer = |call: &ModelCall| {
        calls.push(call.clone());
        answer(call)
    };
    let outcome = strategy.propose(view, &mut Ask::new(&mut answer)).now_or_never();
    (calls, outcome.unwrap_or(Err(StrategyError::NeedsModel)))
}

/// Returns a function for [`asked`] that answers from a script, in order. After the last answer
/// there is no model.
///
/// ```
/// use threadfold::{message::Request, strategy::{ModelCall, ModelRole}, testing::answers};
///
/// let mut answer = answers(["Yes."]);
/// let call = ModelCall::new(ModelRole::Fast, Request::default());
/// assert!(answer(&call).is_ok_and(|turn| turn.text() == "Yes."));
/// assert!(answer(&call).is_err());
/// ```
pub fn answers<A: Into<Scripted>>(
    script: impl IntoIterator<Item = A>,
) -> impl FnMut(&ModelCall) -> Result<Answer, ModelError> + Send {
    let mut script: Vec<Scripted> = script.into_iter().map(Into::into).collect();
    script.reverse();
    move |call| {
        let none = || ModelError::new(ModelErrorKind::NoModel, "");
        let model = ScriptedModel::new([script.pop().ok_or_else(none)?]);
        model.complete(call.request.clone()).now_or_never().unwrap_or_else(|| Err(none()))
    }
}
