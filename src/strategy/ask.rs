//! How a strategy asks a model.
//!
//! A strategy gets an [`Ask`] and awaits nothing else. Behind it stand a driver with the host's
//! models, a test that answers by itself, or a durable engine that journals each answer: whatever
//! implements [`Answers`]. Retries, waits, token usage, progress and panics are handled here, once
//! for all strategies.

use std::{any::Any, fmt, panic::AssertUnwindSafe, time::Duration};

use async_trait::async_trait;
use futures::{
    FutureExt,
    channel::oneshot,
    future::{self, Either},
};
use serde::{Deserialize, Serialize};

use super::{
    error::{Result, StrategyError},
    proposal::ModelRole,
};
use crate::{
    ledger::Quotes,
    message::{
        Answer, Message, ModelError, ModelErrorKind, Request, StopReason, Text, ToolChoice, Usage,
    },
    turn::is_meant,
};

/// Upper limit for the calls of one compaction, for strategies that never end.
const MAX_CALLS: usize = 100_000;

/// One call of a model that a strategy makes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelCall {
    /// Which model to call.
    pub model: ModelRole,
    /// The request to send. A durable host can store answers under its [`Request::key`].
    pub request: Request,
    /// The prompt for a provider's [own compaction](ModelRole::Native), in place of the provider's;
    /// `None` for that one, and for every other role.
    pub instructions: Option<Text>,
    /// Number of finished calls.
    pub done: usize,
    /// Number of calls needed in all, as far as known.
    pub total: usize,
    /// Time to wait before the call: zero except for a retry.
    pub after: Duration,
}

impl ModelCall {
    /// Returns the only call of a strategy, without a wait.
    #[must_use]
    pub fn new(model: ModelRole, request: Request) -> Self {
        Self { model, request, instructions: None, done: 0, total: 1, after: Duration::ZERO }
    }

    /// Returns a call of the fast model without the reasoning in its request; `None` if it has none,
    /// and for the other roles, which continue the prompt for which the reasoning was made.
    fn without_reasoning(&self) -> Option<Self> {
        let is_apart = match self.model {
            ModelRole::Fast => true,
            ModelRole::Conversation | ModelRole::Native => false,
        };
        let messages = &self.request.messages;
        if !is_apart || !messages.iter().any(Message::has_reasoning) {
            return None;
        }
        let bare = messages.iter().map(|message| match message.has_reasoning() {
            true => {
                let blocks = message.content.iter().filter(|block| !block.is_reasoning());
                message.with_content(blocks.cloned().collect())
            }
            false => message.clone(),
        });
        let bare: Vec<Message> = bare.filter(|message| !message.content.is_empty()).collect();
        let request = Request { messages: bare.into(), ..self.request.clone() };
        Some(Self { request, ..self.clone() })
    }
}

/// Answers the calls of a strategy.
///
/// A closure `FnMut(&ModelCall) -> Result<Answer, ModelError>` is one that never waits, for tests.
/// [`drive::Models`](crate::drive::Models) are the models of a host. A durable engine implements
/// this trait to journal each answer: a strategy makes the same calls again if it gets the same
/// answers, so a run that is repeated from its journal continues where it stopped.
///
/// ```
/// use std::collections::HashMap;
/// use futures::executor::block_on;
/// use threadfold::message::{Answer, ModelError};
/// use threadfold::model::Model;
/// use threadfold::strategy::{Answers, Ask, Brief, CompactionStrategy, ModelCall, Snapshot};
/// use threadfold::strategy::{Summarize, View};
/// use threadfold::{Message, testing::ScriptedModel};
///
/// /// Answers that were given once are given again.
/// struct Journaled<'a> {
///     journal: &'a mut HashMap<u64, Answer>,
///     model: &'a dyn Model,
/// }
///
/// #[async_trait::async_trait]
/// impl Answers for Journaled<'_> {
///     async fn answer(&mut self, call: &ModelCall) -> Result<Answer, ModelError> {
///         let key = call.request.key();
///         if let Some(answer) = self.journal.get(&key) {
///             return Ok(answer.clone());
///         }
///         let answer = self.model.complete(call.request.clone()).await?;
///         self.journal.insert(key, answer.clone());
///         Ok(answer)
///     }
/// }
///
/// let mut journal = HashMap::new();
/// let model = ScriptedModel::new(["They read the parser."]);
/// let story = Message::assistant("I read on. ".repeat(40));
/// let thread = Snapshot::new(vec![Message::user("Read it."), story, Message::user("And?")]);
/// let view = View::new(thread, Brief::default());
/// let strategy = Summarize { messages: 1, user_messages: 0, ..Summarize::default() };
/// for _ in 0..2 {
///     // The second run asks no model.
///     let mut answers = Journaled { journal: &mut journal, model: &model };
///     let proposal = block_on(strategy.propose(&view, &mut Ask::new(&mut answers)))?;
///     assert!(proposal.plan.messages_after() < 3);
/// }
/// assert_eq!(journal.len(), 1);
/// # Ok::<(), threadfold::strategy::StrategyError>(())
/// ```
#[async_trait]
pub trait Answers: Send {
    /// Waits for [`ModelCall::after`], sends the request to the model, and returns its answer.
    ///
    /// The future may be dropped at any point: a compaction is cancelled that way.
    ///
    /// # Errors
    ///
    /// [`ModelError`]; [`ModelErrorKind::NoModel`] if there is no model for this role.
    async fn answer(&mut self, call: &ModelCall) -> Result<Answer, ModelError>;
}

