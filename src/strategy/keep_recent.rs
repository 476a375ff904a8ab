//! `keep-recent`: a sliding window that drops old messages without a summary.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::Ask,
    contract::CompactionStrategy,
    error::Result,
    proposal::Proposal,
    tail::{TailRequest, nothing},
    view::View,
};
use crate::compact::Plan;

options! {
    /// Keeps the end of the thread and the message that the user typed last, and drops the rest.
    /// Calls no model.
    ///
    /// If the target leaves too little room, fewer messages stay. Their tool results are
    /// [trimmed](crate::compact::trim()) before the last turn is dropped.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let thread = Snapshot::new(vec![
    ///     Message::user("old"),
    ///     Message::assistant("older than it looks"),
    ///     Message::user("new"),
    ///     Message::assistant("newest"),
    /// ]);
    /// let view = View::new(thread, Brief::default());
    /// let strategy = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let proposal = without_model(&strategy, &view)?;
    /// assert_eq!(view.thread.accept(&proposal.plan, &view.brief)?.len(), 2);
    /// # Ok::<(), StrategyError>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct KeepRecent {
        /// Number of messages to keep, if they fit the target. More stay if no legal cut is near.
        pub messages: usize = 16,
        /// Upper limit for the tokens of the kept messages; the target of the brief applies too.
        pub tokens: Option<u64> = None,
    }
}

#[async_trait]
impl CompactionStrategy for KeepRecent {
    fn name(&self) -> &str {
        "keep-recent"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal> {
        Ok(self.plan(view)?.into())
    }
}

impl KeepRecent {
    fn plan(&self, view: &View) -> Result<Plan> {
        let View { thread, brief } = view;
        // The user's newest message always stays, so its tokens are reserved first.
        let last = thread.messages().iter().rev().find(|message| message.is_typed());
        let request = TailRequest {
            messages: self.messages,
            tokens: self.tokens,
            user_messages: 1,
            reserved: last
                .map_or(0, |message| thread.counter().message(message))
                .saturating_add(thread.rules_need(brief)),
            ..TailRequest::default()
        };
        let candidates = view.candidates(request)?;
        if let (None, Some(first)) = (view.missed_target(), candidates.first()) {
            view.check_worth(first, 0)?;
        }
        let plan =
            view.first_within_target(&candidates, |candidate| candidate.plan(view, Vec::new()))?;
        if plan.messages_after() == 0 && brief.next_prompt.is_none() {
            return nothing("nothing would be left, because the user typed no message".to_owned());
        }
        if thread.tokens_after(&plan)? >= thread.size() {
            let unread = thread.unread().len();
            return nothing(format!(
                "no cut removes anything, and the model has not read the last {unread} messages"
            ));
        }
        Ok(plan)
    }
}
