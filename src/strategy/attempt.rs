//! The two common kinds of attempt: one without a model call, one with a single call.

use std::{fmt, time::Duration};

use super::contract::{Attempt, ModelRole, Progress, Proposal, Step, StrategyError};
use crate::{
    compact::Plan,
    message::{
        ContentBlock, ModelError, ModelErrorKind, Request, StopReason, Text, ToolChoice, Turn,
        Usage,
    },
};

/// Returns an attempt that calls no model: it ends at once with the plan or with the error.
///
/// ```
/// use threadfold::strategy::{Step, StrategyError, attempt};
///
/// let attempt = attempt::propose(Err(StrategyError::NothingToCompact { reason: "empty".into() }));
/// assert!(matches!(attempt.step(), Step::Failed(_)));
/// ```
#[must_use]
pub fn propose<E: Into<StrategyError>>(plan: Result<Plan, E>) -> Box<dyn Attempt> {
    Box::new(Ended(plan.map(Proposal::new).map_err(Into::into)))
}

/// Returns an attempt that calls a model once and builds its plan from the answer. A failed call
/// ends the attempt.
///
/// ```
/// use threadfold::{Message, Request, strategy::{ModelRole, Step, StrategyError, attempt}};
///
/// let request = Request::new(vec![Message::user("Sum it up.")]);
/// let attempt = attempt::ask(ModelRole::Fast, request, |turn| {
///     let summary = attempt::summary_of(&turn)?;
///     # Err(StrategyError::NothingToCompact { reason: summary })
/// });
/// assert!(matches!(attempt.step(), Step::Call { model: ModelRole::Fast, .. }));
/// ```
#[must_use]
pub fn ask<F>(model: ModelRole, request: Request, plan: F) -> Box<dyn Attempt>
where
    F: FnOnce(Turn) -> Result<Plan, StrategyError> + Send + 'static,
{
    Box::new(Asking::new(model, request, plan))
}

/// Like [`ask`], but a model that calls a tool is asked once more with tool calls forbidden. They
/// are allowed at first because Anthropic's prompt cache is keyed by the choice of tools.
pub(super) fn ask_without_calls<F>(model: ModelRole, request: Request, plan: F) -> Box<dyn Attempt>
where
    F: FnOnce(Turn) -> Result<Plan, StrategyError> + Send + 'static,
{
    Box::new(Asking { retries_tool_call: true, ..Asking::new(model, request, plan) })
}

/// Returns the summary in an answer: its text blocks, joined by blank lines.
///
/// ```
/// use threadfold::{Message, message::{StopReason, Turn}, strategy::attempt};
///
/// let cut = Turn::new(Message::assistant("They read"), StopReason::MaxTokens, None);
/// let error = attempt::summary_of(&cut).unwrap_err();
/// assert_eq!(error.to_string(), "the summary is incomplete: the model stopped with max_tokens");
/// ```
///
/// # Errors
///
/// [`StrategyError::CalledTool`], [`StrategyError::Incomplete`] if the answer was cut off or
/// refused, [`StrategyError::BlankSummary`].
pub fn summary_of(turn: &Turn) -> Result<Text, StrategyError> {
    let stop_reason = turn.stop_reason.clone();
    if let Some(call) = turn.message.tool_uses().next() {
        return Err(StrategyError::CalledTool { tool: call.name.clone() });
    }
    match stop_reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) => {}
        StopReason::ToolUse
        | StopReason::MaxTokens
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContextWindowExceeded
        | StopReason::Aborted => return Err(StrategyError::Incomplete { stop_reason }),
    }
    let texts = turn.message.content.iter().filter_map(ContentBlock::as_text);
    let texts: Vec<&str> = texts.map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() {
        return Err(StrategyError::BlankSummary { stop_reason });
    }
    Ok(texts.join("\n\n").into())
}

/// An attempt that has ended.
#[derive(Debug)]
pub(super) struct Ended(pub(super) Result<Proposal, StrategyError>);

impl Attempt for Ended {
    fn step(&self) -> Step<'_> {
        match &self.0 {
            Ok(proposal) => Step::Proposed(proposal),
            Err(error) => Step::Failed(error),
        }
    }

    fn handle(&mut self, _: Result<Turn, ModelError>) {}
}