#[async_trait]
impl<F> Answers for F
where
    F: FnMut(&ModelCall) -> Result<Answer, ModelError> + Send,
{
    async fn answer(&mut self, call: &ModelCall) -> Result<Answer, ModelError> {
        self(call)
    }
}

/// Asks the models of a compaction, and sums what the calls cost.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{Answer, Message, ModelError, ModelErrorKind, Request, StopReason};
/// use threadfold::strategy::{Ask, ModelCall, ModelRole};
///
/// // The first call fails, the second one answers.
/// let mut waits = Vec::new();
/// let mut answers = |call: &ModelCall| {
///     waits.push(call.after.as_secs());
///     match waits.len() {
///         1 => Err(ModelError::new(ModelErrorKind::Retryable { after: None }, "overloaded")),
///         _ => Ok(Answer::new(Message::assistant("A parser."), StopReason::EndTurn, None)),
///     }
/// };
/// let mut ask = Ask::new(&mut answers);
/// let request = Request::new(vec![Message::user("What is it about?")]);
/// let answer = block_on(ask.question(ModelRole::Fast, request))?;
/// assert_eq!((answer.text().as_str(), ask.calls()), ("A parser.", 2));
/// drop(ask);
/// assert_eq!(waits, [0, 1]);
/// # Ok::<(), threadfold::strategy::StrategyError>(())
/// ```
pub struct Ask<'a> {
    answers: &'a mut (dyn Answers + 'a),
    usage: Usage,
    calls: usize,
    /// All calls, those without a model included.
    tried: usize,
    /// What the models quoted. A quote is checked by itself, so it counts whatever becomes of the
    /// summary beside it.
    quotes: Quotes,
    /// Tells whoever runs the strategy that the limit of calls is reached.
    over: Option<oneshot::Sender<()>>,
}

/// When a call that failed is made again: the limits for a question, or for the pieces of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retries {
    /// Maximum number of retries after retryable failures.
    pub(super) most: usize,
    /// Maximum wait before one retry. A call that would have to wait longer is not retried.
    pub(super) max_wait: Duration,
    /// The same for all waits together.
    pub(super) max_waits: Duration,
    /// The wait before the first retry if the provider states none, doubled for each further one;
    /// `None` for [`WAITS`].
    pub(super) first_wait: Option<Duration>,
    /// Whether a model that calls a tool is asked once more with tool calls forbidden. The first
    /// request allows them, because Anthropic's prompt cache is keyed by `tool_choice`.
    pub(super) repeats_without_calls: bool,
}

impl Default for Retries {
    /// Four retries, at most two minutes of waits, and one more call without tool calls.
    fn default() -> Self {
        let max_wait = Duration::from_secs(120);
        Self {
            most: 4,
            max_wait,
            max_waits: max_wait,
            first_wait: None,
            repeats_without_calls: true,
        }
    }
}

/// The retries that were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tried {
    pub(super) retries: usize,
    pub(super) waited: Duration,
}

/// The waits before each retry, in seconds. Later retries wait as long as the fourth.
const WAITS: [u64; 4] = [1, 5, 10, 30];

impl Retries {
    /// The limits of a job that reads a thread in many calls: nobody waits for each of them, so one
    /// wait may take ten minutes.
    pub(super) const fn of_job(most: usize) -> Self {
        let (max_wait, max_waits) = (Duration::from_secs(600), Duration::MAX);
        Self { most, max_wait, max_waits, first_wait: None, repeats_without_calls: false }
    }

