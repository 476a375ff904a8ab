//! Putting a session together.

use std::sync::Arc;

use super::{handle::Shared, known_rules::SessionRules, session::Session, tools};
use crate::{
    auto::{AutoCompactor, AutoPolicy, PolicyError},
    ledger::{Ledger, RuleError},
    log::{Event, EventLog, LoggedFacts, ReplayError, RuleChange, Thread},
    message::{
        CheckpointIds, CompactionId, Message, Messages, Redactor, Text, ThreadId, Timestamp,
        ToolSpec,
    },
    model::{Agent, Clock, Model, Sleeper, StdClock, StdSleeper, Tool},
    retention::RetentionPolicy,
    store::{Archive, Journal, StoreError, ThreadStore},
    strategy::{CompactionStrategy, Ladder},
    tokens::Calibrated,
};

/// Puts a [`Session`] together. Everything but the agent has a default.
#[derive(Debug)]
#[must_use]
pub struct SessionBuilder {
    pub(super) agent: Box<dyn Agent>,
    pub(super) journal: Option<Journal>,
    pub(super) archive: Option<Arc<dyn Archive>>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) system: Messages,
    pub(super) reminder: Option<Text>,
    pub(super) remind_every: Option<u64>,
    pub(super) strategy: Arc<dyn CompactionStrategy>,
    pub(super) fast: Option<Arc<dyn Model>>,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) retention: Option<RetentionPolicy>,
    pub(super) host_rules: Vec<Text>,
    pub(super) rules_in_system_prompt: bool,
    pub(super) policy: AutoPolicy,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sleeper: Arc<dyn Sleeper>,
    pub(super) seed: u64,
    pub(super) max_rounds: u32,
    pub(super) own_tools: Vec<ToolSpec>,
}

/// Why a session cannot be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The policy cannot be followed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The log cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A rule of the host cannot be one.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Two tools have one name.
    #[error("two tools are called {name}")]
    DoubleTool {
        /// The name.
        name: Text,
    },
}

impl Session {
    /// Returns what puts a session together over this agent.
    pub fn builder(agent: impl Agent + 'static) -> SessionBuilder {
        SessionBuilder {
            agent: Box::new(agent),
            journal: None,
            archive: None,
            tools: Vec::new(),
            system: Messages::default(),
            reminder: None,
            remind_every: None,
            strategy: Arc::new(Ladder::default()),
            fast: None,
            redactor: None,
            retention: Some(RetentionPolicy::default()),
            host_rules: Vec::new(),
            rules_in_system_prompt: false,
            policy: AutoPolicy::default(),
            clock: Arc::new(StdClock),
            sleeper: Arc::new(StdSleeper),
            seed: 0,
            max_rounds: 100,
            own_tools: Vec::new(),
        }
    }
}

