//! The two common kinds of attempt: one without a model call, one that asks a model one question.

use std::{fmt, time::Duration};

use super::contract::{Attempt, ModelRole, Proposal, Result, Step, StrategyError};
use crate::{
    compact::Plan,
    ledger::Quotes,
    message::{ModelError, ModelErrorKind, Request, StopReason, Text, ToolChoice, Turn, Usage},
    turn::is_meant,
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
    propose_as(plan, Proposal::new)
}

/// Returns an attempt that ended with this plan, as the proposal that `of` makes of it.
pub(super) fn propose_as<E: Into<StrategyError>>(
    plan: Result<Plan, E>,
    of: fn(Plan) -> Proposal,
) -> Box<dyn Attempt> {
    Box::new(Ended(plan.map(of).map_err(Into::into)))
}

/// Returns the attempt, or one that ends at once with the error.
pub(super) fn or_failed(attempt: Result<Box<dyn Attempt>>) -> Box<dyn Attempt> {
    attempt.unwrap_or_else(|error| Box::new(Ended(Err(error))))
}

/// The model to ask, and the limits for retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AskOptions {
    /// The model.
    pub(super) model: ModelRole,
    /// Maximum number of retries of the call after retryable failures.
    pub(super) max_retries: usize,
    /// Maximum total wait before retries. A call that would have to wait longer is not retried.
    pub(super) max_wait: Duration,
    /// Whether a model that calls a tool is asked once more with tool calls forbidden. The first
    /// request allows them, because Anthropic's prompt cache is keyed by `tool_choice`.
    pub(super) repeats_without_calls: bool,
}

impl From<ModelRole> for AskOptions {
    /// Four retries, at most two minutes of waits, and one more call without tool calls.
    fn from(model: ModelRole) -> Self {
        let max_wait = Duration::from_secs(120);
        Self { model, max_retries: 4, max_wait, repeats_without_calls: true }
    }
}

/// Returns an attempt that asks a model one question and builds its plan, or a whole proposal, from
/// the answer.
///
/// After a retryable failure the call is retried, up to four times and within two minutes in all.
/// The wait is what the provider asks for, or else 1, 5, 10 and then 30 seconds. Any other failure
/// ends the attempt. A model that calls a tool is asked once more with tool calls forbidden. The
/// driver does the waiting, and sums the calls and their usage.
///
/// ```
/// use std::sync::Arc;
/// use futures::executor::block_on;
/// use threadfold::drive::{Models, propose};
/// use threadfold::strategy::{Attempt, Brief, CompactionStrategy, ModelRole, Snapshot, attempt};
/// use threadfold::testing::{Answer, ScriptedModel};
/// use threadfold::{Message, Plan, Request};
/// use threadfold_testing::TestClock;
///
/// /// Sums up everything before the user's newest text.
/// #[derive(Debug)]
/// struct SumUp;
///
/// impl CompactionStrategy for SumUp {
///     fn name(&self) -> &str {
///         "sum-up"
///     }
///
///     fn begin(&self, thread: &Snapshot, _: &Brief) -> Box<dyn Attempt> {
///         let messages = thread.messages().clone();
///         let last = messages.iter().rposition(Message::is_typed).unwrap_or(messages.len());
///         let cut = thread.cut_at_or_before(last);
///         let mut request = Request::new(messages[..cut].to_vec());
///         let question = Message::user("Sum up the conversation so far.");
///         Arc::make_mut(&mut request.messages).push(question);
///         attempt::ask(ModelRole::Fast, request, move |turn| {
///             Ok(Plan::summarise(&messages, 0..cut, attempt::summary_of(&turn)?)?)
///         })
///     }
/// }
///
/// let long = Message::assistant("I looked. ".repeat(40));
/// let thread = [Message::user("Where is the parser?"), long, Message::user("How long is it?")];
/// let thread = Snapshot::new(thread.to_vec());
/// // The first call fails, the second one answers.
/// let model = ScriptedModel::new([Answer::Overloaded, "They looked for the parser.".into()]);
/// let clock = TestClock::default();
/// let models = Models { clock: Some(&clock), ..Models::one(&model) };
/// let driven = block_on(propose(&SumUp, &thread, &Brief::default(), models, &mut |_, _| {}))?;
/// assert_eq!((driven.calls, driven.plan.messages_after()), (2, 2));
/// # Ok::<(), threadfold::drive::CompactionError>(())
/// ```
#[must_use]
pub fn ask<P: Into<Proposal>>(
    model: ModelRole,
    request: Request,
    plan: impl FnOnce(Turn) -> Result<P> + Send + 'static,
) -> Box<dyn Attempt> {
    ask_with(model.into(), request, plan)
}