    /// Returns the wait before the call is made again after this failure, and counts a retry; `None`
    /// if it is not made again.
    pub(super) fn wait(&self, tried: &mut Tried, error: &ModelError) -> Option<Duration> {
        let ModelErrorKind::Retryable { after } = error.kind else { return None };
        let wait = after.unwrap_or_else(|| self.backoff(tried.retries));
        let waited = tried.waited.saturating_add(wait);
        let is_within = wait <= self.max_wait && waited <= self.max_waits;
        if tried.retries >= self.most || !is_within {
            return None;
        }
        *tried = Tried { retries: tried.retries + 1, waited };
        Some(wait)
    }

    /// The wait before the next retry, after this many retries.
    fn backoff(&self, retries: usize) -> Duration {
        let [.., longest] = WAITS;
        let Some(first) = self.first_wait else {
            return Duration::from_secs(WAITS.get(retries).copied().unwrap_or(longest));
        };
        let doubled = u32::try_from(retries).ok().and_then(|retries| 2_u32.checked_pow(retries));
        first.saturating_mul(doubled.unwrap_or(u32::MAX)).min(self.max_wait)
    }
}

impl<'a> Ask<'a> {
    /// Returns an ask whose calls these answer.
    pub fn new(answers: &'a mut (dyn Answers + 'a)) -> Self {
        let (usage, quotes) = (Usage::default(), Quotes::default());
        Self { answers, usage, calls: 0, tried: 0, quotes, over: None }
    }

    /// The tokens of all calls so far, as the models reported them.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The number of calls so far. Without a model for its role, a call does not count.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Makes one call, without retries. A panic in the model counts as a failed call.
    ///
    /// A request to the [fast model](ModelRole::Fast) is sent without reasoning: that model did not
    /// make it, and it stands in another prompt than it was made for. Providers refuse it there, drop
    /// it, bill it, or take a request to sum it up for an attempt to extract it.
    ///
    /// # Errors
    ///
    /// The [`ModelError`] of the call.
    pub fn once<'s>(
        &'s mut self,
        call: &'s ModelCall,
    ) -> impl Future<Output = Result<Answer, ModelError>> + Send + use<'s, 'a> {
        let Self { answers, usage, calls, tried, over, .. } = self;
        if *tried >= MAX_CALLS {
            // A strategy that never ends would not end for an error either: whoever runs it ends it.
            let _ = over.take().map(|over| over.send(()));
            return Either::Left(future::pending());
        }
        *tried += 1;
        let answer = match call.without_reasoning() {
            None => answers.answer(call),
            Some(call) => async move { answers.answer(&call).await }.boxed(),
        };
        let answer = AssertUnwindSafe(answer).catch_unwind();
        Either::Right(answer.map(|answer| {
            let answer = answer.unwrap_or_else(|payload| {
                let message = format!("the model panicked: {}", panic_message(payload.as_ref()));
                Err(ModelError::new(ModelErrorKind::Other, message))
            });
            let (spent, called) = match &answer {
                Ok(answer) => (answer.usage.unwrap_or_default(), true),
                Err(error) => (error.usage, error.kind != ModelErrorKind::NoModel),
            };
            *usage += spent;
            *calls += usize::from(called);
            answer
        }))
    }

    /// Asks one question and returns the answer.
    ///
    /// After a retryable failure the call is retried, up to four times and within two minutes in
    /// all. The wait is what the provider asks for, or else 1, 5, 10 and then 30 seconds. A model
    /// that calls a tool is asked once more with tool calls forbidden.
    ///
    /// # Errors
    ///
    /// - [`StrategyError::NeedsModel`] if no model is configured for this role.
    /// - [`StrategyError::NotNative`] if the provider offers no compaction of its own.
    /// - [`StrategyError::Model`] with the last failure.
    pub async fn question(&mut self, model: ModelRole, request: Request) -> Result<Answer> {
        self.question_with(model, request, Retries::default(), |_| None).await
    }

    /// Same as [`question`](Self::question), with this limit on the total wait before retries. A call
    /// that would have to wait longer is not retried.
    ///
    /// # Errors
    ///
    /// As [`question`](Self::question).
    pub async fn question_within(
        &mut self,
        max_wait: Duration,
        model: ModelRole,
        request: Request,
    ) -> Result<Answer> {
        let retries = Retries { max_wait, max_waits: max_wait, ..Retries::default() };
        self.question_with(model, request, retries, |_| None).await
    }

    /// Same as [`question`](Self::question) with these limits. If the provider refuses the request as
    /// too long, `smaller` may return another request, which is tried once.
    pub(super) fn question_with(
        &mut self,
        model: ModelRole,
        request: Request,
        retries: Retries,
        smaller: impl FnOnce(&ModelError) -> Option<Request> + Send,
    ) -> impl Future<Output = Result<Answer>> + Send {
        self.call_with(ModelCall::new(model, request), retries, smaller)
    }

    /// Same as [`question_with`](Self::question_with), for a call.
    pub(super) async fn call_with(
        &mut self,
        mut call: ModelCall,
        mut retries: Retries,
        smaller: impl FnOnce(&ModelError) -> Option<Request> + Send,
    ) -> Result<Answer> {
        let mut smaller = Some(smaller);
        let mut tried = Tried::default();
        loop {
            let error = match self.once(&call).await {
                Ok(answer) => {
                    let calls_tool = answer.message.tool_uses().next().is_some();
                    let has_tools = !call.request.tools.is_empty();
                    if !calls_tool || !has_tools || !retries.repeats_without_calls {
                        return Ok(answer);
                    }
                    retries.repeats_without_calls = false;
                    call.request.tool_choice = Some(ToolChoice::None);
                    call.after = Duration::ZERO;
                    continue;
                }
                Err(error) => error,
            };
            if let Some(after) = retries.wait(&mut tried, &error) {
                call.after = after;
                continue;
            }
            if error.is_overflow()
                && let Some(smaller) = smaller.take()
                && let Some(request) = smaller(&error)
            {
                (call.request, call.after) = (request, Duration::ZERO);
                continue;
            }
            let is_absent =
                call.model == ModelRole::Native && error.kind == ModelErrorKind::NoModel;
            return Err(match is_absent {
                true => StrategyError::NotNative,
                false => StrategyError::from_model(error),
            });
        }
    }

    /// Returns an ask with the same models for a part of the work, whose cost is counted apart until
    /// it is [added](Self::add), and what becomes ready when it reaches the limit of calls.
    pub(super) fn nested(&mut self) -> (Ask<'_>, oneshot::Receiver<()>) {
        let (over, is_over) = oneshot::channel();
        let own = Ask { tried: self.tried, over: Some(over), ..Ask::new(&mut *self.answers) };
        (own, is_over)
    }

    /// Adds the calls of a part of the work.
    pub(super) fn add(&mut self, (usage, calls, tried, quotes): (Usage, usize, usize, Quotes)) {
        self.usage += usage;
        (self.calls, self.tried) = (self.calls.saturating_add(calls), tried);
        self.quotes.extend(quotes);
    }

    /// The cost so far and what was quoted, for [`add`](Self::add).
    pub(super) fn spent(self) -> (Usage, usize, usize, Quotes) {
        (self.usage, self.calls, self.tried, self.quotes)
    }

    /// Notes what a model quoted.
    pub(super) fn quoted(&mut self, quotes: Quotes) {
        self.quotes.extend(quotes);
    }

    /// What the models quoted so far.
    pub(super) fn quotes(&self) -> &Quotes {
        &self.quotes
    }
}

