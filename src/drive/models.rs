//! Runs a strategy with the models of a host: waits, reports events, redacts.

use std::panic::{AssertUnwindSafe, catch_unwind};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
};

use super::span::CompactionSpan;
use crate::{
    compaction::Result,
    message::{Answer, Delta, ModelError, ModelErrorKind, Redactor, Request, redact::Redaction},
    model::{Clock, Model, StdClock},
    strategy::{
        self, Answers, Brief, CompactionRun, CompactionStrategy, ModelCall, ModelRole, Proposal,
        RunStep, Snapshot, Terms, View,
    },
};

/// The models that a compaction may call, and the clock that waits before retries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Models<'a> {
    /// The model of the conversation.
    pub conversation: Option<&'a dyn Model>,
    /// A fast and cheap model; `None` uses the model of the conversation.
    pub fast: Option<&'a dyn Model>,
    /// Waits before retries; `None` uses [`std_clock`](crate::model::std_clock).
    pub clock: Option<&'a dyn Clock>,
    /// Redacts each request as it is sent, and each answer. The answer is then passed on as a
    /// whole, because a secret may be split over two pieces of a stream. `None` redacts nothing;
    /// [`compact`](crate::drive::compact) and sessions take the redactor of the journal.
    pub redactor: Option<&'a dyn Redactor>,
}

/// Runs a strategy on a thread and returns its proposal if it passes the acceptance check.
///
/// The thread is not changed; apply the plan of the proposal to change it. The future may be
/// dropped at any point. `observe` gets each [`ModelCall`], first with `None` and then with each
/// delta of the answer. A panic of `observe` does not affect the compaction.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{Models, propose}};
/// use threadfold::strategy::{Brief, KeepRecent, Snapshot};
///
/// let thread = vec![Message::user("hi"), Message::assistant("hello"), Message::user("bye")];
/// let thread = Snapshot::new(thread);
/// let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let brief = Brief::default();
/// let proposal = block_on(propose(&strategy, &thread, &brief, Models::default(), &mut |_, _| {}))?;
/// assert_eq!(proposal.plan.messages_after(), 1);
/// # Ok::<(), threadfold::drive::CompactionError>(())
/// ```
///
/// # Errors
///
/// [`CompactionError`](super::CompactionError), with the token usage: the strategy gave up, or its
/// proposal was rejected.
pub async fn propose(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    models: Models<'_>,
    mut observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
) -> Result<Proposal> {
    let view = View::new(thread.clone(), brief.clone());
    let mut calls = Calls { models, span: &CompactionSpan::none(), listener: &mut observe };
    propose_with(strategy, &view, &mut calls).await
}

/// Like [`propose`], with answers that the host gives: a durable engine journals each of them, and a
/// run that is repeated after a crash continues where it stopped. [`Answers`] has an example.
///
/// # Errors
///
/// As [`propose`].
pub async fn propose_with(
    strategy: &dyn CompactionStrategy,
    view: &View,
    answers: &mut dyn Answers,
) -> Result<Proposal> {
    Ok(strategy::propose(strategy, view, answers, Terms::default()).await?)
}

/// The calls of a strategy, as the models of a host answer them.
pub(crate) struct Calls<'a> {
    pub(crate) models: Models<'a>,
    /// The span in which the models are asked.
    pub(crate) span: &'a CompactionSpan,
    pub(crate) listener: &'a mut dyn Listener,
}

#[async_trait]
impl Answers for Calls<'_> {
    /// Waits and calls the model. Returns [`ModelErrorKind::NoModel`] if there is no model for the
    /// role, or if the provider does not offer its own compaction.
    async fn answer(&mut self, call: &ModelCall) -> Result<Answer, ModelError> {
        let Self { models, span, listener } = self;
        let call = &ModelCall { request: models.redacted_request(&call.request), ..call.clone() };
        let work = async {
            listener.on_event(call, None).await;
            let asked = models.of_role(call.model).ok_or_else(no_model)?;
            if !call.after.is_zero() {
                models.clock.unwrap_or(&StdClock).sleep(call.after).await;
            }
            if call.model == ModelRole::Native {
                let instructions = call.instructions.clone();
                let answer = asked.compact_natively(call.request.clone(), instructions).await?;
                let answer = models.redacted_answer(answer.ok_or_else(no_model)?);
                let delta = Delta::Answer { answer: answer.clone() };
                listener.on_event(call, Some(&delta)).await;
                return Ok(answer);
            }
            let mut deltas = asked.stream(call.request.clone());
            while let Some(delta) = deltas.next().await {
                let delta = match delta? {
                    Delta::Answer { answer } => {
                        Delta::Answer { answer: models.redacted_answer(answer) }
                    }
                    _ if models.redactor.is_some() => continue,
                    piece @ (Delta::Text { .. }
                    | Delta::Thinking { .. }
                    | Delta::ToolUse { .. }
                    | Delta::ToolInput { .. }) => piece,
                };
                listener.on_event(call, Some(&delta)).await;
                if let Delta::Answer { answer } = delta {
                    return Ok(answer);
                }
            }
            Err(ModelError::cut_short())
        };
        span.run(work).await
    }
}

