//! `fold-batches`: implements the strategy.

use super::{
    chunks::{self, Limits},
    fold::Folding,
    options::FoldBatches,
    requests::RequestWriter,
};
use crate::{
    compact::Plan,
    strategy::{
        attempt,
        brief::Brief,
        contract::{Attempt, CompactionStrategy, StrategyError},
        snapshot::Snapshot,
    },
};

impl CompactionStrategy for FoldBatches {
    fn name(&self) -> &str {
        "fold-batches"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        match self.fold(thread, brief) {
            Ok(folding) => Box::new(folding),
            Err(error) => attempt::propose(Err::<Plan, _>(error)),
        }
    }
}

impl FoldBatches {
    fn fold(&self, thread: &Snapshot, brief: &Brief) -> Result<Folding, StrategyError> {
        self.check()?;
        let target = [self.target, brief.target].into_iter().flatten().min();
        let brief = &Brief { target, ..brief.clone() };
        let mut split = self.split(thread, brief)?;
        let requests = RequestWriter::new(self.clone(), thread, brief)?;
        let by_count = self.chunk_tokens.is_none();
        let limits = Limits {
            messages: by_count.then_some(self.chunk_messages),
            tokens: [self.chunk_tokens, requests.room].into_iter().flatten().min(),
        };
        let items = chunks::group(&mut split.stretches, limits, thread.counter());
        Folding::new(self.clone(), (thread.clone(), brief.clone()), (split, items), requests)
    }
}
