//! Changing a running session: its agent, strategy, policy, tools, system prompt and window, and
//! the compactions that it made.
//!
//! A new agent gets the thread, not the estimates: the window that was learnt from refusals and the
//! ratio of reported to estimated tokens belong to the previous model. The window of the last
//! request is kept, so that a smaller one is noticed.
//!
//! Undoing a compaction first undoes those after it, because their plans hold positions of the
//! thread that it left. Redoing one applies its recorded plan again, under a new number, if the
//! thread still begins with the messages that the plan was made for. A fork is a log of its own: it
//! holds all events so far and, if it starts earlier, a cut, so both branches can undo a compaction
//! from before the fork.

use std::sync::Arc;

use super::{
    builder::SessionBuilder,
    error::{Result, SessionError},
    session::Session,
};
use crate::{
    auto::AutoPolicy,
    compact::{CompactOptions, Replaced, Replacement},
    log::{CompactionRecord, Event},
    message::{CompactionId, ContextWindow, Message, Text, ThreadId},
    model::{self, Agent, Tool, Tools},
    store::Journal,
    strategy::CompactionStrategy,
};

/// The strategy name in the log for compactions whose summaries the host wrote.
const BY_HOST: &str = "by-host";

/// Tells an agent that holds nothing yet that this is its thread.
pub(super) fn take_over(agent: &mut dyn Agent, messages: &[Message]) {
    if !messages.is_empty() {
        agent.rewritten(&[Replaced { at: 0..0, messages }], messages);
    }
}

