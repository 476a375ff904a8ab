//! The builder of a session.

use std::sync::Arc;

use super::{
    error::{Result, SessionError},
    event::SessionEvent,
    handle::Observers,
    session::{Session, Settings},
};
use crate::{
    auto::AutoPolicy,
    compaction,
    log::EventLog,
    message::{ContextWindow, Message, Redactor, Text, ThreadId, ToolSpec},
    model::{Agent, Clock, Model, Tool},
    retention::RetentionPolicy,
    store::{Archive, Journal, ThreadStore},
    strategy::{CompactionStrategy, StrategyRegistry},
};

/// Builds a [`Session`]. Only the agent is required; everything else has a default.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{Message, ModelAgent, Session, testing::ScriptedModel};
///
/// let model = ScriptedModel::new(["Hello!"]);
/// let mut session = Session::builder(ModelAgent::new(Arc::new(model.clone())))
///     .system("Be brief.")
///     .rule("Never send mails.")
///     .rules_in_system_prompt()
///     .reminder("Answer in English.")
///     .compact_context_tool()
///     .recall_tool()
///     .build()?;
/// block_on(async { session.send("Hi.").await })?;
///
/// let request = &model.requests()[0];
/// assert_eq!(request.system[0], Message::system("Be brief."));
/// assert!(request.system[1].content[0].as_text().is_some_and(|text| text.contains("mails")));
/// assert_eq!(request.messages[0].content[1].kind(), "system_reminder");
/// let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
/// assert_eq!(tools, ["compact_context", "recall"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct SessionBuilder {
    pub(super) agent: Box<dyn Agent>,
    pub(super) journal: Journal,
    /// The id of the thread, which the store may hold; `None` if the journal is loaded.
    pub(super) thread: Option<ThreadId>,
    pub(super) store: Option<Arc<dyn ThreadStore>>,
    pub(super) settings: Settings,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) host_rules: Vec<Text>,
    pub(super) policy: AutoPolicy,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) own_tools: Vec<ToolSpec>,
    pub(super) observers: Observers,
}

impl Session {
    /// Returns the builder of a session over this agent.
    pub fn builder(agent: impl Agent + 'static) -> SessionBuilder {
        let log = EventLog::new(ThreadId::random());
        SessionBuilder::of(Box::new(agent), Journal::new(log))
    }
}

impl SessionBuilder {
    pub(super) fn of(agent: Box<dyn Agent>, journal: Journal) -> Self {
        Self {
            agent,
            journal,
            thread: None,
            store: None,
            settings: Settings::default(),
            redactor: None,
            host_rules: Vec::new(),
            // Until a provider reports a count, a session uses estimates.
            policy: AutoPolicy { estimates_usage: true, ..AutoPolicy::default() },
            tools: Vec::new(),
            own_tools: Vec::new(),
            observers: Observers::default(),
        }
    }

    /// Returns the builder with the strategy of this name in its [registry](Self::registry), or of
    /// this setting.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let session = Session::builder(agent.clone()).strategy_named("chunked")?.build()?;
    /// let error = Session::builder(agent).strategy_named("magic").unwrap_err();
    /// assert!(error.to_string().starts_with("\"magic\" is not a registered strategy"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] if no strategy has the name, or the options do not fit it.
    pub fn strategy_named(mut self, strategy: impl Into<serde_json::Value>) -> Result<Self> {
        self.settings.strategy = self.settings.registry.build(&strategy.into())?;
        Ok(self)
    }
}

