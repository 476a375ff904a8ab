//! The session: its state, its settings and its getters.

use std::{borrow::Cow, sync::Arc};

use super::{
    error::{Result, SessionError},
    handle::{SessionHandle, Shared},
};
use crate::{
    auto::{AutoCompactor, Output, Pressure},
    compaction::{Compaction, api::TokenUsageSummary},
    drive::Models,
    ledger::{Ledger, Moderators, TITLE},
    log::{Event, EventLog, for_appending},
    message::{
        Answer, CheckpointIds, CompactionId, ContextWindow, Message, Redactor, Text, ThreadId,
        Timestamp, ToolResult,
    },
    model::{Agent, AgentModel, Clock, Model, Tools, std_clock},
    notes::Notes,
    retention::RetentionPolicy,
    store::Journal,
    strategy::{CompactionStrategy, Ladder, StrategyRegistry},
    tokens::{self, BreakdownPart, ByteEstimate, TokenCounter},
};

/// The result of a call that has ended.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) result: ToolResult,
    /// Whether the result was too long and was shortened, so that the log has the whole.
    pub(super) is_cut: bool,
}

/// An agent thread that stays inside its model's context window. See the [module](super) for the
/// guarantees.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
///
/// let model = ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]);
/// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
/// let builder = Session::builder(ModelAgent::new(Arc::new(model))).strategy(Arc::new(keep));
/// let mut session = builder.build()?;
/// for question in ["Where is the parser?", "How long is it?", "/compact"] {
///     block_on(async { session.send(question).await })?;
/// }
/// assert_eq!(session.messages().len(), 2);
/// assert_eq!(session.log().standing().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    /// The live thread and its model.
    pub(super) agent: Box<dyn Agent>,
    /// The log and its store.
    pub(super) journal: Journal,
    pub(super) settings: Settings,
    pub(super) tools: Tools,
    /// Decides when to compact.
    pub(super) auto: AutoCompactor,
    /// The compaction in flight. It stays here until its end event was delivered.
    pub(super) compaction: Option<Compaction>,
    /// The trigger's response to the end of that compaction, emitted after the end event.
    pub(super) notice: Option<Output>,
    /// Lowest compaction id that no job has reserved.
    pub(super) reserved: CompactionId,
    /// Whether a turn started and has not ended.
    pub(super) in_turn: bool,
    /// The results of the calls that run, by their positions. After a dropped turn, those of the calls
    /// that had finished.
    pub(super) results: Vec<Option<Finished>>,
    /// Whether the next appended message is the one of the open stream, and not a queued text.
    pub(super) is_own_input: bool,
    /// Output tokens since the last reminder.
    pub(super) unreminded: u64,
    pub(super) ids: CheckpointIds,
    /// The time for log entries; read again after every await that can take long.
    pub(super) at: Timestamp,
    /// Estimated tokens of system prompt and tools.
    pub(super) overhead: u64,
    /// Window of the model that answered last, from the built-in table.
    pub(super) table_window: Option<ContextWindow>,
    /// State shared with handles and streams.
    pub(super) shared: Arc<Shared>,
}

options! {
    /// The settings that a builder collects, a session keeps and a fork inherits.
    #[derive(Clone, Debug)]
    pub(super) struct Settings {
        pub(super) system: Arc<Vec<Message>> = Arc::default(),
        pub(super) reminder: Option<Text> = None,
        pub(super) remind_every: Option<u64> = None,
        pub(super) strategy: Arc<dyn CompactionStrategy> = Arc::new(Ladder::default()),
        /// The strategies that can be chosen by name.
        pub(super) registry: StrategyRegistry = StrategyRegistry::default(),
        pub(super) fast: Option<Arc<dyn Model>> = None,
        pub(super) retention: Option<RetentionPolicy> = Some(RetentionPolicy::default()),
        pub(super) rules_in_system_prompt: bool = false,
        /// Whose commands count, and who can lift what others said.
        pub(super) moderators: Moderators = Moderators::Everybody,
        pub(super) window: Option<ContextWindow> = None,
        pub(super) max_output: Option<u64> = None,
        pub(super) max_rounds: u32 = 100,
        /// The most tokens of a tool result in the thread.
        pub(super) max_tool_result: Option<u64> = None,
        /// Whether a panic of a tool is passed on to the host.
        pub(super) tool_panics_unwind: bool = false,
        pub(super) clock: Arc<dyn Clock> = Arc::new(std_clock()),
        pub(super) seed: u64 = 0,
        /// Counts the tokens of messages that no provider has counted.
        pub(super) counter: Arc<dyn TokenCounter> = Arc::new(ByteEstimate::TRIGGER),
        /// Whether user messages get checkpoints although no tool reads them.
        pub(super) checkpoints: bool = false,
    }
}