impl Session {
    /// Replaces the agent from now on, for example to use another model. The new agent gets the
    /// thread. If its window is smaller and the next request does not fit, the thread is compacted
    /// first, with the reason [`ModelSwitch`](crate::message::CompactionReason::ModelSwitch). Token
    /// counts are estimates until the new model reports one.
    ///
    /// Reasoning that another provider signed stays in the thread, but the codecs omit it from
    /// requests to the new provider.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = |answer: &str| ModelAgent::new(Arc::new(ScriptedModel::new([answer])));
    /// let mut session = Session::builder(agent("Hello!")).build()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// session.set_agent(agent("Hello from another model."));
    /// let reply = block_on(async { session.send("And you?").await })?;
    /// assert_eq!((reply.text.as_str(), session.messages().len()), ("Hello from another model.", 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_agent(&mut self, agent: impl Agent + 'static) {
        let mut agent: Box<dyn Agent> = Box::new(agent);
        take_over(agent.as_mut(), self.messages());
        self.agent = agent;
        self.table_window = None;
        self.auto.model_changed();
        self.count_overhead();
    }

    /// Compacts with another strategy from now on.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// use threadfold::strategy::KeepRecent;
    ///
    /// let mut session = Session::builder(agent).build()?;
    /// session.set_strategy(Arc::new(KeepRecent { messages: 20, ..KeepRecent::default() }));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn set_strategy(&mut self, strategy: Arc<dyn CompactionStrategy>) {
        self.settings.strategy = strategy;
    }

    /// Compacts with this strategy from now on, given by name or by a
    /// [setting](crate::strategy::StrategyRegistry::build).
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let mut session = Session::builder(agent).build()?;
    /// session.set_strategy_named("summarize")?;
    /// assert!(session.set_strategy_named("magic").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] if no strategy of the [registry](super::SessionBuilder::registry)
    /// has the name, or the strategy does not take the options. The session's strategy is then
    /// unchanged.
    pub fn set_strategy_named(&mut self, strategy: impl Into<serde_json::Value>) -> Result<()> {
        self.settings.strategy = self.settings.registry.build(&strategy.into())?;
        Ok(())
    }

    /// Follows another policy of automatic compaction from now on.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// use threadfold::auto::{AutoPolicy, Threshold};
    ///
    /// let mut session = Session::builder(agent).build()?;
    /// let half = AutoPolicy { threshold: Threshold::Fraction(0.5), ..AutoPolicy::default() };
    /// session.set_policy(half)?;
    /// let wrong = AutoPolicy { threshold: Threshold::Fraction(50.0), ..AutoPolicy::default() };
    /// assert!(session.set_policy(wrong).is_err());
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] if a share in the policy is not between 0 and 1. The policy is
    /// then unchanged.
    pub fn set_policy(&mut self, policy: AutoPolicy) -> Result<()> {
        Ok(self.auto.set_policy(policy)?)
    }

    /// Replaces the host's tools from now on; the session's own tools stay.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// # use threadfold::{async_trait, message::{ToolSpec, ToolUse}};
    /// # use threadfold::model::{Tool, ToolContext, ToolOutput};
    /// # #[derive(Debug)]
    /// # struct Dice;
    /// # #[async_trait]
    /// # impl Tool for Dice {
    /// #     fn spec(&self) -> ToolSpec { ToolSpec::new("roll", "Rolls a die.", serde_json::json!({})) }
    /// #     async fn call(
    /// #         &self, _: &ToolUse, _: &ToolContext<'_>
    /// #     ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
    /// #         Ok("4".into())
    /// #     }
    /// # }
    /// # let model = Arc::new(ScriptedModel::new(["I can roll a die."]));
    /// let mut session = Session::builder(ModelAgent::new(model.clone())).recall_tool().build()?;
    /// session.set_tools(vec![Arc::new(Dice)])?;
    /// block_on(async { session.send("What can you do?").await })?;
    /// let request = &model.requests()[0];
    /// let offered: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    /// assert_eq!(offered, ["roll", "recall"]);
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::DoubleTool`] if two tools have the same name. The tools are then unchanged.
    pub fn set_tools(&mut self, tools: Vec<Arc<dyn Tool>>) -> Result<()> {
        let tools = Tools::new(tools, &self.tools.own());
        self.tools = tools.map_err(|name| SessionError::DoubleTool { name })?;
        self.count_overhead();
        Ok(())
    }

    /// Replaces the system prompt from now on; a blank text removes it.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// # use threadfold::Message;
    /// # let model = Arc::new(ScriptedModel::new(["Hello!", "Hi."]));
    /// let mut session = Session::builder(ModelAgent::new(model.clone())).system("Be brief.").build()?;
    /// block_on(async { session.send("Hello.").await })?;
    /// session.set_system("Be polite.");
    /// block_on(async { session.send("Hello again.").await })?;
    /// assert_eq!(model.requests()[1].system[0], Message::system("Be polite."));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn set_system(&mut self, text: impl Into<Text>) {
        let text = text.into();
        self.settings.system = match text.trim().is_empty() {
            true => Arc::default(),
            false => vec![Message::system(text)].into(),
        };
        self.count_overhead();
    }

    /// Sets the context window, which overrides that of the agent; `None` uses the agent's again.
    /// If the next request does not fit a smaller window, the thread is compacted first, with the
    /// reason [`ModelSwitch`](crate::message::CompactionReason::ModelSwitch).
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// use threadfold::ContextWindow;
    ///
    /// let agent = agent.with_window(ContextWindow::new(200_000));
    /// let mut session = Session::builder(agent).build()?;
    /// session.set_window(ContextWindow::new(32_768));
    /// assert_eq!(session.window(), Some(ContextWindow::new(32_768)));
    /// session.set_window(None);
    /// assert_eq!(session.window(), Some(ContextWindow::new(200_000)));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn set_window(&mut self, window: impl Into<Option<ContextWindow>>) {
        self.settings.window = window.into();
        self.show();
    }

    /// Replaces ranges of the thread with summaries that the host wrote. This is a compaction like
    /// any other: it is checked, logged and stored, and can be undone. Its start and end events are
    /// the first events of the next stream.
    ///
    /// The future may be dropped, like that of [`adopt`](Self::adopt).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ContentBlock, ModelAgent, Replacement, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    /// let is_mark = |block: &&ContentBlock| matches!(block, ContentBlock::Checkpoint(_));
    /// let mark = session.messages()[0].content.iter().find(is_mark);
    /// let Some(ContentBlock::Checkpoint(mark)) = mark else { return Ok(()) };
    /// let asked = [Replacement::new("The user asked for the parser.").to(mark.id)];
    /// let done = block_on(session.replace(&asked))?;
    /// assert!(session.messages()[0].is_summary() && done.report.after.messages == 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Stale`] if a checkpoint is not in the thread, or a range separates a call
    ///   from its result.
    /// - [`SessionError::Compaction`] if the resulting thread is not legal, or a range holds the
    ///   message that the user typed last.
    pub async fn replace(&mut self, replacements: &[Replacement]) -> Result<CompactionRecord> {
        let plan = self.journal.thread().plan(replacements, &CompactOptions::default())?;
        let messages = self.messages().clone();
        Ok(self.apply_again(BY_HOST.into(), plan, messages).await?)
    }

    /// Undoes a compaction: restores the messages that it removed, followed by those appended
    /// since. Later compactions build on it, so they are undone first, the latest first. Returns
    /// the ids of all undone compactions, in this order.
    ///
    /// The future may be dropped. Then either nothing has changed, or the compactions are undone
    /// and the next turn writes this to the store.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(keep));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    /// let before = session.messages().clone();
    /// block_on(async { session.compact(None).await })?;
    /// assert_eq!(session.messages().len(), 2);
    ///
    /// let id = session.log().standing().last().ok_or("it was compacted")?.id;
    /// block_on(session.undo_compaction(id))?;
    /// assert_eq!(*session.messages(), before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Log`] if no standing compaction has this id, or the thread was truncated
    ///   within the messages that one of these compactions inserted. Nothing is undone then.
    /// - [`SessionError::Stale`] if the thread does not match the log.
    /// - [`SessionError::Store`] if the removed messages are only in the store and it cannot be
    ///   read, or if the store cannot be written. In the second case the compactions are undone.
    pub async fn undo_compaction(&mut self, id: CompactionId) -> Result<Vec<CompactionId>> {
        self.journal.hold(id).await?;
        let ids = self.journal.log().to_undo(id)?;
        let now = self.now();
        for id in &ids {
            let plan = self.journal.undo(now, *id)?;
            model::announce(self.agent.as_mut(), &plan, self.journal.thread());
        }
        // What comes back may be of denser text than what taught the ratio.
        self.auto.raise_ratio(self.logged_ratio());
        self.show();
        self.journal.flush().await?;
        Ok(ids)
    }

    /// Redoes a compaction that was undone, without a model call: its summary replaces the same
    /// messages again, and messages appended since stay. The result has its new id. Its start and
    /// end events are the first events of the next stream.
    ///
    /// The future may be dropped, like that of [`adopt`](Self::adopt).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(keep));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    /// block_on(async { session.compact(None).await })?;
    /// let id = session.log().standing().last().ok_or("it was compacted")?.id;
    ///
    /// block_on(session.undo_compaction(id))?;
    /// let done = block_on(session.redo_compaction(id))?;
    /// assert_eq!(session.messages().len(), 2);
    /// assert_eq!(session.log().standing().last().map(|record| record.id), Some(done.id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Log`] if no compaction has this id, or it was not undone.
    /// - [`SessionError::Store`] if the store could not be read.
    /// - [`SessionError::Compaction`] if the messages that it removed are no longer in the thread
    ///   unchanged, for example because another compaction removed them.
    pub async fn redo_compaction(&mut self, id: CompactionId) -> Result<CompactionRecord> {
        let (record, before) = self.journal.whole().await?.undone(id)?;
        Ok(self.apply_again(record.strategy, record.plan, before.into()).await?)
    }

    /// Counts the tokens of system prompt and tools again, and updates the handles.
    pub(super) fn count_overhead(&mut self) {
        let counter = self.journal.thread().counter();
        let system = counter.messages(&self.settings.system);
        self.overhead = system.saturating_add(counter.tools(&self.tools.specs));
        self.show();
    }
}

