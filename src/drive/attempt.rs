//! Runs one attempt: makes its model calls, reports events, and sums token usage.

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
};

use crate::{
    compaction::{CompactionError, Result},
    message::{
        Delta, ModelError, ModelErrorKind, Redactor, Request, Turn, Usage, redact::Redaction,
    },
    model::{Clock, Model, StdClock},
    strategy::{
        Attempt, Brief, CompactionRun, CompactionStrategy, ModelRole, Proposal, RunStep, Snapshot,
        Step, StrategyError, attempt::record_call, begin,
    },
};

/// Upper limit for the steps of an attempt, for strategies that never end.
const MAX_STEPS: usize = 100_000;

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
/// dropped at any point. `observe` gets each [`Step::Call`], first with `None` and then with each
/// delta of the answer.
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
/// let driven = block_on(propose(&strategy, &thread, &brief, Models::default(), &mut |_, _| {}))?;
/// assert_eq!(driven.plan.messages_after(), 1);
/// # Ok::<(), threadfold::drive::CompactionError>(())
/// ```
///
/// # Errors
///
/// [`CompactionError`], with the token usage: the strategy gave up, or its proposal was rejected.
pub async fn propose(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    models: Models<'_>,
    observe: &mut (dyn FnMut(Step<'_>, Option<&Delta>) + Send),
) -> Result<Proposal> {
    let mut attempt = begin(strategy, thread, brief);
    drive(attempt.as_mut(), models, observe).await?.accepted(thread, brief)
}

/// Runs one attempt to its end and returns its unchecked proposal. The future may be dropped at any
/// point; driving the attempt again repeats the interrupted call.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{Models, drive}};
/// use threadfold::strategy::{Brief, CompactionStrategy, KeepRecent, Snapshot};
///
/// let thread = vec![Message::user("hi"), Message::assistant("hello"), Message::user("bye")];
/// let thread = Snapshot::new(thread);
/// let keep = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let mut attempt = keep.begin(&thread, &Brief::default());
/// let driven = block_on(drive(attempt.as_mut(), Models::default(), &mut |_, _| {}))?;
/// // Check the proposal. The thread is still unchanged.
/// let driven = driven.accepted(&thread, &Brief::default())?;
/// assert_eq!((driven.calls, driven.plan.messages_after()), (0, 1));
/// # Ok::<(), threadfold::drive::CompactionError>(())
/// ```
///
/// # Errors
///
/// [`CompactionError`], with the token usage, if the attempt gave up.
pub async fn drive(
    attempt: &mut dyn Attempt,
    models: Models<'_>,
    mut observe: &mut (dyn FnMut(Step<'_>, Option<&Delta>) + Send),
) -> Result<Proposal> {
    drive_with(attempt, models, &mut observe).await
}

/// Like [`drive`], for an async listener.
pub(crate) async fn drive_with(
    attempt: &mut dyn Attempt,
    models: Models<'_>,
    listener: &mut dyn Listener,
) -> Result<Proposal> {
    let (mut usage, mut calls, mut steps) = (Usage::default(), 0, 0);
    loop {
        let answer = match attempt.step() {
            Step::Proposed(proposal) => {
                return Ok(Proposal { usage, calls, ..proposal.clone() });
            }
            Step::Failed(error) => {
                return Err(CompactionError::new(error.clone()).after(usage, calls));
            }
            // Count steps and not calls, because without a model there are no calls.
            Step::Call { .. } if steps == MAX_STEPS => {
                let error = StrategyError::TooManyCalls { calls };
                return Err(CompactionError::new(error).after(usage, calls));
            }
            call @ Step::Call { .. } => models.answer(call, listener).await,
        };
        steps += 1;
        record_call(&answer, &mut usage, &mut calls);
        attempt.handle(answer);
    }
}

/// Receives the events of an attempt. The attempt continues when the future is ready.
pub(crate) trait Listener: Send {
    /// `call` is the step that requested the model call. `delta` is a piece of the answer, or
    /// `None` before the call.
    fn on_event(&mut self, call: Step<'_>, delta: Option<&Delta>) -> BoxFuture<'_, ()>;
}

impl<F: FnMut(Step<'_>, Option<&Delta>) + Send> Listener for F {
    fn on_event(&mut self, call: Step<'_>, delta: Option<&Delta>) -> BoxFuture<'_, ()> {
        self(call, delta);
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
    mut observe: &mut (dyn FnMut(Step<'_>, Option<&Delta>) + Send),
) -> bool {
    let RunStep::Call { request, chunk, total, after, .. } = run.step() else { return false };
    let call = Step::Call { model: ModelRole::Fast, request, done: chunk, total, after };
    let answer = models.answer(call, &mut observe).await;
    // The run requested this call, so it accepts the answer.
    let handled = match answer {
        Ok(turn) => run.handle_turn(turn),
        Err(error) => run.handle_error(error),
    };
    handled.is_ok() && matches!(run.step(), RunStep::Call { .. })
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

    /// Waits and calls the model. Returns [`ModelErrorKind::NoModel`] if there is no model for the
    /// role, or if the provider does not offer its own compaction.
    async fn answer(
        &self,
        call: Step<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Turn, ModelError> {
        let Step::Call { model: role, request, done, total, after } = call else {
            return Err(no_model());
        };
        let request = self.redacted(request);
        let call = Step::Call { model: role, request: &request, done, total, after };
        listener.on_event(call, None).await;
        let asked = self.get(role).ok_or_else(no_model)?;
        if !after.is_zero() {
            self.clock.unwrap_or(&StdClock).sleep(after).await;
        }
        if role == ModelRole::Native {
            let turn = asked.compact_natively(request.clone()).await?.ok_or_else(no_model)?;
            return Ok(self.redacted_turn(turn));
        }
        let mut deltas = asked.stream(request.clone());
        while let Some(delta) = deltas.next().await {
            let delta = match delta? {
                Delta::Turn { turn } => Delta::Turn { turn: self.redacted_turn(turn) },
                _ if self.redactor.is_some() => continue,
                piece @ (Delta::Text { .. }
                | Delta::Thinking { .. }
                | Delta::ToolUse { .. }
                | Delta::ToolInput { .. }) => piece,
            };
            listener.on_event(call, Some(&delta)).await;
            if let Delta::Turn { turn } = delta {
                return Ok(turn);
            }
        }
        Err(ModelError::cut_short())
    }

    fn redacted(&self, request: &Request) -> Request {
        match self.redactor {
            Some(redactor) => Redaction::of(redactor).request(request),
            None => request.clone(),
        }
    }

    fn redacted_turn(&self, turn: Turn) -> Turn {
        match self.redactor {
            Some(redactor) => Redaction::of(redactor).turn(turn),
            None => turn,
        }
    }

    fn get(&self, role: ModelRole) -> Option<&'a dyn Model> {
        match role {
            ModelRole::Conversation | ModelRole::Native => self.conversation,
            ModelRole::Fast => self.fast.or(self.conversation),
        }
    }
}

fn no_model() -> ModelError {
    ModelError::new(ModelErrorKind::NoModel, "")
}