impl Settings {
    /// The models of a compaction.
    pub(super) fn models<'a>(
        &'a self,
        conversation: &'a AgentModel<'_>,
        redactor: Option<&'a dyn Redactor>,
    ) -> Models<'a> {
        let (fast, clock) = (self.fast.as_deref(), Some(self.clock.as_ref()));
        Models { conversation: Some(conversation), fast, clock, redactor }
    }
}

impl Session {
    /// Returns a handle that controls the session while a turn borrows it.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle { shared: Arc::clone(&self.shared) }
    }

    /// Updates the messages that handles show.
    pub(super) fn show(&mut self) {
        self.shared.lock().messages = Arc::new(self.messages().to_vec());
        self.shared.lock().usage = self.token_usage();
    }

    /// Appends a message to those that handles show.
    pub(super) fn show_next(&mut self, message: Message) {
        for_appending(&mut self.shared.lock().messages).push(message);
        self.shared.lock().usage = self.token_usage();
    }

    /// The messages of the next request.
    #[must_use]
    pub fn messages(&self) -> &Arc<Vec<Message>> {
        self.journal.thread().messages()
    }

    /// The log: every message, compaction and rule change. With a store, memory holds only the
    /// latest events of a long thread: [`EventLog::base`].
    #[must_use]
    pub fn log(&self) -> &EventLog {
        self.journal.log()
    }

    /// Returns the log with all its events, read from the store if memory does not hold them.
    ///
    /// ```
    /// # use futures::executor::block_on;
    /// # use std::sync::Arc;
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// use threadfold::store::MemoryStore;
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!"])));
    /// let builder = Session::builder(agent).thread("main".parse()?);
    /// let mut session = block_on(builder.store(Arc::new(MemoryStore::default())).open())?;
    /// block_on(async { session.send("Hi.").await })?;
    /// let log = block_on(session.whole_log())?;
    /// assert_eq!((log.base(), log.replay()), (0, session.messages().to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Store`] if the store cannot be read, or if it now holds a different log.
    pub async fn whole_log(&self) -> Result<Cow<'_, EventLog>> {
        Ok(self.journal.whole().await?)
    }

    /// The id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        self.journal.log().thread_id()
    }

    /// The window of the model: from the [builder](super::SessionBuilder::window), else from the
    /// agent or its model, else from the [table](ContextWindow::for_model) for the model that
    /// answered last. A refusal of the provider can lower it. `None` if unknown.
    #[must_use]
    pub fn window(&self) -> Option<ContextWindow> {
        self.auto.window(self.host_window())
    }

    /// The window before any correction from refusals.
    pub(super) fn host_window(&self) -> Option<ContextWindow> {
        self.settings.window.or(self.agent.context_window()).or(self.table_window)
    }

    /// The tokens of the next request: the larger of two numbers: the provider's last count plus an
    /// estimate of the messages appended since, and an estimate of the whole request.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Answer, Message, ModelAgent, Session, Usage, message::StopReason};
    /// use threadfold::testing::ScriptedModel;
    ///
    /// let message = Message::assistant("Hello!");
    /// let answer = Answer::new(message, StopReason::EndTurn, Some(Usage::new(900, 100)));
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new([answer])));
    /// let mut session = Session::builder(agent).system("Be brief.").build()?;
    /// assert_eq!(session.context_tokens(), 7, "no count so far");
    /// block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(session.context_tokens(), 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.pressure(0).calibrated(self.auto.ratio()).tokens()
    }

    /// The tokens billed so far and the context usage.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let session = Session::builder(agent.with_window(ContextWindow::new(1_000))).build()?;
    /// let usage = session.token_usage();
    /// assert_eq!((usage.total_tokens, usage.context_limit), (0, Some(1_000)));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn token_usage(&self) -> TokenUsageSummary {
        TokenUsageSummary::new(self.log().billed(), self.context_tokens(), self.window())
    }

    /// The parts of the next request with their tokens: system prompt, tools, typed text, answers,
    /// results by tool, summaries and so on. Their sum is [`context_tokens`](Self::context_tokens).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!"])));
    /// let mut session = Session::builder(agent).system("Be brief.").build()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// let parts = session.breakdown();
    /// assert_eq!(parts.iter().map(|part| part.tokens).sum::<u64>(), session.context_tokens());
    /// assert!(parts[0].to_string().ends_with("  system prompt (1)"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn breakdown(&self) -> Vec<BreakdownPart> {
        let parts = tokens::breakdown(&self.request(), self.journal.thread().counter().as_ref());
        tokens::scaled_to(parts, self.context_tokens())
    }

    /// Updates the window and the token ratio from an answer.
    pub(super) fn learn(&mut self, answer: &Answer) {
        self.table_window = table_window(&answer.message).or(self.table_window);
        let Some(usage) = answer.usage else { return };
        // A count that cannot belong to this request teaches nothing.
        let _ = self.auto.counted(self.pressure(0).estimate(), usage.input);
    }

    /// The pressure of a request without a new prompt. `pending` is the estimated tokens of
    /// messages that are appended before it.
    pub(super) fn pressure(&self, pending: u64) -> Pressure {
        Pressure {
            window: self.host_window(),
            overhead: self.overhead(),
            pending,
            output: self.settings.max_output.unwrap_or(0),
            ..Pressure::of(self.journal.thread())
        }
    }

    /// The pressure of the request with this prompt, which is not appended yet.
    pub(super) fn pressure_before(&self, prompt: &Message) -> Pressure {
        let pressure = self.pressure(self.journal.thread().counter().message(prompt));
        // The prompt is then what was typed last.
        let said = if prompt.is_typed() { 0 } else { pressure.said };
        Pressure { said, ..pressure }
    }

    /// The error for a request that cannot fit, with the size of each part.
    pub(super) fn cannot_fit(
        &self,
        (floor, tokens, limit): (u64, u64, u64),
        tried: Option<Text>,
    ) -> SessionError {
        let counter = self.journal.thread().counter();
        let ratio = self.auto.ratio();
        let system = ratio.scale(counter.messages(&self.system_prompt()));
        let tools = ratio.scale(counter.tools(&self.tools.specs));
        let newest = floor.saturating_sub(system.saturating_add(tools));
        SessionError::CannotFit { floor, tokens, limit, system, tools, newest, tried }
    }
}

