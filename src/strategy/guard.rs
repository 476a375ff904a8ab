//! Running a strategy that is somebody else's code: it may panic, and it may never end.

use std::{panic::AssertUnwindSafe, pin::pin};

use futures::{
    FutureExt,
    future::{self, Either},
};

use super::{
    ask::{Ask, ModelCall, panic_message},
    contract::CompactionStrategy,
    error::{Result, StrategyError},
    proposal::Proposal,
    view::View,
};
use crate::{
    log::Rung,
    message::{ModelError, ModelErrorKind, Text},
};

/// Runs a strategy, and returns its name and cost beside the outcome. A panic in its code ends it
/// with [`StrategyError::Panicked`]: a host's strategy must not take the session down.
pub(super) async fn run(
    strategy: &dyn CompactionStrategy,
    view: &View,
    ask: &mut Ask<'_>,
) -> (Rung<StrategyError>, Result<Proposal>) {
    let name = Text::from(strategy.name());
    let (mut own, is_over) = ask.nested();
    let outcome = {
        let work = async { strategy.propose(view, &mut own).await };
        // Unwind safe: a panic can leave only the future in a broken state, and it is dropped.
        let work = pin!(AssertUnwindSafe(work).catch_unwind());
        match future::select(work, is_over).await {
            Either::Left((outcome, _)) => Some(outcome),
            Either::Right(_) => None,
        }
    };
    let spent @ (usage, calls, ..) = own.spent();
    ask.add(spent);
    let outcome = match outcome {
        Some(Ok(outcome)) => outcome.map(|mut proposal| {
            ask.quoted(std::mem::take(&mut proposal.quotes));
            Proposal { quotes: ask.quotes().clone(), ..proposal }
        }),
        Some(Err(payload)) => {
            let message = panic_message(payload.as_ref());
            Err(StrategyError::Panicked { strategy: name.clone(), message })
        }
        None => Err(StrategyError::TooManyCalls { calls }),
    };
    (Rung { strategy: name, failure: None, usage, calls }, outcome)
}

/// Runs a strategy without a model and without waiting, for hosts that are not asynchronous: each
/// call is answered with [`ModelErrorKind::NoModel`]. The proposal is not checked yet, see
/// [`Snapshot::settle`](super::Snapshot::settle).
///
/// ```
/// use threadfold::{Message, strategy::{self, Brief, KeepRecent, Snapshot, StrategyError, View}};
///
/// let thread = ["hi", "hello", "bye"].map(Message::assistant);
/// let view = View::new(Snapshot::new(thread.to_vec()), Brief::default());
/// let keep = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let proposal = strategy::without_model(&keep, &view)?;
/// assert_eq!(proposal.plan.messages_after(), 1);
/// # Ok::<(), StrategyError>(())
/// ```
///
/// # Errors
///
/// The error of the strategy; [`StrategyError::NeedsModel`] if it waits for something else than an
/// answer.
pub fn without_model(strategy: &dyn CompactionStrategy, view: &View) -> Result<Proposal> {
    let mut none = |_: &ModelCall| Err(ModelError::new(ModelErrorKind::NoModel, ""));
    let mut ask = Ask::new(&mut none);
    let outcome = run(strategy, view, &mut ask).now_or_never().map(|(_, outcome)| outcome);
    outcome.unwrap_or(Err(StrategyError::NeedsModel))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures::executor::block_on;

    use super::*;
    use crate::{
        message::Request,
        strategy::{Brief, ModelRole, Snapshot},
    };

    /// Asks until it gets an answer, whatever the error is.
    #[derive(Debug)]
    struct NeverEnds;

    #[async_trait]
    impl CompactionStrategy for NeverEnds {
        fn name(&self) -> &str {
            "never-ends"
        }

        async fn propose(&self, _: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
            let call = ModelCall::new(ModelRole::Fast, Request::default());
            while ask.once(&call).await.is_err() {}
            Err(StrategyError::NeedsModel)
        }
    }

    #[test]
    fn a_strategy_that_never_ends_is_ended() {
        let view = View::new(Snapshot::new(Vec::new()), Brief::default());
        let mut calls = 0_usize;
        let mut fails = |_: &ModelCall| {
            calls += 1;
            Err(ModelError::new(ModelErrorKind::Other, "no"))
        };
        let (rung, outcome) = block_on(run(&NeverEnds, &view, &mut Ask::new(&mut fails)));
        assert!(matches!(outcome, Err(StrategyError::TooManyCalls { calls: 100_000 })));
        assert_eq!((rung.calls, calls), (100_000, 100_000));
    }
}
