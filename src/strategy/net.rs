//! A session's strategy, with a fallback if it fails and the request does not fit the window.
//!
//! The strategy is tried first. Its proposal may miss the target as long as it keeps within the
//! limit of the brief. If it proposes nothing acceptable and the request cannot be sent as it is, tool results
//! are trimmed; if that is not enough, a digest replaces the old part. The rungs of the proposal
//! list everything that was tried.
//!
//! For a compaction before it is needed there is no fallback: a strategy that fails then costs only
//! its calls.

use std::sync::Arc;

use super::{digest::Digest, kit::*, ladder::Ladder};

/// A strategy with its fallback.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    pub(crate) strategy: Arc<dyn CompactionStrategy>,
    /// Whether the fallback (trimming, then a digest) is used even if the request fits. If the
    /// request does not fit, the fallback is always used.
    pub(crate) last_resort: bool,
    /// Whether a thread is left alone if nothing was added since its last compaction by the same
    /// strategy, because each summary of a summary loses something. A thread over its target is
    /// compacted anyway.
    pub(crate) once: bool,
}

impl CompactionStrategy for Net {
    fn name(&self) -> &str {
        self.strategy.name()
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        let is_done = thread.compacted_by.as_ref().is_some_and(|by| **by == *self.name());
        if self.once && is_done && thread.has_room(brief) {
            return propose(nothing("nothing was added since the last compaction".to_owned()));
        }
        let fallback = Fallback { task: Task::new(thread, brief), net: self.clone() };
        let first = Guarded::begin(self.strategy.as_ref(), thread, brief);
        Box::new(Outer::new(fallback, State::Running(first)))
    }
}

/// The fallback that follows the strategy's own attempt.
#[derive(Debug)]
struct Fallback {
    task: Task,
    net: Net,
}

impl Decide for Fallback {
    fn after(&mut self, rung: Rung<StrategyError>, outcome: Result<Proposal>) -> State {
        let outcome = match outcome.and_then(|proposal| self.accepted(proposal)) {
            Err(error) if self.net.last_resort || self.task.brief.is_needed() => {
                let failed = if let StrategyError::NoRung { rungs } = &error {
                    rungs.clone()
                } else {
                    vec![Rung { failure: Some(error.clone()), ..rung }]
                };
                self.fall_back(&failed).ok_or(error)
            }
            outcome => outcome,
        };
        State::Ended(Ended(outcome))
    }
}

impl Fallback {
    /// Returns the settled proposal if it is acceptable within the target or else the limit.
    fn accepted(&self, proposal: Proposal) -> Result<Proposal> {
        let rungs = proposal.rungs.clone();
        match self.task.thread.settle_within(proposal, &self.task.brief, self.task.brief.limit) {
            Ok(settled) => Ok(settled),
            Err(_) if !rungs.is_empty() => Err(StrategyError::NoRung { rungs }),
            Err(rejection) => Err(rejection.into()),
        }
    }

    /// Returns the proposal of the fallback after these rungs failed, first for the target and then
    /// for the limit.
    fn fall_back(&self, failed: &[Rung<StrategyError>]) -> Option<Proposal> {
        for target in [self.task.brief.target, self.task.brief.limit] {
            let ladder = Ladder::new([
                Arc::new(TrimToolResults::default()) as Arc<dyn CompactionStrategy>,
                Arc::new(Digest::default()),
            ]);
            let brief = Brief { target, ..self.task.brief.clone() };
            let attempt = ladder.begin(&self.task.thread, &brief);
            let Step::Proposed(proposal) = attempt.step() else { continue };
            let Ok(accepted) = self.accepted(proposal.clone()) else { continue };
            let rungs = failed.iter().chain(&accepted.rungs).cloned().collect();
            return Some(Proposal { rungs, ..accepted });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{CompactionReason, Message},
        strategy::{Rejection, attempt},
    };

    /// A strategy that always fails.
    #[derive(Debug)]
    struct Fails;

    impl CompactionStrategy for Fails {
        fn name(&self) -> &str {
            "fails"
        }

        fn begin(&self, _: &Snapshot, _: &Brief) -> Box<dyn Attempt> {
            attempt::propose(Err::<crate::compact::Plan, _>(StrategyError::NeedsModel))
        }
    }

    #[test]
    fn the_fallback_keeps_to_the_limit_where_the_target_cannot_be_reached() -> Result<(), Rejection>
    {
        let talk = Message::assistant("And on it went through the night. ".repeat(300));
        let newest = Message::user("word ".repeat(600));
        let thread = Snapshot::new(vec![Message::user("Go on."), talk, newest]);
        let (target, limit) = (500, 2_000);
        let reason = CompactionReason::Overflow;
        let brief = Brief { target: Some(target), limit: Some(limit), reason, ..Brief::default() };
        let attempt = Net { strategy: Arc::new(Fails), last_resort: false, once: false }
            .begin(&thread, &brief);
        let Step::Proposed(proposal) = attempt.step() else { panic!("{attempt:?}") };
        let tokens = thread.tokens_after(&proposal.plan)?;
        assert!((target..=limit).contains(&tokens), "{tokens}");
        Ok(())
    }
}