/// The window of the model that wrote an answer, from the built-in table.
pub(super) fn table_window(answer: &Message) -> Option<ContextWindow> {
    ContextWindow::for_model(answer.origin.as_ref()?.model.as_ref()?)
}

impl Session {
    /// Returns the standing rules of user and host, redacted and including revoked ones.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Fixed."]));
    /// let builder = Session::builder(ModelAgent::new(model)).rule("Never touch the lexer.");
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Fix the parser.").await })?;
    /// assert_eq!(session.rules().to_string(), "- Never touch the lexer.\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rules(&self) -> &Ledger {
        self.journal.rules()
    }

    /// Adds a standing rule and returns its id. It is logged at once and stored with the next turn.
    ///
    /// The model sees it after the next summary, or in the system prompt with
    /// [`rules_in_system_prompt`](super::SessionBuilder::rules_in_system_prompt).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let mut session = Session::builder(agent).build()?;
    /// let id = session.add_rule("Never send mails.")?;
    /// assert_eq!(session.rules().active().count(), 1);
    /// assert!(session.revoke_rule(&id)?);
    /// assert_eq!(session.rules().active().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] if the text is blank or too long, or there are too many rules.
    pub fn add_rule(&mut self, text: impl Into<Text>) -> Result<Text> {
        let text: Text = text.into();
        let shown = self.journal.redacted_text(text.clone());
        let mut rules = self.rules().clone();
        let id = rules.add(&shown)?;
        let now = self.now();
        self.journal.append(now, Event::RuleAdded { text })?;
        Ok(self.rules().find(&shown).map_or(id, |rule| rule.id.clone()))
    }

    /// Revokes a rule of user or host, and returns whether it was active. The change is logged at
    /// once and stored with the next turn.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Fixed."]));
    /// let builder = Session::builder(ModelAgent::new(model)).rule("Never touch the lexer.");
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Fix the parser.").await })?;
    /// let id = session.rules().active().next().ok_or("the host gave a rule")?.id.clone();
    /// assert!(session.revoke_rule(&id)?);
    /// assert!(!session.revoke_rule(&id)?, "it holds no more");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Log`], which does not occur for a change of rules.
    pub fn revoke_rule(&mut self, id: &str) -> Result<bool> {
        if !self.rules().active().any(|rule| rule.id == id) {
            return Ok(false);
        }
        let now = self.now();
        self.journal.append(now, Event::RuleRevoked { id: id.into() })?;
        Ok(true)
    }

    /// Returns the notes that the agent wrote with the tool [`notes`](mod@crate::notes), redacted.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.journal.notes()
    }

    /// The system prompt, with the rules if the host put them there.
    pub(super) fn system_prompt(&self) -> Arc<Vec<Message>> {
        let Some(rules) = self.rules_to_send() else { return self.settings.system.clone() };
        Arc::new(self.settings.system.iter().cloned().chain([rules]).collect())
    }

    /// Estimated tokens of system prompt, rules and tools.
    pub(super) fn overhead(&self) -> u64 {
        let counter = self.journal.thread().counter();
        let rules = self.rules_to_send().map_or(0, |rules| counter.message(&rules));
        self.overhead.saturating_add(rules)
    }

    fn rules_to_send(&self) -> Option<Message> {
        let asked = self.settings.rules_in_system_prompt && self.rules().active().next().is_some();
        asked.then(|| Message::system(format!("{TITLE}\n{}", self.rules())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::executor::block_on;

    use super::*;
    use crate::{ModelAgent, store::MemoryStore, testing::ScriptedModel};

    #[test]
    fn rules_are_read_when_somebody_asks() {
        let model = Arc::new(ScriptedModel::new(["Well.", "Well.", "Well."]));
        let mut session = Session::builder(ModelAgent::new(model)).build().unwrap();
        let mut said = Vec::new();
        let mut id = None;
        for text in ["Begin.", "Go on.", "You may touch the lexer now."] {
            block_on(async { session.send(text).await }).unwrap();
            assert!(!said.is_empty() || !session.journal.has_read_rules());
            match id.take() {
                None => id = Some(session.add_rule("Never touch the lexer.").unwrap()),
                Some(id) => assert!(session.revoke_rule(&id).unwrap()),
            }
            said.push(session.rules().to_string());
            assert_eq!(*session.rules(), session.log().rules(None));
        }
        let rule = "- Never touch the lexer.\n";
        assert_eq!(said, [rule, "", rule]);
    }

    #[test]
    fn rules_for_the_system_prompt_are_read_at_once_and_kept() {
        let model = Arc::new(ScriptedModel::new(["Well."]));
        let builder = Session::builder(ModelAgent::new(model)).rules_in_system_prompt();
        let builder = builder.thread("t".parse().unwrap()).store(Arc::new(MemoryStore::default()));
        let builder = builder.rule("Never touch the lexer.");
        let mut session = block_on(builder.open()).unwrap();
        block_on(async { session.send("Begin.").await }).unwrap();
        assert!(session.journal.has_read_rules());
        assert_eq!(session.system_prompt().len(), 1);
    }
}
