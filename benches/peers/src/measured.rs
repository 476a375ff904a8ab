//! One measurement of either crate.

use threadfold::Message;

use yardstick::{Cost, Row, Spread};

use crate::model::Heard;

/// The number of messages that both keep at the end.
pub(crate) const TAIL: usize = 10;

/// A row. If many calls were timed together, the values are those of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) spread: Spread,
    pub(crate) cost: Cost,
}

/// The request of a compaction to its model, and the remaining thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) heard: Heard,
    /// The tokens before, as the crate estimates them.
    pub(crate) tokens: u64,
    pub(crate) messages_after: usize,
    pub(crate) tokens_after: u64,
}

impl From<Row> for Measured {
    fn from(Row { name, spread, cost, .. }: Row) -> Self {
        Self { name, spread, cost }
    }
}

impl Measured {
    /// One of the calls that a row timed together.
    pub(crate) fn each_of(row: Row, calls: u32) -> Self {
        let Spread { least, middle, most } = row.spread;
        let spread = Spread { least: least / calls, middle: middle / calls, most: most / calls };
        let cost = Cost { allocations: row.cost.allocations / u64::from(calls), ..row.cost };
        Self { spread, cost, ..row.into() }
    }
}

/// The messages with shared texts, in a container of the crate.
pub(crate) fn shared<C: FromIterator<Message>>(messages: &[Message]) -> C {
    messages.iter().cloned().collect()
}