impl SessionBuilder {
    /// Returns the builder with this log, and the store that keeps it. The thread of the agent is
    /// that of the log then, so this is how a session is taken up again: open the journal of its
    /// thread and hand it over.
    pub fn journal(self, journal: Journal) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Returns the builder with the log that a store has of a thread, and goes on keeping it there.
    /// A thread that the store does not know begins empty. As [`journal`](Self::journal), for a
    /// store that is to be asked first.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, store::MemoryStore, testing::ScriptedModel};
    ///
    /// let store = Arc::new(MemoryStore::default());
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["hello", "again"])));
    /// let builder = Session::builder(agent.clone());
    /// let mut session = block_on(builder.resume(store.clone(), "thread-1".parse()?))?.build()?;
    /// block_on(async { session.send("hi").await })?;
    /// let messages = session.messages().clone();
    /// drop(session);
    ///
    /// let builder = Session::builder(agent);
    /// let session = block_on(builder.resume(store, "thread-1".parse()?))?.build()?;
    /// assert_eq!(session.messages()[..], messages[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the log cannot be loaded.
    pub async fn resume(
        self,
        store: Arc<dyn ThreadStore>,
        thread: ThreadId,
    ) -> Result<Self, StoreError> {
        Ok(self.journal(Journal::open(store, thread).await?))
    }

    /// Returns the builder with a store for a thread that it does not know yet: that of a
    /// [fork](Session::fork), or a new one. Everything is written there before the first message.
    pub fn store(self, store: Arc<dyn ThreadStore>) -> Self {
        let journal = self.journal.unwrap_or_else(new_journal);
        Self { journal: Some(journal.kept_by(store)), ..self }
    }

    /// Returns the builder with a place for what compactions archive.
    pub fn archive(self, archive: Arc<dyn Archive>) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// Returns the builder with one tool more.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Returns the builder with a system prompt.
    pub fn system(self, text: impl Into<Text>) -> Self {
        Self { system: vec![Message::system(text)].into(), ..self }
    }

    /// Returns the builder with a hint that stands behind everything that the user types. It is
    /// stripped when the thread is compacted.
    pub fn reminder(self, text: impl Into<Text>) -> Self {
        Self { reminder: Some(text.into()), ..self }
    }

    /// Returns the builder with the hint behind the results of tools, too, whenever the model has
    /// written so many tokens since it read the hint last. A long tool loop forgets it otherwise.
    pub fn remind_every(self, output_tokens: u64) -> Self {
        Self { remind_every: Some(output_tokens), ..self }
    }

    /// Returns the builder with this way of compacting; by default [`Ladder::default`].
    pub fn strategy(self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        Self { strategy, ..self }
    }

    /// Returns the builder with a fast and cheap model for summaries; by default the agent's own is
    /// asked.
    pub fn fast_model(self, model: Arc<dyn Model>) -> Self {
        Self { fast: Some(model), ..self }
    }

    /// Returns the builder with what takes out of texts what must not leave the thread. Requests to
    /// a model that sums up, archive entries, summaries, notices and errors of compactions pass it,
    /// and so does what a strategy writes anew, such as a result that it trims. The conversation with
    /// the agent's own model does not.
    pub fn redactor(self, redactor: Arc<dyn Redactor>) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    /// How much of what was said has to stand behind a compaction; `None` for whatever does.
    ///
    /// What a summary leaves out is put behind it as a list, as far as the policy and the window
    /// allow; what the user demanded comes first, word for word. The report of a compaction says
    /// what is kept. Without this the default of [`RetentionPolicy`] holds.
    pub fn retention(self, policy: impl Into<Option<RetentionPolicy>>) -> Self {
        Self { retention: policy.into(), ..self }
    }

    /// Returns the builder with one standing rule more, which the host gives from the beginning. A
    /// log that knows the rule already keeps it as it is, also where it was taken back since.
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

    /// Returns the builder with the standing rules at the end of the system prompt of every request,
    /// instead of behind the summaries. The model sees them from the moment they are given; but each
    /// change of a rule makes the provider read the whole thread anew, because the system prompt
    /// comes first in its cache.
    pub fn rules_in_system_prompt(self) -> Self {
        Self { rules_in_system_prompt: true, ..self }
    }

    /// Returns the builder with this policy of automatic compaction.
    pub fn policy(self, policy: AutoPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Returns the builder with another clock.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the builder with another way to wait.
    pub fn sleeper(self, sleeper: Arc<dyn Sleeper>) -> Self {
        Self { sleeper, ..self }
    }

    /// Returns the builder with another seed for the names of checkpoints. A session over a log that
    /// has events already gives other names than one over a shorter log, with the same seed too.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns the builder with this many answers that a turn may have; by default 100.
    pub fn max_rounds(self, rounds: u32) -> Self {
        Self { max_rounds: rounds, ..self }
    }

    /// Returns the builder with the tool [`compact_context`](super::COMPACT_CONTEXT), by which the
    /// model has the thread compacted.
    pub fn compact_context_tool(mut self) -> Self {
        self.own_tools.push(tools::compact_context());
        self
    }

    /// Returns the builder with the tool [`compact`](super::COMPACT), by which the model replaces
    /// ranges between checkpoints with summaries that it writes itself.
    ///
    /// It is told in the tool's description when to do so, what checkpoints are and what makes a
    /// good summary. A call that names what is not there, or that would part a call from its result,
    /// gets an error result that says so, and nothing changes.
    pub fn compact_tool(mut self) -> Self {
        self.own_tools.push(tools::compact());
        self
    }

    /// Returns the builder with the tool [`recall`](mod@crate::recall), by which the model reads what
    /// was compacted away. What the [redactor](Self::redactor) takes out is not told.
    ///
    /// An answer is at most an eighth of the model's window, and at most
    /// [`MAX_BYTES`](crate::recall::MAX_BYTES). Words are searched for with the feature `recall`.
    pub fn recall_tool(mut self) -> Self {
        self.own_tools.push(crate::recall::tool::spec());
        self
    }

    /// Builds the session. A log that has messages takes the place of the agent's thread; messages
    /// that the agent has without a log are logged.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: a policy that cannot be followed, a log that cannot be replayed, two tools of
    /// one name, a rule that cannot be one.
    pub fn build(self) -> Result<Session, BuildError> {
        let auto = AutoCompactor::new(self.policy)?;
        let specs = self.specs()?;
        let mut agent = self.agent;
        let (mut journal, fresh) = match self.journal {
            Some(journal) => (journal, false),
            None => (new_journal(), true),
        };
        let now = self.clock.now();
        if fresh || journal.log().is_empty() {
            for message in agent.messages() {
                // A message always fits.
                let _ = journal.append(now, crate::log::Event::MessageAppended(message.clone()));
            }
        } else {
            let log = journal.log();
            let counter = Arc::clone(agent.thread().counter());
            *agent.thread_mut() = Thread::restored(log.replay()?, log.events(), counter);
            agent.rewritten();
        }
        let counter = agent.thread().counter();
        let overhead = counter.messages(&self.system).saturating_add(counter.tools(&specs));
        // A session that is taken up again must not give the names again that its log has: what a
        // compaction took out comes back with them.
        let ids = CheckpointIds::new(self.seed.wrapping_add(journal.log().len()));
        add_rules(&mut journal, &self.host_rules, now)?;
        Ok(Session {
            agent,
            journal,
            archive: self.archive,
            tools: self.tools,
            specs: specs.into(),
            system: self.system,
            reminder: self.reminder,
            remind_every: self.remind_every,
            unreminded: 0,
            strategy: self.strategy,
            fast: self.fast,
            redactor: self.redactor,
            retention: self.retention,
            facts: LoggedFacts::default(),
            rules: SessionRules::default(),
            rules_in_system_prompt: self.rules_in_system_prompt,
            auto,
            clock: self.clock,
            sleeper: self.sleeper,
            seed: self.seed,
            ids,
            max_rounds: self.max_rounds,
            overhead,
            unpromised: CompactionId::default(),
            ratio: Calibrated::default(),
            in_turn: false,
            begun: None,
            shared: Arc::new(Shared::default()),
        })
    }

    fn specs(&self) -> Result<Vec<ToolSpec>, BuildError> {
        let own = self.own_tools.iter().cloned();
        let specs: Vec<ToolSpec> = self.tools.iter().map(|tool| tool.spec()).chain(own).collect();
        let mut names: Vec<&Text> = specs.iter().map(|spec| &spec.name).collect();
        names.sort_unstable();
        let mut pairs = names.iter().zip(names.iter().skip(1));
        match pairs.find(|(one, other)| one == other) {
            Some((name, _)) => Err(BuildError::DoubleTool { name: (*name).clone() }),
            None => Ok(specs),
        }
    }
}

/// Notes the rules that the log does not know yet.
fn add_rules(journal: &mut Journal, rules: &[Text], now: Timestamp) -> Result<(), RuleError> {
    if rules.is_empty() {
        return Ok(());
    }
    let mut known = Ledger::default();
    for logged in journal.log() {
        if let Event::RuleChanged(RuleChange::Added { text }) = &logged.event {
            // What was no rule then is none.
            let _ = known.add(text);
        }
    }
    for text in rules {
        if known.find(text).is_none() {
            known.add(text)?;
            // The change of a rule always fits.
            let _ =
                journal.append(now, Event::RuleChanged(RuleChange::Added { text: text.clone() }));
        }
    }
    Ok(())
}

/// The journal of a thread that nothing is known of.
fn new_journal() -> Journal {
    Journal::new(EventLog::new(ThreadId::default()))
}
