//! One strategy on one thread, from what it sees to a proposal that can be carried out.
//!
//! Every compaction takes this straight line, whoever runs it:
//!
//! 1. A thread that needs no compaction is left alone.
//! 2. If the unread part of the thread does not fit, the strategy sees it cut (`floor`).
//! 3. The strategy proposes. Models are asked through its [`Ask`], a panic is a failure.
//! 4. [`Snapshot::settle`] checks and completes the proposal.
//! 5. If nothing acceptable was proposed and the host has a [`Fallback`], tool results are trimmed,
//!    and if that is not enough, a digest replaces the old part.
//! 6. The cut of the unread part is added. If there is no proposal, the cut itself is one.
//!
//! The rungs of the proposal list everything that was tried.

use std::sync::Arc;

use super::{
    ask::{Answers, Ask},
    brief::Brief,
    contract::CompactionStrategy,
    digest::Digest,
    error::{Result, StrategyError},
    guard::{self, without_model},
    ladder::Ladder,
    proposal::Proposal,
    tail::nothing,
    view::View,
};
use crate::{compact::TrimToolResults, ledger::Quotes, log::Rung, message::Usage};

/// What follows if a strategy fails or misses the target. Without one, the target is strict unless
/// the brief has a limit, and a failure is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// If the request does not fit, as after a refusal of the provider, tool results are trimmed,
    /// and if that is not enough, a digest is made. If it fits, a strategy that fails costs only its
    /// calls. A plan may miss the target up to the limit of the brief, or without a limit by any
    /// size.
    IfNeeded,
    /// As above, and the fallback follows each failure. If no plan meets the limit, any that makes the
    /// thread smaller is taken, because a limit that a provider stated may be wrong.
    Always,
}

/// How a strategy is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// What follows a failure, if anything.
    pub(crate) fallback: Option<Fallback>,
    /// Which threads that meet their target it compacts.
    pub(crate) when: When,
}

/// Which threads a strategy compacts although they meet their target. One over its target, or that
/// does not fit, is compacted in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// As [`Due`](Self::Due), and only if something was added since its last compaction by the same
    /// strategy, because each summary of a summary loses something.
    Grown,
    /// Those whose compaction was not requested by the user or the host.
    #[default]
    Due,
    /// All, because a preview shows a compaction in any case.
    Always,
}

/// Why no proposal was made, and what that cost.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The error of the strategy, or the rejection of its proposal.
    pub(crate) error: StrategyError,
    /// The tokens of all calls.
    pub(crate) usage: Usage,
    /// Number of these calls.
    pub(crate) calls: usize,
}

/// Runs a strategy on a thread, and returns its settled proposal with its cost.
pub(crate) async fn propose(
    strategy: &dyn CompactionStrategy,
    view: &View,
    answers: &mut dyn Answers,
    terms: Terms,
) -> Result<Proposal, Failed> {
    view.check_needed(strategy, terms.when).map_err(|error| Failed {
        error,
        usage: Usage::default(),
        calls: 0,
    })?;
    let mut ask = Ask::new(answers);
    let seen = view.as_seen();
    let (rung, outcome) = guard::run(strategy, &seen, &mut ask).await;
    let (usage, calls) = (ask.usage(), ask.calls());
    let outcome = match outcome.and_then(|proposal| seen.settled(proposal, terms.fallback)) {
        Err(error) if seen.falls_back(terms.fallback) => {
            let failed = error.rungs(rung.clone());
            seen.fallen_back(&failed, ask.quotes(), terms.fallback).ok_or(error)
        }
        outcome => outcome,
    };
    match view.with_cut(&seen, outcome, rung) {
        Ok(proposal) => Ok(Proposal { usage, calls, ..proposal }),
        Err(error) => Err(Failed { error, usage, calls }),
    }
}

impl View {
    /// Refuses a thread that needs no compaction. One over its target, or that does not fit, does.
    fn check_needed(&self, strategy: &dyn CompactionStrategy, when: When) -> Result<()> {
        let Self { thread, brief } = self;
        if !thread.has_room(brief) {
            return Ok(());
        }
        if let Some(target) = brief.target
            && brief.reason.is_manual()
            && when != When::Always
        {
            return self.within(target);
        }
        if when == When::Grown && thread.compacted_by.as_deref() == Some(strategy.name()) {
            return nothing("nothing was added since the last compaction".to_owned());
        }
        Ok(())
    }