impl fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { usage, calls, .. } = self;
        f.debug_struct("Ask").field("usage", usage).field("calls", calls).finish_non_exhaustive()
    }
}

/// The message of a panic, if it has one.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> Text {
    let literal = payload.downcast_ref::<&str>().copied();
    let message = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("no message").into()
}

/// Returns the summary in an answer: its text blocks, joined by blank lines.
///
/// ```
/// use threadfold::{Message, message::{StopReason, Answer}, strategy::summary_of};
///
/// let cut = Answer::new(Message::assistant("They read"), StopReason::MaxTokens, None);
/// let error = summary_of(&cut).unwrap_err();
/// assert_eq!(error.to_string(), "the summary is incomplete: the model stopped with max_tokens");
/// ```
///
/// # Errors
///
/// [`StrategyError::CalledTool`], [`StrategyError::Incomplete`] if the answer was cut off or
/// refused, [`StrategyError::BlankSummary`].
pub fn summary_of(answer: &Answer) -> Result<Text> {
    let stop_reason = answer.stop_reason.clone();
    if let Some(call) = answer.message.tool_uses().next() {
        return Err(StrategyError::CalledTool { tool: call.name.clone() });
    }
    if !is_complete(&stop_reason) {
        return Err(StrategyError::Incomplete { stop_reason });
    }
    let texts = answer.message.texts().map(|text| text.trim());
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
pub(super) fn quoted_summary_of(answer: &Answer) -> Result<(Text, Quotes)> {
    let text = summary_of(answer)?;
    let (summary, quotes) = Quotes::cut(&text);
    if summary.is_empty() {
        return Err(StrategyError::BlankSummary { stop_reason: answer.stop_reason.clone() });
    }
    // A text without lists stays as the model wrote it.
    Ok((if quotes.is_empty() { text } else { summary.into() }, quotes))
}

/// Whether an answer that stopped for this reason is complete text.
pub(super) fn is_complete(reason: &StopReason) -> bool {
    is_meant(reason) && !matches!(reason, StopReason::ToolUse | StopReason::PauseTurn)
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::message::{ContentBlock, Json, Message, Role, Thinking, ToolUse};

    #[test]
    fn an_answer_that_is_no_summary_is_named() {
        let answer = |message, stop| summary_of(&Answer::new(message, stop, None)).unwrap_err();
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

    /// The waits before the calls of a question whose model is busy every time, in seconds.
    fn waits(retries: Retries, after: Option<Duration>) -> Vec<u64> {
        let mut waits = Vec::new();
        let mut busy = |call: &ModelCall| {
            waits.push(call.after.as_secs());
            Err(ModelError::new(ModelErrorKind::Retryable { after }, "busy"))
        };
        let mut ask = Ask::new(&mut busy);
        let question =
            ask.question_with(ModelRole::Fast, Request::default(), retries, |_: &ModelError| None);
        assert!(matches!(block_on(question), Err(StrategyError::Model(_))));
        drop(ask);
        waits
    }

    #[test]
    fn a_call_that_may_succeed_later_is_repeated_within_its_limits() {
        let retries = Retries::default();
        assert_eq!(waits(retries, None), [0, 1, 5, 10, 30]);
        assert_eq!(waits(retries, Some(Duration::from_secs(50))), [0, 50, 50]);
        assert_eq!(waits(retries, Some(Duration::from_secs(121))), [0]);
        assert_eq!(waits(Retries { most: 0, ..retries }, None), [0]);
        let hours = Retries::of_job(99);
        assert_eq!(waits(hours, None).len(), 100);
        assert_eq!(waits(hours, Some(Duration::from_secs(601))), [0]);
        let doubled = Retries { first_wait: Some(Duration::from_secs(200)), ..hours };
        assert_eq!(waits(doubled, None)[..5], [0, 200, 400, 600, 600]);
        let mut calls = 0;
        let mut forbids = |_: &ModelCall| {
            calls += 1;
            Err(ModelError::new(ModelErrorKind::Authentication, "no"))
        };
        let question =
            block_on(Ask::new(&mut forbids).question(ModelRole::Conversation, Request::default()));
        assert!(matches!(question, Err(StrategyError::Model(_))));
        assert_eq!(calls, 1);
    }

    #[test]
    fn only_the_prompt_that_reasoning_was_made_for_is_sent_with_it() {
        let thought = || Thinking::new("Hm.", Some("sig".into())).into();
        let answer = Message::new(Role::Assistant, vec![thought(), ContentBlock::text("Yes.")]);
        let only = Message::new(Role::Assistant, vec![thought()]);
        let thread = vec![Message::user("Is it?"), answer, only, Message::user("Sum it up.")];
        let sent = |model| {
            let mut sent = Vec::new();
            let mut answers = |call: &ModelCall| {
                sent = call.request.messages.to_vec();
                Ok(Answer::new(Message::assistant("It is."), StopReason::EndTurn, None))
            };
            let mut ask = Ask::new(&mut answers);
            let asked = ask.question(model, Request::new(thread.clone()));
            assert!(block_on(asked).is_ok());
            sent
        };
        let bare = [Message::user("Is it?"), Message::assistant("Yes."), thread[3].clone()];
        assert_eq!(sent(ModelRole::Fast), bare);
        assert_eq!(sent(ModelRole::Conversation), thread);
        assert_eq!(sent(ModelRole::Native), thread);
    }

    #[test]
    fn a_panic_in_a_model_is_a_failed_call() {
        let mut panics = |_: &ModelCall| panic!("as asked");
        let mut ask = Ask::new(&mut panics);
        let error = block_on(ask.question(ModelRole::Fast, Request::default())).unwrap_err();
        assert!(error.to_string().ends_with("the model panicked: as asked"), "{error}");
        assert_eq!(ask.calls(), 1);
    }
}
