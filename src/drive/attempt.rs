//! Running one attempt: ask, pass on what arrives, sum what was spent.

use std::time::Duration;

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
};

use crate::{
    compaction::{DriveError, Driven},
    message::{Delta, ModelError, ModelErrorKind, Request, Turn, Usage},
    model::{self, Model, Sleeper, StdSleeper},
    strategy::{
        Attempt, Brief, CompactionRun, CompactionStrategy, ModelRole, Progress, RunStep, Snapshot,
        Step, StrategyError,
    },
};

/// No attempt asks so often. A strategy that does is broken, and is stopped.
const MAX_CALLS: usize = 100_000;

/// The models that a compaction may ask, and how to wait between tries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Models<'a> {
    /// The one that the conversation is held with.
    pub conversation: Option<&'a dyn Model>,
    /// A fast and cheap one. Where there is none, the conversation's own is asked.
    pub fast: Option<&'a dyn Model>,
    /// What waits before a call that is tried again; [`StdSleeper`] where there is none.
    pub sleeper: Option<&'a dyn Sleeper>,
}

/// What happens while a strategy is driven.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DriveEvent<'a> {
    /// A model is asked, or will be after a wait.
    Called {
        /// Which one.
        model: ModelRole,
        /// How far the attempt is.
        progress: Progress,
        /// How long is waited before: nothing, but for a call that is tried again.
        after: Duration,
    },
    /// A piece of the answer arrived.
    Delta(&'a Delta),
}