    /// Whether the fallback follows a failure.
    fn falls_back(&self, fallback: Option<Fallback>) -> bool {
        match fallback {
            Some(Fallback::Always) => true,
            Some(Fallback::IfNeeded) => self.brief.is_needed(),
            None => false,
        }
    }

    /// Returns the settled proposal if it is acceptable within the target, or else the limit.
    fn settled(&self, proposal: Proposal, fallback: Option<Fallback>) -> Result<Proposal> {
        let Self { thread, brief } = self;
        let mut rungs = proposal.rungs.clone();
        let settled = match (fallback, brief.limit) {
            (None, None) => thread.settle(proposal, brief),
            (_, limit) => thread.settle_within(proposal, brief, limit),
        };
        match settled {
            Err(rejection) if !rungs.is_empty() => {
                // So the rung that made the plan failed too.
                for rung in &mut rungs {
                    rung.failure.get_or_insert_with(|| rejection.clone().into());
                }
                Err(StrategyError::NoRung { rungs })
            }
            settled => Ok(settled?),
        }
    }

    /// Returns the proposal of the fallback after these rungs failed: for the target, else for the
    /// limit, else, if the host asks for it, for any size. `quotes` are those of all models so far.
    fn fallen_back(
        &self,
        failed: &[Rung<StrategyError>],
        quotes: &Quotes,
        fallback: Option<Fallback>,
    ) -> Option<Proposal> {
        let ladder = Ladder::new([
            Arc::new(TrimToolResults::default()) as Arc<dyn CompactionStrategy>,
            Arc::new(Digest::default()),
        ]);
        let any = (fallback == Some(Fallback::Always)).then_some((None, None));
        let limit = self.brief.limit;
        let tries = [Some((self.brief.target, limit)), Some((limit, limit)), any];
        tries.into_iter().flatten().find_map(|(target, limit)| {
            let brief = Brief { target, limit, ..self.brief.clone() };
            let view = Self::new(self.thread.clone(), brief);
            let proposal = without_model(&ladder, &view.quoting(quotes)).ok()?;
            let proposal = Proposal { quotes: quotes.clone(), ..proposal };
            let accepted = view.settled(proposal, fallback).ok()?;
            let rungs = failed.iter().chain(&accepted.rungs).cloned().collect();
            Some(Proposal { rungs, ..accepted })
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::{
        message::{Message, ModelError, ModelErrorKind},
        strategy::{KeepRecent, ModelCall, Snapshot},
    };

    /// A ladder whose only rung keeps two of eight messages, and the view of a thread that has this
    /// limit and no target.
    fn over_limit(limit: u64) -> (Ladder, View) {
        let said = |number: usize| Message::assistant(format!("{number} {}", "words ".repeat(80)));
        let thread = Snapshot::new((0..8).map(said).collect::<Vec<_>>());
        let brief = Brief { limit: Some(limit), ..Brief::default() };
        let keep = KeepRecent { messages: 6, ..KeepRecent::default() };
        (Ladder::new([Arc::new(keep) as Arc<dyn CompactionStrategy>]), View::new(thread, brief))
    }

    fn proposed(limit: u64, fallback: Option<Fallback>) -> Result<Proposal, Failed> {
        let (ladder, view) = over_limit(limit);
        let mut none = |_: &ModelCall| Err(ModelError::new(ModelErrorKind::NoModel, ""));
        block_on(propose(&ladder, &view, &mut none, Terms { fallback, ..Terms::default() }))
    }

    #[test]
    fn a_rung_whose_plan_is_rejected_at_the_end_has_failed() {
        let Failed { error, .. } = proposed(600, None).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("keep-recent: rejected: about"), "{words}");
        let proposal = proposed(600, Some(Fallback::Always)).unwrap();
        let made: Vec<_> = proposal.rungs.iter().filter(|rung| rung.failure.is_none()).collect();
        let [made] = made[..] else { panic!("{made:?}") };
        assert_eq!(made.strategy, "digest");
    }
}