impl Session {
    /// Returns the builder of a session that continues from the end of this one as a separate
    /// thread. The fork inherits the log, compactions included, and all settings. Calls that are
    /// open at the fork are answered as cancelled before its first message.
    ///
    /// The fork is not stored until the builder gets a [store](SessionBuilder::store).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Blue.", "Red, then."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Which colour?").await })?;
    /// let mut other = block_on(session.fork_before("another-way".parse()?, 0))?.build()?;
    /// block_on(async { other.send("Which colour, but not blue?").await })?;
    /// assert_eq!((session.messages().len(), other.messages().len()), (2, 2));
    /// assert_ne!(session.messages()[0], other.messages()[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Log`] if the log cannot be cut there.
    /// - [`SessionError::Store`] if the store cannot be read.
    pub async fn fork(&self, thread: ThreadId) -> Result<SessionBuilder> {
        self.fork_before(thread, self.messages().len()).await
    }

    /// Same as [`fork`](Self::fork), but the fork keeps only this many messages: those before the
    /// message with this index.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// # let model = Arc::new(ScriptedModel::new(["Blue.", "Fine."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// for text in ["Which colour?", "How are you?"] {
    ///     block_on(async { session.send(text).await })?;
    /// }
    /// let other = block_on(session.fork_before("another-way".parse()?, 2))?.build()?;
    /// assert_eq!(other.messages()[..], session.messages()[..2]);
    /// assert!(block_on(session.fork_before("nowhere".parse()?, 5)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fork`](Self::fork), and [`SessionError::NoMessage`] if the thread has fewer messages.
    pub async fn fork_before(&self, thread: ThreadId, message: usize) -> Result<SessionBuilder> {
        let found = self.messages().len();
        if message > found {
            return Err(SessionError::NoMessage { message, found });
        }
        let mut journal = Journal::new(self.whole_log().await?.forked(thread));
        if message < found {
            journal.append(self.now(), Event::Truncated { from: found, len: message })?;
        }
        Ok(SessionBuilder {
            tools: self.tools.host.clone(),
            own_tools: self.tools.own(),
            settings: self.settings.clone(),
            policy: *self.auto.policy(),
            redactor: self.journal.redactor().cloned(),
            ..SessionBuilder::of(self.agent.fork(), Some(journal))
        })
    }
}
