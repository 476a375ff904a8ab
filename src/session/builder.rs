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
    ledger::Moderators,
    message::{Author, ContextWindow, Message, Redactor, Text, ThreadId, ToolSpec},
    model::{Agent, Clock, Model, Tool},
    retention::RetentionPolicy,
    store::{Journal, ThreadStore},
    strategy::{CompactionStrategy, StrategyRegistry},
    tokens::TokenCounter,
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
    /// The log with which the host continues, if it has one.
    pub(super) journal: Option<Journal>,
    /// The id of the thread, which the store may hold.
    pub(super) thread: Option<ThreadId>,
    pub(super) store: Option<Arc<dyn ThreadStore>>,
    pub(super) settings: Settings,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) host_rules: Vec<Text>,
    pub(super) policy: AutoPolicy,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) own_tools: Vec<ToolSpec>,
    pub(super) observers: Observers,
    pub(super) messages: Vec<Message>,
}

impl Session {
    /// Returns the builder of a session over this agent.
    pub fn builder(agent: impl Agent + 'static) -> SessionBuilder {
        SessionBuilder::of(Box::new(agent), None)
    }
}

impl SessionBuilder {
    pub(super) fn of(agent: Box<dyn Agent>, journal: Option<Journal>) -> Self {
        Self {
            agent,
            journal,
            thread: None,
            store: None,
            settings: Settings::default(),
            redactor: None,
            host_rules: Vec::new(),
            // The trigger must work before the first answer, when no provider has reported a count.
            policy: AutoPolicy::default(),
            tools: Vec::new(),
            own_tools: Vec::new(),
            observers: Observers::default(),
            messages: Vec::new(),
        }
    }

    /// Returns the builder with a strategy from its [registry](Self::registry), given by name or by
    /// a [setting](StrategyRegistry::build).
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
    /// [`SessionError::Invalid`] if no registered strategy has the name, or the strategy does not
    /// take the options.
    pub fn strategy_named(mut self, strategy: impl Into<serde_json::Value>) -> Result<Self> {
        self.settings.strategy = self.settings.registry.build(&strategy.into())?;
        Ok(self)
    }
}