impl SessionBuilder {
    /// Returns the builder with the id of the thread, such as the name of a user's conversation.
    /// Without one the thread is new, and its id is random.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let session = Session::builder(agent).thread("user-7".parse()?).build()?;
    /// assert_eq!(session.thread_id().as_str(), "user-7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn thread(mut self, id: ThreadId) -> Self {
        self.journal = Journal::new(EventLog::new(id.clone()));
        self.thread = Some(id);
        self
    }

    /// Returns the builder with the store of the thread. [`open`](Self::open) loads from it what it
    /// holds of the [thread](Self::thread). A [fork](Session::fork) is written to it before its
    /// first message. The example of [`open`](Self::open) uses one.
    pub fn store(mut self, store: Arc<dyn ThreadStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Returns the builder with a log that the host loaded itself. A log with messages replaces the
    /// agent's thread.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(0), Event::MessageAppended(Message::user("Hi.")))?;
    /// let session = Session::builder(agent).journal(Journal::new(log)).build()?;
    /// assert_eq!(session.messages()[0], Message::user("Hi."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn journal(mut self, journal: Journal) -> Self {
        (self.journal, self.thread) = (journal, None);
        self
    }

    /// Returns the builder with an archive for the entries that compactions write, such as a
    /// [`memory_archive`](crate::store::memory_archive).
    pub fn archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.settings.archive = Some(archive);
        self
    }

    /// Returns the builder with one more tool, which the model can call. [`Tool`] has an example.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Returns the builder with a system prompt.
    pub fn system(mut self, text: impl Into<Text>) -> Self {
        self.settings.system = vec![Message::system(text)].into();
        self
    }

    /// Returns the builder with a reminder that is appended to every user message. Compactions
    /// strip reminders.
    pub fn reminder(mut self, text: impl Into<Text>) -> Self {
        self.settings.reminder = Some(text.into());
        self
    }

    /// Returns the builder with the reminder also appended to tool results, whenever the model
    /// wrote this many tokens since the last one. In a long tool loop a model otherwise loses sight
    /// of it.
    pub fn remind_every(mut self, output_tokens: u64) -> Self {
        self.settings.remind_every = Some(output_tokens);
        self
    }

    /// Returns the builder with this compaction strategy; the default is
    /// [`Ladder::default`](crate::strategy::Ladder). The example of [`Session`] sets another one.
    pub fn strategy(mut self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        self.settings.strategy = strategy;
        self
    }

    /// Returns the builder with these strategies to choose from by name; the default is
    /// [`StrategyRegistry::default`], all strategies of the crate.
    pub fn registry(mut self, registry: StrategyRegistry) -> Self {
        self.settings.registry = registry;
        self
    }

    /// Returns the builder with a fast and cheap model for summaries; the default is the agent's
    /// own model.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// use threadfold::strategy::Summarize;
    ///
    /// # let story = "A long story. ".repeat(40);
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::new([story.as_str(), "Well."])));
    /// let fast = ScriptedModel::new(["They told stories."]);
    /// let text = Summarize { messages: 1, as_text: true, ..Summarize::default() };
    /// let builder = Session::builder(agent).strategy(Arc::new(text));
    /// let mut session = builder.fast_model(Arc::new(fast.clone())).build()?;
    /// for text in ["Tell me a story.", "Another one.", "/compact"] {
    ///     block_on(async { session.send(text).await })?;
    /// }
    /// assert_eq!(fast.requests().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fast_model(mut self, model: Arc<dyn Model>) -> Self {
        self.settings.fast = Some(model);
        self
    }

    /// Returns the builder with a redactor, which removes secrets from text. It is applied to
    /// requests for summaries, archive entries, summaries, notices, errors of compactions, and text
    /// that a strategy rewrites, such as a trimmed result. It is not applied to the conversation
    /// with the agent's own model.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::{borrow::Cow, sync::Arc}};
    /// # use threadfold::{ModelAgent, Session, message::Redactor, testing::ScriptedModel};
    /// # #[derive(Debug)]
    /// # struct Keys;
    /// # impl Redactor for Keys {
    /// #     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    /// #         text.replace("sk-123", "[key]").into()
    /// #     }
    /// # }
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["I keep it."])));
    /// let mut session = Session::builder(agent).redactor(Arc::new(Keys)).build()?;
    /// block_on(async { session.send("Never tell anybody sk-123.").await })?;
    /// assert_eq!(session.rules().to_string(), "- Never tell anybody [key].\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Returns the builder with a retention policy, which says how many of the thread's facts must
    /// survive a compaction; `None` turns the check off.
    ///
    /// Facts that a summary omits are appended to it as a list, as far as the policy and the window
    /// allow; the user's rules come first, word for word. The report of a compaction says what is
    /// kept. The default is [`RetentionPolicy::default`], and the example of [`RetentionPolicy`]
    /// sets another one.
    pub fn retention(mut self, policy: impl Into<Option<RetentionPolicy>>) -> Self {
        self.settings.retention = policy.into();
        self
    }

    /// Returns the builder with one more standing rule from the host. A rule that the log already
    /// has is not added again, even if it was revoked since.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let session = Session::builder(agent).rule("Never send mails.").build()?;
    /// assert_eq!(session.rules().to_string(), "- Never send mails.\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rule(mut self, text: impl Into<Text>) -> Self {
        self.host_rules.push(text.into());
        self
    }

    /// Returns the builder with the standing rules at the end of the system prompt of every
    /// request, instead of after the summaries. The model sees a rule at once; but every change of
    /// a rule invalidates the provider's cache of the whole thread, because the system prompt comes
    /// first.
    pub fn rules_in_system_prompt(mut self) -> Self {
        self.settings.rules_in_system_prompt = true;
        self
    }

    /// Returns the builder with this policy of automatic compaction. The default is
    /// [`AutoPolicy::default`], except that the session uses estimates until a provider has
    /// reported a count.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    /// # use threadfold::{auto::{AutoPolicy, Threshold}, strategy::KeepRecent};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["One.", "Two.", "Three."])));
    /// let policy = AutoPolicy { threshold: Threshold::Tokens(50), ..AutoPolicy::default() };
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(agent.with_window(ContextWindow::new(1_000)));
    /// let mut session = builder.policy(policy).strategy(Arc::new(keep)).build()?;
    /// for text in ["First.", "Second.", "Third."] {
    ///     block_on(async { session.send(text).await })?;
    /// }
    /// assert_eq!(session.log().standing().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(mut self, policy: AutoPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the builder with the model's context window. It overrides the window that the agent
    /// states.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let session = Session::builder(agent).window(ContextWindow::new(32_768)).build()?;
    /// assert_eq!(session.window(), Some(ContextWindow::new(32_768)));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn window(mut self, window: ContextWindow) -> Self {
        self.settings.window = Some(window);
        self
    }

    /// Returns the builder with the maximum tokens of an answer. Every request asks for this limit,
    /// and this many tokens of the window stay free.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc, threadfold::{ModelAgent, Session}};
    /// # use threadfold::testing::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let agent = ModelAgent::new(model.clone());
    /// let mut session = Session::builder(agent).max_output(4_096).build()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(model.requests()[0].max_output, Some(4_096));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.settings.max_output = Some(tokens);
        self
    }

    /// Returns the builder with an observer, which sees every event of the session when it happens,
    /// those of [adopted](Session::adopt) compactions too, and the error that ends a turn. A turn
    /// whose stream is dropped ends with [`Aborted`](SessionEvent::Aborted) for it. A fork does not
    /// inherit it.
    ///
    /// It is called between two steps of the turn, so it should be quick; a panic in it is ignored.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    /// use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let (model, seen) = (ScriptedModel::new(["Hello!"]), Arc::new(AtomicUsize::new(0)));
    /// let count = Arc::clone(&seen);
    /// let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
    ///     .window(ContextWindow::new(200_000))
    ///     .observe(move |_| drop(count.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(seen.load(Ordering::Relaxed), 2, "a text and the end of the turn");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe(
        mut self,
        observer: impl Fn(Result<&SessionEvent, &SessionError>) + Send + Sync + 'static,
    ) -> Self {
        self.observers.0.push(Arc::new(observer));
        self
    }

    /// Returns the builder with another clock, which gives the times of the log and waits between
    /// retries. [`Clock`] has an example; the default is the system clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Returns the builder with another seed for checkpoint ids. The ids also depend on the length
    /// of the log, so a resumed session does not repeat earlier ones.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Returns the builder with the maximum number of model answers in a turn; the default is 100.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{Message, ModelAgent, Role, Session};
    /// # use threadfold::{message::ToolUse, testing::ScriptedModel};
    /// # let read = || ToolUse::new("t1", "read", serde_json::json!({}));
    /// # let call = || Message::new(Role::Assistant, vec![read().into()]);
    /// # let model = Arc::new(ScriptedModel::new([call(), call(), call()]));
    /// let mut session = Session::builder(ModelAgent::new(model.clone())).max_rounds(2).build()?;
    /// let reply = block_on(async { session.send("Read everything.").await })?;
    /// assert!(reply.capped && model.remaining() == 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.settings.max_rounds = rounds;
        self
    }

    /// Returns the builder with the maximum tokens of a tool result. A longer one is cut before it
    /// enters the thread, which then holds the head and the tail of its texts and a line that says
    /// how to read the rest. The log holds the whole result, and [`recall`](Self::recall_tool)
    /// reads it by the id of the call. Results of `recall` itself are not cut.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, async_trait};
    /// # use threadfold::{ContentBlock, Message, Role, message::{ToolSpec, ToolUse}};
    /// # use threadfold::{model::{Tool, ToolContext, ToolOutput}, testing::ScriptedModel};
    /// # #[derive(Debug)]
    /// # struct Log;
    /// # #[async_trait]
    /// # impl Tool for Log {
    /// #     fn spec(&self) -> ToolSpec {
    /// #         ToolSpec::new("log", "Reads the log.", serde_json::json!({}))
    /// #     }
    /// #     async fn call(
    /// #         &self, _: &ToolUse, _: &ToolContext<'_>
    /// #     ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
    /// #         Ok("a line of the log\n".repeat(10_000).into())
    /// #     }
    /// # }
    /// # let call = ToolUse::new("t1", "log", serde_json::json!({}));
    /// # let call = Message::new(Role::Assistant, vec![call.into()]);
    /// # let script = [call, Message::assistant("I see.")];
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script)));
    /// let builder = Session::builder(agent).tool(Arc::new(Log)).recall_tool();
    /// let mut session = builder.max_tool_result(500).build()?;
    /// block_on(async { session.send("What does the log say?").await })?;
    /// let result = session.messages()[2].tool_results().next().ok_or("a result")?;
    /// let note = result.content.last().and_then(ContentBlock::as_text).ok_or("a note")?;
    /// assert!(note.contains("call recall with {\"call\":\"t1\"}"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_tool_result(mut self, tokens: u64) -> Self {
        self.settings.max_tool_result = Some(tokens);
        self
    }

    /// Returns the builder with panics of tools passed on to the caller that polls the turn. By
    /// default the call of a tool that panics gets an error result, and the other calls and the
    /// turn continue. Pass panics on for tools whose state a panic may leave broken.
    pub fn tool_panics_unwind(mut self) -> Self {
        self.settings.tool_panics_unwind = true;
        self
    }

    /// Returns the builder with the tool [`compact_context`](super::COMPACT_CONTEXT), with which
    /// the model asks the session to compact the thread.
    pub fn compact_context_tool(mut self) -> Self {
        self.own_tools.push(compaction::compact_context_tool());
        self
    }

    /// Returns the builder with the tool [`compact`](super::COMPACT), with which the model replaces
    /// ranges between checkpoints with summaries that it writes itself.
    ///
    /// The tool's description explains when to compact, what a checkpoint is and what makes a good
    /// summary. A call that names an unknown checkpoint or separates a call from its result gets an
    /// error result with the reason, and nothing changes.
    pub fn compact_tool(mut self) -> Self {
        self.own_tools.push(compaction::compact_tool());
        self
    }

    /// Returns the builder with the tool [`recall`](mod@crate::recall), with which the model reads
    /// what was compacted away. The answers pass the [redactor](Self::redactor).
    ///
    /// An answer has at most an eighth of the model's window, and at most
    /// [`MAX_BYTES`](crate::recall::MAX_BYTES) bytes. Search by words needs the feature `recall`.
    pub fn recall_tool(mut self) -> Self {
        self.own_tools.push(crate::recall::tool::spec());
        self
    }
}
