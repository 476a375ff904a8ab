//! What a compaction costs, by the prices that the host named.

use super::compact::Conversation;
use crate::{
    compact::{CompactReport, CompactionCost, Plan, Prices, PromptChange},
    log::Event,
    message::{Role, Timestamp, Usage},
};

impl Conversation<'_> {
    /// Returns the conversation with the prices of its model, so that the report of a compaction
    /// says what it costs: [`CompactReport::cost`](crate::compact::CompactReport::cost). Tokens are
    /// those of the thread's counter, system prompt and tools included.
    #[must_use]
    pub fn with_prices(mut self, prices: Option<Prices>) -> Self {
        self.prices = prices;
        self
    }

    /// Returns what the compaction costs, if the prices are known. The cache is warm if the model
    /// answered within its life.
    pub(super) fn cost(
        &self,
        report: &CompactReport,
        plan: &Plan,
        spent: Usage,
        now: Timestamp,
    ) -> Option<Box<CompactionCost>> {
        let prices = self.prices.as_ref()?;
        let counter = self.thread.thread().counter();
        let around = counter.tools(&self.tools).saturating_add(counter.messages(&self.system));
        let untouched = self.thread.messages().iter().take(plan.first_touched());
        let kept =
            untouched.fold(around, |sum, message| sum.saturating_add(counter.message(message)));
        let (before, after) = (report.before.tokens, report.after.tokens);
        let (before, after) = (around.saturating_add(before), around.saturating_add(after));
        let answer = self.journal.log().events().iter().rev().find(|logged| {
            let Event::MessageAppended(message) = &logged.event else { return false };
            message.role == Role::Assistant
        });
        let is_warm =
            answer.is_some_and(|answer| now.0.saturating_sub(answer.at.0) < prices.cache_life_ms);
        let change = PromptChange { kept, before, after };
        Some(Box::new(prices.compaction(change, &spent, is_warm)))
    }
}
