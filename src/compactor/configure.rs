//! Choosing the options of a compactor.

use std::sync::Arc;

use super::value::Compactor;
use crate::{
    message::{ContextWindow, Message, Redactor, SharedVec, ToolSpec},
    retention::RetentionPolicy,
    strategy::CompactionStrategy,
    tokens::TokenCounter,
};

impl Compactor {
    /// Returns the compactor with this strategy; the default is the
    /// [ladder](crate::strategy::Ladder) of a session.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        self.options.strategy = strategy;
        self
    }

    /// Returns the compactor with a redactor. Strategies, rules, facts and summaries get redacted
    /// texts; the messages that stay keep the originals.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.options.redactor = Some(redactor);
        self.forget_live()
    }

    /// Returns the compactor with a retention policy; `None` turns the audit off. The default is
    /// [`RetentionPolicy::default`], as in a session. The `retention` of a brief takes precedence,
    /// except for its audit options.
    #[must_use]
    pub fn with_retention(mut self, policy: impl Into<Option<RetentionPolicy>>) -> Self {
        self.options.retention = policy.into();
        self.forget_live()
    }

    /// Returns the compactor with another token counter; the default is
    /// [`ByteEstimate::TRIGGER`](crate::tokens::ByteEstimate::TRIGGER).
    /// The ratio to the provider's counts is learned in either case.
    #[must_use]
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.options.counter = counter;
        self.forget_live()
    }

    /// Returns the compactor with the context window of the model. A brief without a target then
    /// aims at half of the thread, or at half of the window if that is less.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, ContextWindow, Message, testing::ExtractiveModel};
    /// use threadfold::strategy::Brief;
    ///
    /// let said = |n| Message::user(format!("{n} {}", "The parser reads words. ".repeat(200)));
    /// let mut messages: Vec<Message> = (0..20).map(said).collect();
    /// let mut compactor = Compactor::default().with_window(ContextWindow::new(30_000));
    /// compactor.observe(&messages);
    /// let before = compactor.context_tokens();
    /// let brief = Brief::default();
    /// block_on(compactor.compact(&mut messages, brief, &ExtractiveModel))?;
    /// assert!(compactor.context_tokens() <= before / 2);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    #[must_use]
    pub fn with_window(mut self, window: impl Into<Option<ContextWindow>>) -> Self {
        self.options.window = window.into();
        self
    }

    /// Returns the compactor with the system prompt and the tools of the conversation, which
    /// requests for summaries repeat and the window must hold too.
    #[must_use]
    pub fn with_context(
        mut self,
        system: impl Into<SharedVec<Message>>,
        tools: impl Into<SharedVec<ToolSpec>>,
    ) -> Self {
        (self.options.system, self.options.tools) = (system.into(), tools.into());
        self
    }
}
