//! Choosing the options of a compactor.

use std::sync::Arc;

use super::value::Compactor;
use crate::{
    message::{ContextWindow, Message, Redactor, ToolSpec},
    retention::RetentionPolicy,
    strategy::CompactionStrategy,
    tokens::TokenCounter,
};

impl Compactor {
    /// Returns the compactor with this strategy; the default is the
    /// [ladder](crate::strategy::Ladder) of a session.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Compactor, Message, testing::ExtractiveModel};
    /// use threadfold::strategy::{Brief, KeepRecent};
    ///
    /// let mut messages: Vec<Message> = (0..20).map(|n| Message::assistant(format!("Step {n}."))).collect();
    /// let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
    /// let mut compactor = Compactor::default().with_strategy(Arc::new(keep));
    /// block_on(compactor.compact(&mut messages, Brief::default(), &ExtractiveModel))?;
    /// assert_eq!(messages.len(), 4);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    pub fn with_strategy(mut self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        self.options.strategy = strategy;
        self.live.compacted_by = None;
        self
    }

    /// Returns the compactor with a redactor. Strategies, rules, facts and summaries get redacted
    /// texts; the messages that stay keep the originals.
    ///
    /// ```
    /// use std::{borrow::Cow, sync::Arc};
    /// use threadfold::{Compactor, message::Redactor};
    ///
    /// #[derive(Debug)]
    /// struct Keys;
    ///
    /// impl Redactor for Keys {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace("sk-123", "[key]").into()
    ///     }
    /// }
    ///
    /// let mut compactor = Compactor::default().with_redactor(Arc::new(Keys));
    /// compactor.add_rule("Never print sk-123.")?;
    /// assert_eq!(compactor.rules().to_string(), "- Never print [key].\n");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn with_redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.options.redactor = Some(redactor);
        self.forget_live()
    }

    /// Returns the compactor with a retention policy; `None` turns the audit off. The default is
    /// [`RetentionPolicy::default`], as in a session. The `retention` of a brief takes precedence,
    /// except for its audit options.
    ///
    /// ```
    /// use threadfold::{Compactor, retention::RetentionPolicy};
    ///
    /// // A summary must keep 60 percent of the weight of all facts, or the strategy fails.
    /// let policy = RetentionPolicy { minimum: 60, ..RetentionPolicy::default() };
    /// let strict = Compactor::default().with_retention(policy);
    /// let without_audit = Compactor::default().with_retention(None);
    /// ```
    pub fn with_retention(mut self, policy: impl Into<Option<RetentionPolicy>>) -> Self {
        self.options.retention = policy.into();
        self.forget_live()
    }

    /// Returns the compactor with another token counter; the default is
    /// [`ByteEstimate::TRIGGER`](crate::tokens::ByteEstimate::TRIGGER). With any counter, the ratio
    /// to the provider's counts is learned.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Compactor, Message, tokens::ByteEstimate};
    ///
    /// let mut compactor = Compactor::default().with_counter(Arc::new(ByteEstimate::new(4)));
    /// compactor.observe(&[Message::user("Where is the parser?")]);
    /// assert!(compactor.context_tokens() > 0);
    /// ```
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
    /// let said = |n| Message::assistant(format!("{n} {}", "The parser reads words. ".repeat(200)));
    /// let mut messages: Vec<Message> = (0..20).map(said).collect();
    /// let mut compactor = Compactor::default().with_window(ContextWindow::new(30_000));
    /// compactor.observe(&messages);
    /// let before = compactor.context_tokens();
    /// let brief = Brief::default();
    /// block_on(compactor.compact(&mut messages, brief, &ExtractiveModel))?;
    /// assert!(compactor.context_tokens() <= before / 2);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    pub fn with_window(mut self, window: impl Into<Option<ContextWindow>>) -> Self {
        self.options.window = window.into();
        self
    }

    /// Returns the compactor with the system prompt and the tools of the conversation, which are
    /// part of requests for summaries and take room in the window.
    ///
    /// ```
    /// use threadfold::{Compactor, Message, message::ToolSpec};
    ///
    /// let mut compactor = Compactor::default();
    /// compactor.observe(&[Message::user("Hi.")]);
    /// let before = compactor.context_tokens();
    /// let tools = vec![ToolSpec::new("read", "Reads a file.", serde_json::json!({}))];
    /// let compactor = compactor.with_context(vec![Message::system("Be brief.")], tools);
    /// assert!(compactor.context_tokens() > before);
    /// ```
    pub fn with_context(
        mut self,
        system: impl Into<Arc<Vec<Message>>>,
        tools: impl Into<Arc<Vec<ToolSpec>>>,
    ) -> Self {
        (self.options.system, self.options.tools) = (system.into(), tools.into());
        self
    }
}