/// Receives the events of the calls of a strategy, which continues when the future is ready.
pub(crate) trait Listener: Send {
    /// `delta` is a piece of the answer, or `None` before the call.
    fn on_event<'a>(&'a mut self, call: &ModelCall, delta: Option<&Delta>) -> BoxFuture<'a, ()>;
}

impl<F: FnMut(&ModelCall, Option<&Delta>) + Send> Listener for F {
    fn on_event<'a>(&'a mut self, call: &ModelCall, delta: Option<&Delta>) -> BoxFuture<'a, ()> {
        // As with the observers of a session, a panic affects nothing.
        let _ = catch_unwind(AssertUnwindSafe(|| self(call, delta)));
        future::ready(()).boxed()
    }
}

/// Advances a run by one step: waits if requested, calls the fast model, and passes the outcome to
/// the run. Returns whether the run needs another step. The host may store the run between steps.
///
/// The future may be dropped at any point; the next call then repeats the step.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{Models, advance}, testing::ExtractiveModel};
/// use threadfold::strategy::{CompactionRun, Chunked, RunStep};
///
/// let thread = [Message::user("Fix src/parser.rs."), Message::assistant("It is fixed.")];
/// let mut run = CompactionRun::new(&thread, None, Chunked::default())?;
/// while block_on(advance(&mut run, Models::one(&ExtractiveModel), &mut |_, _| {})) {
///     // The run is a value: store it here.
/// }
/// assert!(matches!(run.step(), RunStep::Done { .. }));
/// # Ok::<(), threadfold::strategy::RunError>(())
/// ```
pub async fn advance(
    run: &mut CompactionRun,
    models: Models<'_>,
    mut observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
) -> bool {
    let Some(call) = run.call() else { return false };
    let span = CompactionSpan::none();
    let answer = Calls { models, span: &span, listener: &mut observe }.answer(&call).await;
    // The run requested this call, so it accepts the answer.
    run.handle(answer).is_ok() && matches!(run.step(), RunStep::Call { .. })
}

impl<'a, M: Model> From<&'a M> for Models<'a> {
    /// A host with only one model.
    fn from(model: &'a M) -> Self {
        Self::one(model)
    }
}

impl<'a> Models<'a> {
    /// Returns the models of a host that has only one model.
    ///
    /// ```
    /// use threadfold::{drive::Models, testing::ExtractiveModel};
    ///
    /// let models = Models { fast: Some(&ExtractiveModel), ..Models::one(&ExtractiveModel) };
    /// assert!(models.conversation.is_some());
    /// ```
    #[must_use]
    pub fn one(model: &'a dyn Model) -> Self {
        Self { conversation: Some(model), ..Self::default() }
    }

    fn redacted_request(&self, request: &Request) -> Request {
        match self.redactor {
            Some(redactor) => Redaction::of(redactor).request(request),
            None => request.clone(),
        }
    }

    fn redacted_answer(&self, answer: Answer) -> Answer {
        match self.redactor {
            Some(redactor) => Redaction::of(redactor).answer(answer),
            None => answer,
        }
    }

    fn of_role(&self, role: ModelRole) -> Option<&'a dyn Model> {
        match role {
            ModelRole::Conversation | ModelRole::Native => self.conversation,
            ModelRole::Fast => self.fast.or(self.conversation),
        }
    }
}

fn no_model() -> ModelError {
    ModelError::new(ModelErrorKind::NoModel, "")
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::{Message, strategy::Summarize, testing::ScriptedModel};

    #[test]
    fn an_observer_that_panics_does_not_change_the_compaction() {
        let story = Message::assistant("I read on. ".repeat(40));
        let thread = Snapshot::new(vec![Message::user("Read it."), story, Message::user("And?")]);
        let strategy = Summarize { messages: 1, user_messages: 0, ..Summarize::default() };
        let (model, mut seen) = (ScriptedModel::new(["They read it."]), 0);
        let mut observe = |_: &ModelCall, _: Option<&Delta>| {
            seen += 1;
            // Unwinds without the panic hook of the process, which would print every panic.
            std::panic::resume_unwind(Box::new("the observer panics"));
        };
        let brief = Brief::default();
        let work = propose(&strategy, &thread, &brief, Models::one(&model), &mut observe);
        let proposal = block_on(work).unwrap();
        assert_eq!((proposal.calls, proposal.plan.messages_after()), (1, 2));
        assert!(seen > 1, "{seen}");
    }
}
