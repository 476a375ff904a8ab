//! The driver: one thin loop that runs every strategy.
//!
//! It asks the models what an attempt wants asked, passes on what arrives meanwhile, and sums what
//! was spent. It changes nothing: a proposal is carried out by whoever asked for it, and dropping
//! the future cancels without a trace.

use std::time::Duration;

use futures::StreamExt;

use crate::{
    message::{Delta, ModelError, ModelErrorKind, Request, Turn, Usage},
    model::{self, Model, Sleeper, StdSleeper},
    strategy::{
        Attempt, Brief, CompactionStrategy, ModelRole, Progress, Proposal, Snapshot, Step,
        StrategyError,
    },
};

/// No attempt asks so often. A strategy that does is broken, and is stopped.
const MOST_CALLS: usize = 100_000;

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

/// What driving gave: a proposal, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Driven {
    /// The proposal.
    pub proposal: Proposal,
    /// What all calls cost together, as far as the models said.
    pub usage: Usage,
    /// How many calls there were.
    pub calls: usize,
}

/// Why driving gave nothing, and what it cost all the same.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct DriveError {
    /// Why.
    #[source]
    pub error: StrategyError,
    /// What all calls cost together, as far as the models said.
    pub usage: Usage,
    /// How many calls there were.
    pub calls: usize,
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
    let driven = drive(attempt.as_mut(), models, observe).await?;
    match thread.accept(&driven.proposal.plan, brief) {
        Ok(_) => Ok(driven),
        Err(rejection) => {
            Err(DriveError { error: rejection.into(), usage: driven.usage, calls: driven.calls })
        }
    }
}

/// Runs one attempt to its end. The future may be dropped at any point; the attempt can be driven
/// on from where it was, and asks the same call again.
///
/// # Errors
///
/// [`DriveError`], with what was spent, if the attempt gave up.
pub async fn drive(
    attempt: &mut dyn Attempt,
    models: Models<'_>,
    observe: &mut (dyn FnMut(DriveEvent<'_>) + Send),
) -> Result<Driven, DriveError> {
    let (mut usage, mut calls) = (Usage::default(), 0);
    loop {
        let (model, request, after) = match attempt.step() {
            Step::Proposed(proposal) => {
                return Ok(Driven { proposal: proposal.clone(), usage, calls });
            }
            Step::Failed(error) => return Err(DriveError { error: error.clone(), usage, calls }),
            Step::Call { .. } if calls == MOST_CALLS => {
                return Err(DriveError {
                    error: StrategyError::TooManyCalls { calls },
                    usage,
                    calls,
                });
            }
            Step::Call { model, request, progress, after } => {
                observe(DriveEvent::Called { model, progress, after });
                (models.get(model), request.clone(), after)
            }
        };
        if model.is_some() && !after.is_zero() {
            models.sleeper.unwrap_or(&StdSleeper).sleep(after).await;
        }
        let answer = match model {
            Some(model) => ask(model, request, observe).await,
            None => Err(ModelError::new(ModelErrorKind::NoModel, "")),
        };
        calls += usize::from(model.is_some());
        usage += match &answer {
            Ok(turn) => turn.usage.unwrap_or_default(),
            Err(error) => error.usage,
        };
        attempt.handle(answer);
    }
}

async fn ask(
    model: &dyn Model,
    request: Request,
    observe: &mut (dyn FnMut(DriveEvent<'_>) + Send),
) -> Result<Turn, ModelError> {
    let mut deltas = model.stream(request);
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        observe(DriveEvent::Delta(&delta));
        if let Delta::Turn { turn } = delta {
            return Ok(turn);
        }
    }
    Err(model::cut_short())
}

impl<'a> Models<'a> {
    /// Returns the models of a host that has only one.
    #[must_use]
    pub fn one(model: &'a dyn Model) -> Self {
        Self { conversation: Some(model), ..Self::default() }
    }

    fn get(&self, role: ModelRole) -> Option<&'a dyn Model> {
        match role {
            ModelRole::Conversation => self.conversation,
            ModelRole::Fast => self.fast.or(self.conversation),
        }
    }
}
