//! Attempts that run the attempts of other strategies, and survive a panic in them.
//!
//! A host's strategy must not take the session down with it. So a panic counts as a failure of the
//! attempt, which is dropped and never called again.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{
    attempt::{Current, Ended, record_call},
    brief::Brief,
    contract::{Attempt, CompactionStrategy, Proposal, Result, Step, StrategyError},
    snapshot::Snapshot,
};
use crate::{
    log::Rung,
    message::{ModelError, Text, Turn, Usage},
};

/// An inner attempt, with the cost of its model calls. A panic in it ends it with
/// [`StrategyError::Panicked`].
#[derive(Debug)]
pub(super) struct Guarded {
    strategy: Text,
    /// `None` after a panic.
    attempt: Option<Box<dyn Attempt>>,
    /// The attempt's current step, so that [`Attempt::step`] need not call the strategy.
    step: Current,
    usage: Usage,
    calls: usize,
}

impl Attempt for Guarded {
    fn step(&self) -> Step<'_> {
        self.step.step()
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        let Some(mut attempt) = self.attempt.take() else { return };
        record_call(&answer, &mut self.usage, &mut self.calls);
        self.run(|| {
            attempt.handle(answer);
            attempt
        });
    }
}

/// Decides how to continue after an inner attempt ended.
pub(super) trait Decide: fmt::Debug + Send + 'static {
    /// Returns the next attempt or the end, after this outcome of the strategy in `rung`.
    fn after(&mut self, rung: Rung<StrategyError>, outcome: Result<Proposal>) -> State;
}

/// The state of an attempt that runs other attempts.
#[derive(Debug)]
pub(super) enum State {
    Running(Guarded),
    Ended(Ended),
}

/// An attempt that runs other attempts, one after another.
#[derive(Debug)]
pub(super) struct Outer<D> {
    pub(super) decides: D,
    pub(super) state: State,
}

impl<D: Decide> Outer<D> {
    /// Returns an attempt that begins in this state.
    pub(super) fn new(decides: D, state: State) -> Self {
        let mut outer = Self { decides, state };
        outer.advance();
        outer
    }

    /// Continues until a model must be called or the end is reached.
    fn advance(&mut self) {
        while let State::Running(attempt) = &self.state {
            let outcome = match attempt.step() {
                Step::Call { .. } => return,
                Step::Proposed(proposal) => Ok(proposal.clone()),
                Step::Failed(error) => Err(error.clone()),
            };
            self.state = self.decides.after(attempt.rung(), outcome);
        }
    }
}

impl<D: Decide> Attempt for Outer<D> {
    fn step(&self) -> Step<'_> {
        match &self.state {
            State::Running(attempt) => attempt.step(),
            State::Ended(ended) => ended.step(),
        }
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        if let State::Running(attempt) = &mut self.state {
            attempt.handle(answer);
            self.advance();
        }
    }
}

impl Guarded {
    /// Begins an attempt of a strategy.
    pub(super) fn begin(
        strategy: &dyn CompactionStrategy,
        thread: &Snapshot,
        brief: &Brief,
    ) -> Self {
        let mut guarded = Self {
            strategy: strategy.name().into(),
            attempt: None,
            step: Current::Ended(Ended(Err(StrategyError::NeedsModel))),
            usage: Usage::default(),
            calls: 0,
        };
        guarded.run(|| strategy.begin(thread, brief));
        guarded
    }

    /// The rung of this attempt, without a failure.
    pub(super) fn rung(&self) -> Rung<StrategyError> {
        let (usage, calls) = (self.usage, self.calls);
        Rung { strategy: self.strategy.clone(), failure: None, usage, calls }
    }

    /// Runs code of the strategy and stores the next step of the attempt that it returns.
    fn run(&mut self, work: impl FnOnce() -> Box<dyn Attempt>) {
        // Unwind safe: a panic can leave only the attempt in a broken state, and that is dropped.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let attempt = work();
            (Current::of(attempt.step()), attempt)
        }));
        match outcome {
            Ok((step, attempt)) => (self.step, self.attempt) = (step, Some(attempt)),
            Err(payload) => {
                let message = panic_message(payload.as_ref());
                let error = StrategyError::Panicked { strategy: self.strategy.clone(), message };
                self.step = Current::Ended(Ended(Err(error)));
            }
        }
    }
}

/// The message of a panic, if it has one.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> Text {
    let literal = payload.downcast_ref::<&str>().copied();
    let message = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("no message").into()
}
