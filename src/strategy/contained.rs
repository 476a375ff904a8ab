//! A strategy whose panics are failures.
//!
//! Strategies of hosts run in the middle of a session, which must go on whatever they do. An attempt
//! that panicked is dropped and not asked again.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use super::{
    attempt::Ended,
    brief::Brief,
    contract::{Attempt, CompactionStrategy, ModelRole, Progress, Step, StrategyError},
    snapshot::Snapshot,
};
use crate::message::{ModelError, Request, Text, Turn};

/// Begins an attempt of a strategy. A panic in it, now or later, ends it with
/// [`StrategyError::Panicked`].
pub(super) fn begin(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
) -> Box<dyn Attempt> {
    let name = strategy.name().into();
    Box::new(Contained::after(name, || strategy.begin(thread, brief)))
}

#[derive(Debug)]
struct Contained {
    strategy: Text,
    /// `None` once it panicked.
    attempt: Option<Box<dyn Attempt>>,
    said: Said,
}

/// What an attempt said last, so that its own code is called nowhere else.
#[derive(Debug)]
enum Said {
    Call { model: ModelRole, request: Request, progress: Progress, after: Duration },
    Over(Ended),
}

impl Attempt for Contained {
    fn step(&self) -> Step<'_> {
        match &self.said {
            Said::Call { model, request, progress, after } => {
                Step::Call { model: *model, request, progress: *progress, after: *after }
            }
            Said::Over(ended) => ended.step(),
        }
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        let Some(mut attempt) = self.attempt.take() else { return };
        *self = Self::after(self.strategy.clone(), || {
            attempt.handle(answer);
            attempt
        });
    }
}

impl Contained {
    /// Does this, and asks the attempt that comes of it for its step.
    fn after(strategy: Text, work: impl FnOnce() -> Box<dyn Attempt>) -> Self {
        let work = || {
            let attempt = work();
            (Said::of(attempt.step()), attempt)
        };
        // The panic may leave only the attempt half done, which is dropped: snapshot and brief cannot
        // be changed.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok((said, attempt)) => Self { strategy, attempt: Some(attempt), said },
            Err(payload) => {
                let message = message(payload.as_ref());
                let error = StrategyError::Panicked { strategy: strategy.clone(), message };
                Self { strategy, attempt: None, said: Said::Over(Ended(Err(error))) }
            }
        }
    }
}

impl Said {
    fn of(step: Step<'_>) -> Self {
        match step {
            Step::Call { model, request, progress, after } => {
                Self::Call { model, request: request.clone(), progress, after }
            }
            Step::Proposed(proposal) => Self::Over(Ended(Ok(proposal.clone()))),
            Step::Failed(error) => Self::Over(Ended(Err(error.clone()))),
        }
    }
}

fn message(payload: &(dyn Any + Send)) -> Text {
    let literal = payload.downcast_ref::<&str>().copied();
    let message = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("no message").into()
}
