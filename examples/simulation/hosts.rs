//! Useless strategies: one always fails, one always proposes nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadfold::{
    CompactionStrategy, Message, Plan, Role, Turn,
    compact::{Insert, Splice},
    message::{ModelError, ModelErrorKind, Summary},
    strategy::{Attempt, Brief, Proposal, Snapshot, Step, StrategyError},
};

/// Fails, whatever it is asked to compact.
#[derive(Debug)]
pub(crate) struct AlwaysFails;

/// Proposes invalid plans, each time of another kind.
#[derive(Debug, Default)]
pub(crate) struct Nonsense(AtomicU64);

/// An attempt that has ended.
#[derive(Debug)]
struct Ended(Result<Proposal, StrategyError>);

impl CompactionStrategy for AlwaysFails {
    fn name(&self) -> &str {
        "always-fails"
    }

    fn begin(&self, _: &Snapshot, _: &Brief) -> Box<dyn Attempt> {
        let error = ModelError::new(ModelErrorKind::Other, "the strategy is broken");
        Box::new(Ended(Err(StrategyError::Model(Box::new(error)))))
    }
}

impl CompactionStrategy for Nonsense {
    fn name(&self) -> &str {
        "nonsense"
    }

    fn begin(&self, thread: &Snapshot, _: &Brief) -> Box<dyn Attempt> {
        let kind = self.0.fetch_add(1, Ordering::Relaxed);
        Box::new(Ended(Ok(Proposal::new(nonsense(kind, thread.messages())))))
    }
}

impl Attempt for Ended {
    fn step(&self) -> Step<'_> {
        match &self.0 {
            Ok(proposal) => Step::Proposed(proposal),
            Err(error) => Step::Failed(error),
        }
    }

    fn handle(&mut self, _: Result<Turn, ModelError>) {}
}

fn nonsense(kind: u64, thread: &Arc<Vec<Message>>) -> Plan {
    let len = thread.len();
    let plan = |splices| Plan::from_splices(len, splices);
    let none = Vec::new;
    match kind % 10 {
        // Changes nothing.
        0 => plan(Vec::new()),
        // Out of range.
        1 => plan(vec![Splice { at: len..len + 5, insert: none() }]),
        // Made for another thread.
        2 => Plan::from_splices(len + 7, Vec::new()),
        // Out of order.
        3 => plan(vec![Splice { at: 2..4, insert: none() }, Splice { at: 0..3, insert: none() }]),
        // Keeps blocks that do not exist.
        4 => {
            let insert = vec![Insert::Part { message: 0, blocks: vec![999] }];
            plan(vec![Splice { at: 0..1, insert }])
        }
        // Removes everything.
        5 => plan(vec![Splice { at: 0..len, insert: none() }]),
        // Replaces everything with a blank summary.
        6 => plan(vec![Splice { at: 0..len, insert: summary(" ") }]),
        // Makes the thread larger.
        7 => plan(vec![Splice { at: 0..0, insert: summary(&"And so on. ".repeat(300)) }]),
        // Removes a call and keeps its result.
        8 => plan(without(thread, |message| message.tool_uses().next().is_some())),
        // Removes a result and keeps its call.
        _ => plan(without(thread, |message| message.tool_results().next().is_some())),
    }
}

fn summary(text: &str) -> Vec<Insert> {
    vec![Insert::Message { message: Message::summary(Role::User, Summary::new(text)) }]
}

/// Removes the last message for which `is_one` is `true`.
fn without(thread: &Arc<Vec<Message>>, is_one: impl Fn(&Message) -> bool) -> Vec<Splice> {
    let place = thread.iter().rposition(is_one);
    place.map(|place| Splice { at: place..place + 1, insert: Vec::new() }).into_iter().collect()
}
