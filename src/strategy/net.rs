//! The net below a strategy: what a session does where its strategy does not bring a request into
//! the window.
//!
//! The strategy goes first. A proposal that misses the target but fits the limit is taken. If there
//! is none, and the request cannot go out as it is, tool results are trimmed; then a digest takes the
//! place of the old part. The rungs of the proposal name everything that was tried.

use std::sync::Arc;

use super::{
    attempt::Ended,
    brief::Brief,
    contained,
    contract::{Attempt, CompactionStrategy, Proposal, Rung, Step, StrategyError},
    digest::Digest,
    ladder::Ladder,
    snapshot::Snapshot,
    trim_tool_results::TrimToolResults,
};
use crate::message::{ModelError, ModelErrorKind, Text, Turn, Usage};

/// A strategy with its net.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    strategy: Arc<dyn CompactionStrategy>,
    /// The most tokens with which the compaction helps; `None` where any gain does.
    limit: Option<u64>,
    last_resort: bool,
}

impl Net {
    /// Returns a strategy whose proposals count as long as they keep within the limit.
    pub(crate) fn new(strategy: Arc<dyn CompactionStrategy>, limit: Option<u64>) -> Self {
        Self { strategy, limit, last_resort: false }
    }

    /// Returns the strategy with trimming and a digest below it.
    pub(crate) fn with_last_resort(self) -> Self {
        Self { last_resort: true, ..self }
    }
}

impl CompactionStrategy for Net {
    fn name(&self) -> &str {
        self.strategy.name()
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        let mut netted = Netted {
            thread: thread.clone(),
            brief: brief.clone(),
            limit: self.limit,
            strategy: self.strategy.name().into(),
            last_resort: self.last_resort,
            at: At::Strategy {
                attempt: contained::begin(self.strategy.as_ref(), thread, brief),
                spent: Spent::default(),
            },
        };
        netted.settle();
        Box::new(netted)
    }
}

#[derive(Debug)]
struct Netted {
    thread: Snapshot,
    brief: Brief,
    limit: Option<u64>,
    strategy: Text,
    last_resort: bool,
    at: At,
}

#[derive(Debug)]
enum At {
    /// The strategy works.
    Strategy {
        attempt: Box<dyn Attempt>,
        spent: Spent,
    },
    Over(Ended),
}

/// What the calls of the strategy cost.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    usage: Usage,
    calls: usize,
}

impl Attempt for Netted {
    fn step(&self) -> Step<'_> {
        match &self.at {
            At::Strategy { attempt, .. } => attempt.step(),
            At::Over(ended) => ended.step(),
        }
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        let At::Strategy { attempt, spent } = &mut self.at else { return };
        spent.usage += match &answer {
            Ok(turn) => turn.usage.unwrap_or_default(),
            Err(error) => error.usage,
        };
        // An answer that no model gave is no call.
        let called =
            answer.as_ref().err().is_none_or(|error| error.kind != ModelErrorKind::NoModel);
        spent.calls += usize::from(called);
        attempt.handle(answer);
        self.settle();
    }
}

impl Netted {
    /// Ends the attempt once the strategy has.
    fn settle(&mut self) {
        let At::Strategy { attempt, spent } = &self.at else { return };
        let outcome = match attempt.step() {
            Step::Call { .. } => return,
            Step::Failed(error) => Err(error.clone()),
            Step::Proposed(proposal) => self.judged(proposal.clone()),
        };
        let spent = *spent;
        let outcome = match outcome {
            Err(error) if self.last_resort => self.fallen(error, spent),
            outcome => outcome,
        };
        self.at = At::Over(Ended(outcome));
    }

    /// The proposal as it is carried out: within the target, or else within the limit.
    fn judged(&self, proposal: Proposal) -> Result<Proposal, StrategyError> {
        let rungs = proposal.rungs.clone();
        match self.thread.settle_within(proposal, &self.brief, self.limit) {
            Ok(settled) => Ok(settled.proposal),
            Err(_) if !rungs.is_empty() => Err(StrategyError::NoRung { rungs }),
            Err(rejection) => Err(rejection.into()),
        }
    }

    /// What the net catches after the strategy failed.
    fn fallen(&self, error: StrategyError, spent: Spent) -> Result<Proposal, StrategyError> {
        let failed = if let StrategyError::NoRung { rungs } = &error {
            rungs.clone()
        } else {
            let (strategy, failure) = (self.strategy.clone(), Some(error.clone()));
            vec![Rung { strategy, failure, usage: spent.usage, calls: spent.calls }]
        };
        for target in [self.brief.target, self.limit] {
            let net = Ladder::new([
                Arc::new(TrimToolResults::default()) as Arc<dyn CompactionStrategy>,
                Arc::new(Digest::default()),
            ]);
            let brief = Brief { target, ..self.brief.clone() };
            let attempt = net.begin(&self.thread, &brief);
            let Step::Proposed(proposal) = attempt.step() else { continue };
            let Ok(caught) = self.judged(proposal.clone()) else { continue };
            let rungs = failed.iter().chain(&caught.rungs).cloned().collect();
            return Ok(Proposal { rungs, ..caught });
        }
        Err(error)
    }
}