/// Runs a strategy on a thread and returns its proposal, once it passed the acceptance check.
///
/// The thread is not changed; apply the plan of the proposal to do so. The future may be dropped
/// at any point.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{Models, propose}};
/// use threadfold::strategy::{Brief, KeepRecent, Snapshot};
///
/// let thread = Snapshot::new(vec![Message::user("hi"), Message::assistant("hello"), Message::user("bye")]);
/// let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let brief = Brief::default();
/// let driven = block_on(propose(&strategy, &thread, &brief, Models::default(), &mut |_| {}))?;
/// assert_eq!(driven.proposal.plan.messages_after(), 1);
/// # Ok::<(), threadfold::drive::DriveError>(())
/// ```
///
/// # Errors
///
/// [`DriveError`], with what was spent: the strategy gave up, or its proposal was rejected.
pub async fn propose(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    models: Models<'_>,
    observe: &mut (dyn FnMut(DriveEvent<'_>) + Send),
) -> Result<Driven, DriveError> {
    let mut attempt = strategy.begin(thread, brief);
    drive(attempt.as_mut(), models, observe).await?.accepted(thread, brief)
}

/// Runs one attempt to its end. The future may be dropped at any point; the attempt can be driven
/// on from where it was, and asks the same call again.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{Models, drive}};
/// use threadfold::strategy::{Brief, CompactionStrategy, KeepRecent, Snapshot};
///
/// let thread = Snapshot::new(vec![Message::user("hi"), Message::assistant("hello"), Message::user("bye")]);
/// let keep = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let mut attempt = keep.begin(&thread, &Brief::default());
/// let driven = block_on(drive(attempt.as_mut(), Models::default(), &mut |_| {}))?;
/// // Judged is not yet carried out.
/// let driven = driven.accepted(&thread, &Brief::default())?;
/// assert_eq!((driven.calls, driven.proposal.plan.messages_after()), (0, 1));
/// # Ok::<(), threadfold::drive::DriveError>(())
/// ```
///
/// # Errors
///
/// [`DriveError`], with what was spent, if the attempt gave up.
pub async fn drive(
    attempt: &mut dyn Attempt,
    models: Models<'_>,
    observe: &mut (dyn FnMut(DriveEvent<'_>) + Send),
) -> Result<Driven, DriveError> {
    drive_with(attempt, models, &mut Observer(observe)).await
}

/// As [`drive`], for a listener that the attempt waits for.
pub(crate) async fn drive_with(
    attempt: &mut dyn Attempt,
    models: Models<'_>,
    listener: &mut dyn Listener,
) -> Result<Driven, DriveError> {
    let (mut usage, mut calls, mut steps) = (Usage::default(), 0, 0);
    loop {
        let (model, request, after) = match attempt.step() {
            Step::Proposed(proposal) => {
                return Ok(Driven { proposal: proposal.clone(), usage, calls });
            }
            Step::Failed(error) => return Err(DriveError { error: error.clone(), usage, calls }),
            // Steps and not calls: without a model nothing is called, and nothing awaited.
            Step::Call { .. } if steps == MAX_CALLS => {
                let error = StrategyError::TooManyCalls { calls };
                return Err(DriveError { error, usage, calls });
            }
            Step::Call { model, request, progress, after } => {
                listener.on_event(DriveEvent::Called { model, progress, after }).await;
                (model, request.clone(), after)
            }
        };
        let answer = models.answer(model, request, after, listener).await;
        steps += 1;
        calls += usize::from(models.get(model).is_some());
        usage += match &answer {
            Ok(turn) => turn.usage.unwrap_or_default(),
            Err(error) => error.usage,
        };
        attempt.handle(answer);
    }
}

/// Hears what happens while an attempt is driven. The attempt waits until it has.
pub(crate) trait Listener: Send {
    fn on_event(&mut self, event: DriveEvent<'_>) -> BoxFuture<'_, ()>;
}

/// A listener that keeps nobody waiting.
struct Observer<'o>(&'o mut (dyn FnMut(DriveEvent<'_>) + Send));

impl Listener for Observer<'_> {
    fn on_event(&mut self, event: DriveEvent<'_>) -> BoxFuture<'_, ()> {
        (self.0)(event);
        future::ready(()).boxed()
    }
}

/// Takes a run by one step: waits as it asks, calls the fast model, and hands over what came of it.
/// Returns whether the run goes on. Between two steps a host may store it.
///
/// The future may be dropped at any point; the run asks the same again then.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{Models, advance}, testing::ExtractiveModel};
/// use threadfold::strategy::{CompactionRun, RunOptions, RunStep};
///
/// let thread = [Message::user("Fix src/parser.rs."), Message::assistant("src/parser.rs is fixed.")];
/// let mut run = CompactionRun::new(&thread, None, RunOptions::default())?;
/// while block_on(advance(&mut run, Models::one(&ExtractiveModel), &mut |_| {})) {
///     // The run is a value: store it here.
/// }
/// assert!(matches!(run.step(), RunStep::Done { .. }));
/// # Ok::<(), threadfold::strategy::RunError>(())
/// ```
pub async fn advance(
    run: &mut CompactionRun,
    models: Models<'_>,
    observe: &mut (dyn FnMut(DriveEvent<'_>) + Send),
) -> bool {
    let RunStep::Call { request, chunk, total, after, .. } = run.step() else { return false };
    let request = request.clone();
    let progress = Progress { done: chunk, total };
    observe(DriveEvent::Called { model: ModelRole::Fast, progress, after });
    let answer = models.answer(ModelRole::Fast, request, after, &mut Observer(observe)).await;
    // The run has just asked, so it takes the answer.
    let handled = match answer {
        Ok(turn) => run.handle_turn(turn),
        Err(error) => run.handle_error(error),
    };
    handled.is_ok() && matches!(run.step(), RunStep::Call { .. })
}

async fn ask(
    model: &dyn Model,
    request: Request,
    listener: &mut dyn Listener,
) -> Result<Turn, ModelError> {
    let mut deltas = model.stream(request);
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        listener.on_event(DriveEvent::Delta(&delta)).await;
        if let Delta::Turn { turn } = delta {
            return Ok(turn);
        }
    }
    Err(model::cut_short())
}

impl<'a> Models<'a> {
    /// Returns the models of a host that has only one.
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

    /// Waits, asks, and gives the answer; an error where no model is configured for the role.
    async fn answer(
        &self,
        role: ModelRole,
        request: Request,
        after: Duration,
        listener: &mut dyn Listener,
    ) -> Result<Turn, ModelError> {
        let model = self.get(role).ok_or_else(|| ModelError::new(ModelErrorKind::NoModel, ""))?;
        if !after.is_zero() {
            self.sleeper.unwrap_or(&StdSleeper).sleep(after).await;
        }
        ask(model, request, listener).await
    }

    fn get(&self, role: ModelRole) -> Option<&'a dyn Model> {
        match role {
            ModelRole::Conversation => self.conversation,
            ModelRole::Fast => self.fast.or(self.conversation),
        }
    }
}
