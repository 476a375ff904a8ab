//! Useless strategies: one always fails, one always proposes nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadfold::{
    CompactionStrategy, Message, Plan, Role, async_trait,
    compact::{Insert, Splice},
    message::{ModelError, ModelErrorKind, Summary},
    strategy::{Ask, Proposal, StrategyError, View},
};

/// Fails, whatever it is asked to compact.
#[derive(Debug)]
pub(crate) struct AlwaysFails;

/// Proposes invalid plans, each time of another kind.
#[derive(Debug, Default)]
pub(crate) struct Nonsense(AtomicU64);

#[async_trait]
impl CompactionStrategy for AlwaysFails {
    fn name(&self) -> &str {
        "always-fails"
    }

    async fn propose(&self, _: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let error = ModelError::new(ModelErrorKind::Other, "the strategy is broken");
        Err(StrategyError::Model(Box::new(error)))
    }
}

#[async_trait]
impl CompactionStrategy for Nonsense {
    fn name(&self) -> &str {
        "nonsense"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let kind = self.0.fetch_add(1, Ordering::Relaxed);
        Ok(nonsense(kind, view.thread.messages()).into())
    }
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