/// Same as [`ask`], with this limit on the total wait before retries. A call that would have to
/// wait longer is not retried.
#[must_use]
pub fn ask_within<P: Into<Proposal>>(
    model: ModelRole,
    max_wait: Duration,
    request: Request,
    plan: impl FnOnce(Turn) -> Result<P> + Send + 'static,
) -> Box<dyn Attempt> {
    ask_with(AskOptions { max_wait, ..model.into() }, request, plan)
}

pub(super) fn ask_with<P: Into<Proposal>>(
    options: AskOptions,
    request: Request,
    plan: impl FnOnce(Turn) -> Result<P> + Send + 'static,
) -> Box<dyn Attempt> {
    ask_smaller(options, request, |_| None, plan)
}

/// Same as [`ask_with`]. If the provider refuses the request as too long, `smaller` may return
/// another request, which is tried once.
pub(super) fn ask_smaller<P: Into<Proposal>>(
    options: AskOptions,
    request: Request,
    smaller: impl FnOnce(&ModelError) -> Option<Request> + Send + 'static,
    plan: impl FnOnce(Turn) -> Result<P> + Send + 'static,
) -> Box<dyn Attempt> {
    Box::new(Asking {
        options,
        request,
        smaller: Some(Box::new(smaller)),
        plan: Some(Box::new(|turn| plan(turn).map(Into::into))),
        retries: 0,
        waited: Duration::ZERO,
        after: Duration::ZERO,
        ended: None,
    })
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
pub fn summary_of(turn: &Turn) -> Result<Text> {
    let stop_reason = turn.stop_reason.clone();
    if let Some(call) = turn.message.tool_uses().next() {
        return Err(StrategyError::CalledTool { tool: call.name.clone() });
    }
    if !is_complete(&stop_reason) {
        return Err(StrategyError::Incomplete { stop_reason });
    }
    let texts = turn.message.texts().map(|text| text.trim());
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    if texts.is_empty() {
        return Err(StrategyError::BlankSummary { stop_reason });
    }
    Ok(texts.join("\n\n").into())
}

/// Returns the summary in an answer, without the lists of quotes after it, and these lists.
///
/// # Errors
///
/// As [`summary_of`]; an answer that consists of quotes alone has no summary.
pub(super) fn quoted_summary_of(turn: &Turn) -> Result<(Text, Quotes)> {
    let answer = summary_of(turn)?;
    let (summary, quotes) = Quotes::cut(&answer);
    if summary.is_empty() {
        return Err(StrategyError::BlankSummary { stop_reason: turn.stop_reason.clone() });
    }
    // An answer without lists stays as the model wrote it.
    Ok((if quotes.is_empty() { answer } else { summary.into() }, quotes))
}

/// Whether an answer that stopped for this reason is complete text.
pub(super) fn is_complete(reason: &StopReason) -> bool {
    is_meant(reason) && !matches!(reason, StopReason::ToolUse | StopReason::PauseTurn)
}

/// An attempt that has ended.
#[derive(Debug)]
pub(super) struct Ended(pub(super) Result<Proposal>);

impl Attempt for Ended {
    fn step(&self) -> Step<'_> {
        match &self.0 {
            Ok(proposal) => Step::Proposed(proposal),
            Err(error) => Step::Failed(error),
        }
    }

    fn handle(&mut self, _: Result<Turn, ModelError>) {}
}

/// The current step of an attempt, as a value.
#[allow(clippy::large_enum_variant, reason = "an attempt holds one of them, on the heap already")]
#[derive(Debug)]
pub(super) enum Current {
    Call { model: ModelRole, request: Request, done: usize, total: usize, after: Duration },
    Ended(Ended),
}

impl Current {
    pub(super) fn of(step: Step<'_>) -> Self {
        match step {
            Step::Call { model, request, done, total, after } => {
                Self::Call { model, request: request.clone(), done, total, after }
            }
            Step::Proposed(proposal) => Self::Ended(Ended(Ok(proposal.clone()))),
            Step::Failed(error) => Self::Ended(Ended(Err(error.clone()))),
        }
    }

    pub(super) fn step(&self) -> Step<'_> {
        match self {
            Self::Call { model, request, done, total, after } => {
                Step::Call { model: *model, request, done: *done, total: *total, after: *after }
            }
            Self::Ended(ended) => ended.step(),
        }
    }
}

type Propose = Box<dyn FnOnce(Turn) -> Result<Proposal> + Send>;
type Smaller = Box<dyn FnOnce(&ModelError) -> Option<Request> + Send>;

/// An attempt that asks one question.
struct Asking {
    options: AskOptions,
    request: Request,
    /// Returns the second try after an overflow. `None` once it has been called.
    smaller: Option<Smaller>,
    /// Builds the plan from the answer. `None` once it has been called.
    plan: Option<Propose>,
    retries: usize,
    /// The total wait so far.
    waited: Duration,
    /// The wait before the next call.
    after: Duration,
    ended: Option<Ended>,
}

