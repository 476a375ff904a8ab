//! The plan: removes the folded messages and inserts the view in place of the first of them.

use std::ops::Range;

use super::split::Split;
use crate::{
    compact::{CompactError, CompactOptions, Plan, Position},
    message::{Message, Summary},
    strategy::{brief::Brief, snapshot::Snapshot, tail},
};

impl Split {
    /// Returns the plan that inserts the view in place of the first removed message.
    ///
    /// # Errors
    ///
    /// [`CompactError`] if a removal is illegal.
    pub(super) fn plan(
        &self,
        thread: &Snapshot,
        brief: &Brief,
        view: Summary,
    ) -> Result<Plan, CompactError> {
        let messages = thread.messages();
        let mut edits = tail::remove_except(self.kept(messages), self.cut, Vec::new());
        let is_last = edits.len() == 1 && self.cut == messages.len();
        if let Some(first) = edits.first_mut() {
            first.insert.push(tail::summary_message(thread, brief, view, is_last));
        }
        let options = CompactOptions { compaction: brief.compaction, ..CompactOptions::default() };
        Plan::from_edits(messages, edits, &options)
    }

    /// The ranges before the cut that stay, in order.
    fn kept(&self, messages: &[Message]) -> Vec<Range<Position>> {
        let mut kept = Vec::new();
        let mut next = 0;
        // The end of a message equals the start of the next one; edits use the latter.
        let normalized = |range: &Range<Position>| {
            let Range { start, end } = *range;
            let blocks = messages.get(end.message).map_or(0, |message| message.content.len());
            let is_end = end.block >= blocks;
            start..if is_end { Position::before(end.message + 1) } else { end }
        };
        let typed_in = self.typed.first().map(|range| range.start.message);
        for Range { start, end } in self.stretches.iter().map(|stretch| stretch.range.clone()) {
            if next < start {
                kept.push(Position::before(next)..Position::before(start));
            }
            if typed_in.is_some_and(|message| (start..end).contains(&message)) {
                kept.extend(self.typed.iter().map(normalized));
            }
            next = end;
        }
        if next < self.cut {
            kept.push(Position::before(next)..Position::before(self.cut));
        }
        kept
    }
}
