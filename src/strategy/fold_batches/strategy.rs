//! `fold-batches`: implements the strategy.

use super::{
    chunks::{self, Limits},
    fold::Folding,
    options::FoldBatches,
    requests::RequestWriter,
};
use crate::strategy::{
    attempt,
    brief::Brief,
    contract::{Attempt, CompactionStrategy, StrategyError},
    snapshot::Snapshot,
    task::Task,
};

impl CompactionStrategy for FoldBatches {
    fn name(&self) -> &str {
        "fold-batches"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        attempt::or_failed(self.attempt(thread, brief))
    }
}

impl FoldBatches {
    fn attempt(&self, thread: &Snapshot, brief: &Brief) -> Result<Box<dyn Attempt>, StrategyError> {
        self.check()?;
        let target = [self.target, brief.target].into_iter().flatten().min();
        let task = Task::new(thread, &Brief { target, ..brief.clone() });
        let mut split = self.split(&task)?;
        let requests = RequestWriter::new(self.clone(), &task)?;
        let by_count = self.chunk_tokens.is_none();
        let limits = Limits {
            messages: by_count.then_some(self.chunk_messages),
            tokens: [self.chunk_tokens, requests.room].into_iter().flatten().min(),
        };
        let items = chunks::group(&mut split.stretches, limits, thread.counter());
        Ok(Box::new(Folding::new(self.clone(), task, (split, items), requests)?))
    }
}