impl SessionBuilder {
    /// Returns the builder with the id of the thread, for example the id of a conversation in the
    /// host's database. By default the thread is new and gets a random id.
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
        self.thread = Some(id);
        self
    }

    /// Returns the builder with the store of the thread. [`open`](Self::open) loads the
    /// [thread](Self::thread) from it and has an example. The events that a [fork](Session::fork)
    /// inherits are written to it before the fork's first message.
    pub fn store(mut self, store: Arc<dyn ThreadStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Returns the builder with a log that the host loaded itself, of whose thread the session is. A
    /// log with messages replaces the agent's thread.
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
        self.journal = Some(journal);
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

    /// Returns the builder with a reminder that is appended to every message that the user sends.
    /// Tool results get none, unless the host sets an interval for them. Compactions strip
    /// reminders.
    pub fn reminder(mut self, text: impl Into<Text>) -> Self {
        self.settings.reminder = Some(text.into());
        self
    }

    /// Returns the builder that also appends the reminder to tool results, each time the model has
    /// written this many tokens since the last reminder. Without it, a model in a long tool loop
    /// forgets the reminder.
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

    /// Returns the builder with the registry in which strategies are looked up by name. The
    /// default, [`StrategyRegistry::default`], has all strategies of the crate.
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
    /// requests for summaries, summaries and batches, notices, errors of compactions, and text that a
    /// strategy rewrites, such as a trimmed result. It is not applied to the conversation with the
    /// agent's own model.
    ///
    /// ```
    /// # use std::{borrow::Cow, sync::Arc};
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
    /// session.add_rule("Never tell anybody sk-123.")?;
    /// assert_eq!(session.rules().to_string(), "- Never tell anybody [key].\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Returns the builder with a retention policy, which sets how many of the thread's facts must
    /// survive a compaction. `None` disables the check.
    ///
    /// Facts that a summary omits are appended to it as a list, as far as the policy and the window
    /// allow; the user's rules come first, word for word. The report of a compaction says what is
    /// kept. The default is [`RetentionPolicy::default`], and the example of [`RetentionPolicy`]
    /// sets another one.
    pub fn retention(mut self, policy: impl Into<Option<RetentionPolicy>>) -> Self {
        self.settings.retention = policy.into();
        self
    }

    /// Returns the builder with one more standing rule from the host. A rule that is already in the
    /// log is not added again, even if it has been revoked.
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

    /// Returns the builder with the people whose commands (`/compact`, `@compact`) count and who can
    /// lift standing statements of others, in a thread of several people. A command of anybody else, or
    /// of a text without an author, is an ordinary text. Everybody can take back what they themselves
    /// said. Without this call, everybody's commands and corrections count.
    ///
    /// The list belongs to the session, not to its log: a later session names its own. It does not
    /// concern what the host does, such as [`Session::compact`] and [`Session::revoke_rule`], nor a
    /// compaction that the model asks for with its [tool](Self::compact_tool).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, message::Author, testing::ScriptedModel};
    ///
    /// let [ann, bob]: [Author; 2] = ["ann".parse()?, "bob".parse()?];
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["I cannot do that."])));
    /// let mut session = Session::builder(agent).moderators([ann.clone()]).build()?;
    /// let reply = block_on(async { session.send_as(bob, "/compact").await })?;
    /// assert_eq!(reply.text, "I cannot do that.", "it was sent to the model");
    /// let reply = block_on(async { session.send_as(ann, "/compact").await })?;
    /// assert!(reply.text.starts_with("Not compacted"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn moderators(mut self, people: impl IntoIterator<Item = Author>) -> Self {
        self.settings.moderators = Moderators::Only(people.into_iter().collect());
        self
    }

    /// Returns the builder that puts the standing rules at the end of the system prompt of every
    /// request, instead of after the summaries. The model then sees a new rule at once, but every
    /// change of a rule invalidates the provider's prompt cache of the whole thread, because the
    /// system prompt comes first.
    pub fn rules_in_system_prompt(mut self) -> Self {
        self.settings.rules_in_system_prompt = true;
        self
    }

    /// Returns the builder with this policy of automatic compaction. The default is
    /// [`AutoPolicy::default`].
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
    /// for text in ["First, ", "Second, ", "Third, "] {
    ///     block_on(async { session.send(text.repeat(9)).await })?;
    /// }
    /// assert!(session.log().standing().count() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(mut self, policy: AutoPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the builder with the model's context window, which overrides the agent's own value.
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

    /// Returns the builder with the maximum tokens of an answer. Every request states this limit,
    /// and this many tokens of the window are reserved for the answer.
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

    /// Returns the builder with an observer: a function that is called with every event of the
    /// session when it happens, including events of [adopted](Session::adopt) compactions, and with
    /// the error that ends a turn. If the stream of a turn is dropped, the observer gets
    /// [`Aborted`](SessionEvent::Aborted). A fork does not inherit observers.
    ///
    /// The turn waits while an observer runs, so it should be quick. A panic in it is ignored.
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

    /// Returns the builder with the messages that a new thread begins with. A log that holds a thread
    /// already goes before them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = ScriptedModel::new(["In src/parse.rs."]);
    /// let before = [Message::user("Remember: the parser is new."), Message::assistant("I will.")];
    /// let builder = Session::builder(ModelAgent::new(Arc::new(model.clone()))).messages(before);
    /// let mut session = builder.build()?;
    /// futures::executor::block_on(async { session.send("Where is it?").await })?;
    /// assert_eq!(model.requests()[0].messages.len(), 3);
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn messages(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages = messages.into_iter().collect();
        self
    }

    /// Returns the builder with the counter for messages that no provider has counted yet. The
    /// default is [`ByteEstimate::TRIGGER`](crate::tokens::ByteEstimate::TRIGGER).
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.settings.counter = counter;
        self
    }

    /// Returns the builder with the clock that supplies the times of log entries and the waits
    /// between retries. The default is the system clock. [`Clock`] has an example.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Returns the builder with checkpoints at the end of user messages, for a host that names ranges
    /// itself. Without this, only a session with `compact` or `recall` adds them.
    pub fn checkpoints(mut self) -> Self {
        self.settings.checkpoints = true;
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
    /// enters the thread, which then holds the head and the tail of its texts and a line that
    /// explains how to read the rest. The log holds the whole result, and
    /// [`recall`](Self::recall_tool) reads it by the id of the call. Results of `recall` itself are
    /// not cut.
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

    /// Returns the builder that passes panics of tools on to the caller that polls the turn. By
    /// default, a call whose tool panics gets an error result, and the other calls and the turn
    /// continue. Use this for tools whose state may be broken after a panic.
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

    /// Returns the builder with the tool [`notes`](mod@crate::notes), with which the model writes
    /// notes for itself. Every compaction keeps them word for word, whatever its strategy.
    ///
    /// All notes together have at most an eighth of the tokens of the model's window, and at most
    /// [`Notes::MAX_BYTES`](crate::notes::Notes::MAX_BYTES) bytes. A note that is too long gets an
    /// error result with the maximum.
    ///
    /// ```
    /// use {futures::executor::block_on, serde_json::json, std::sync::Arc};
    /// use threadfold::{Message, ModelAgent, Role, Session, message::ToolUse, testing::ScriptedModel};
    ///
    /// let note = ToolUse::new("t1", "notes", json!({"name": "port", "text": "8443"}));
    /// let script = [Message::new(Role::Assistant, vec![note.into()]), Message::assistant("Noted.")];
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script)));
    /// let mut session = Session::builder(agent).notes_tool().build()?;
    /// block_on(async { session.send("The port is 8443.").await })?;
    /// assert_eq!(session.notes().to_string(), "- port\n> 8443\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notes_tool(mut self) -> Self {
        self.own_tools.push(crate::notes::tool::spec());
        self
    }

    /// Returns the builder with the tool [`recall`](mod@crate::recall), with which the model reads
    /// messages that were compacted away. Its results are [redacted](Self::redactor).
    ///
    /// A result has at most an eighth of the tokens of the model's window, and at most
    /// [`MAX_BYTES`](crate::recall::MAX_BYTES) bytes. Search by words needs the feature `recall`.
    pub fn recall_tool(mut self) -> Self {
        self.own_tools.push(crate::recall::tool::spec());
        self
    }
}