impl Asking {
    /// Returns the wait before a retry after this answer; `None` to use the answer.
    fn repeats(&mut self, answer: &Result<Turn, ModelError>) -> Option<Duration> {
        match answer {
            Ok(turn) => {
                let calls_tool = turn.message.tool_uses().next().is_some();
                let may_repeat = self.options.repeats_without_calls && calls_tool;
                if !may_repeat || self.request.tools.is_empty() {
                    return None;
                }
                self.options.repeats_without_calls = false;
                self.request.tool_choice = Some(ToolChoice::None);
                Some(Duration::ZERO)
            }
            Err(error) if error.is_overflow() => {
                self.request = self.smaller.take()?(error)?;
                Some(Duration::ZERO)
            }
            Err(error) => {
                let ModelErrorKind::Retryable { after } = error.kind else { return None };
                let after = after.unwrap_or_else(|| backoff(self.retries));
                let waited = self.waited.saturating_add(after);
                if self.retries >= self.options.max_retries || waited > self.options.max_wait {
                    return None;
                }
                (self.retries, self.waited) = (self.retries + 1, waited);
                Some(after)
            }
        }
    }
}

/// The waits before each retry, in seconds. Later retries wait as long as the fourth.
const WAITS: [u64; 4] = [1, 5, 10, 30];

/// The wait before the next retry, after this many retries.
pub(super) fn backoff(retries: usize) -> Duration {
    let [.., longest] = WAITS;
    Duration::from_secs(WAITS.get(retries).copied().unwrap_or(longest))
}

impl Attempt for Asking {
    fn step(&self) -> Step<'_> {
        match &self.ended {
            Some(ended) => ended.step(),
            None => Step::Call {
                model: self.options.model,
                request: &self.request,
                done: 0,
                total: 1,
                after: self.after,
            },
        }
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        if self.ended.is_some() {
            return;
        }
        if let Some(after) = self.repeats(&answer) {
            self.after = after;
            return;
        }
        let Some(plan) = self.plan.take() else { return };
        let is_native = self.options.model == ModelRole::Native;
        let outcome = answer.map_err(|error| {
            let is_absent = is_native && error.kind == ModelErrorKind::NoModel;
            if is_absent { StrategyError::NotNative } else { StrategyError::from_model(error) }
        });
        let outcome = outcome.and_then(plan);
        self.ended = Some(Ended(outcome));
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.step()).finish()
    }
}

/// Adds the usage of an answer and counts the call. The error that no model is configured does not
/// count as a call.
pub(crate) fn record_call(answer: &Result<Turn, ModelError>, usage: &mut Usage, calls: &mut usize) {
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

    fn busy(after: Option<Duration>) -> Result<Turn, ModelError> {
        Err(ModelError::new(ModelErrorKind::Retryable { after }, "busy"))
    }

    fn asking(options: impl Into<AskOptions>) -> Box<dyn Attempt> {
        ask_with(options.into(), Request::default(), |_| Ok(Plan::from_splices(0, Vec::new())))
    }

    /// The waits before the calls of an attempt whose model is busy every time, in seconds.
    fn waits(options: AskOptions, after: Option<Duration>) -> Vec<u64> {
        let (mut attempt, mut waits) = (asking(options), Vec::new());
        while let Step::Call { after: wait, .. } = attempt.step() {
            waits.push(wait.as_secs());
            attempt.handle(busy(after));
        }
        assert!(matches!(attempt.step(), Step::Failed(StrategyError::Model(_))));
        waits
    }

    #[test]
    fn a_call_that_may_succeed_later_is_repeated_within_its_limits() {
        let options = AskOptions::from(ModelRole::Fast);
        assert_eq!(waits(options, None), [0, 1, 5, 10, 30]);
        assert_eq!(waits(options, Some(Duration::from_secs(50))), [0, 50, 50]);
        assert_eq!(waits(options, Some(Duration::from_secs(121))), [0]);
        assert_eq!(waits(AskOptions { max_retries: 0, ..options }, None), [0]);
        let hours = AskOptions { max_retries: 99, max_wait: Duration::MAX, ..options };
        assert_eq!(waits(hours, None).len(), 100);
        let mut attempt = asking(ModelRole::Conversation);
        attempt.handle(busy(None));
        attempt.handle(Ok(Turn::new(Message::assistant("Yes."), StopReason::EndTurn, None)));
        assert!(matches!(attempt.step(), Step::Proposed(_)));
        let mut attempt = asking(ModelRole::Conversation);
        attempt.handle(Err(ModelError::new(ModelErrorKind::Authentication, "no")));
        assert!(matches!(attempt.step(), Step::Failed(_)));
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