type MakePlan = Box<dyn FnOnce(Turn) -> Result<Plan, StrategyError> + Send>;

/// An attempt of one call, or of two if the first answer calls a tool.
struct Asking {
    model: ModelRole,
    request: Request,
    /// Whether an answer that calls a tool is followed by a request that forbids tool calls.
    retries_tool_call: bool,
    /// `None` once it was called.
    plan: Option<MakePlan>,
    ended: Option<Ended>,
}

impl Asking {
    fn new<F>(model: ModelRole, request: Request, plan: F) -> Self
    where
        F: FnOnce(Turn) -> Result<Plan, StrategyError> + Send + 'static,
    {
        Self { model, request, retries_tool_call: false, plan: Some(Box::new(plan)), ended: None }
    }
}

impl Attempt for Asking {
    fn step(&self) -> Step<'_> {
        match &self.ended {
            Some(ended) => ended.step(),
            None => Step::Call {
                model: self.model,
                request: &self.request,
                progress: Progress { done: 0, total: 1 },
                after: Duration::ZERO,
            },
        }
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        let may_retry = std::mem::take(&mut self.retries_tool_call);
        let calls_tool = |turn: &Turn| turn.message.tool_uses().next().is_some();
        if may_retry && !self.request.tools.is_empty() && answer.as_ref().is_ok_and(calls_tool) {
            self.request.tool_choice = Some(ToolChoice::None);
            return;
        }
        let Some(plan) = self.plan.take() else { return };
        let outcome = answer.map_err(StrategyError::from_model).and_then(plan);
        self.ended = Some(Ended(outcome.map(Proposal::new)));
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.step()).finish()
    }
}

/// Adds the usage of an answer. The error that no model is configured is not a call.
pub(super) fn record_call(answer: &Result<Turn, ModelError>, usage: &mut Usage, calls: &mut usize) {
    let (spent, called) = match answer {
        Ok(turn) => (turn.usage.unwrap_or_default(), true),
        Err(error) => (error.usage, error.kind != ModelErrorKind::NoModel),
    };
    *usage += spent;
    *calls += usize::from(called);
}

impl StrategyError {
    /// Returns [`StrategyError::NeedsModel`] if no model is configured, else
    /// [`StrategyError::Model`].
    ///
    /// ```
    /// use threadfold::message::{ModelError, ModelErrorKind};
    /// use threadfold::strategy::StrategyError;
    ///
    /// let none = ModelError::new(ModelErrorKind::NoModel, "");
    /// assert!(matches!(StrategyError::from_model(none), StrategyError::NeedsModel));
    /// let refused = ModelError::new(ModelErrorKind::Refused, "no");
    /// assert!(matches!(StrategyError::from_model(refused), StrategyError::Model(_)));
    /// ```
    #[must_use]
    pub fn from_model(error: ModelError) -> Self {
        if error.kind == ModelErrorKind::NoModel {
            Self::NeedsModel
        } else {
            Self::Model(Box::new(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Message, Role, ToolUse};

    #[test]
    fn an_answer_that_is_no_summary_is_named() {
        let answer = |message, stop| summary_of(&Turn::new(message, stop, None)).unwrap_err();
        let call = ToolUse::new("t1", "read", Json::default());
        let call = Message::new(Role::Assistant, vec![call.into()]);
        let rows = [
            (
                answer(call, StopReason::ToolUse),
                "the model called read instead of writing a summary",
            ),
            (
                answer(Message::assistant(" \n"), StopReason::EndTurn),
                "the model answered without a summary (end_turn)",
            ),
            (
                answer(Message::assistant("half a"), StopReason::MaxTokens),
                "the summary is incomplete: the model stopped with max_tokens",
            ),
        ];
        for (error, text) in rows {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn a_second_answer_changes_nothing() {
        let turn = || Turn::new(Message::assistant("summary"), StopReason::EndTurn, None);
        let mut attempt =
            ask(ModelRole::Fast, Request::default(), |_| Ok(Plan::from_splices(0, Vec::new())));
        attempt.handle(Ok(turn()));
        attempt.handle(Err(ModelError::new(ModelErrorKind::Other, "late")));
        assert!(matches!(attempt.step(), Step::Proposed(_)));
    }
}
