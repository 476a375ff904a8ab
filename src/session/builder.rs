//! Putting a session together.

use std::sync::Arc;

use super::{handle::Shared, session::Session, tools};
use crate::{
    auto::{AutoCompactor, AutoPolicy, PolicyError},
    log::{EventLog, ReplayError, Thread},
    message::{CheckpointIds, Message, Messages, Text, ThreadId, ToolSpec},
    model::{Agent, Clock, Model, Sleeper, StdClock, StdSleeper, Tool},
    store::{Archive, Journal},
    strategy::{CompactionStrategy, Ladder},
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
    pub(super) strategy: Arc<dyn CompactionStrategy>,
    pub(super) fast: Option<Arc<dyn Model>>,
    pub(super) policy: AutoPolicy,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sleeper: Arc<dyn Sleeper>,
    pub(super) seed: u64,
    pub(super) max_rounds: u32,
    pub(super) compaction_tool: bool,
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
            strategy: Arc::new(Ladder::default()),
            fast: None,
            policy: AutoPolicy::default(),
            clock: Arc::new(StdClock),
            sleeper: Arc::new(StdSleeper),
            seed: 0,
            max_rounds: 100,
            compaction_tool: false,
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

    /// Returns the builder with this way of compacting; by default [`Ladder::default`].
    pub fn strategy(self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        Self { strategy, ..self }
    }

    /// Returns the builder with a fast and cheap model for summaries; by default the agent's own is
    /// asked.
    pub fn fast_model(self, model: Arc<dyn Model>) -> Self {
        Self { fast: Some(model), ..self }
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
    pub fn compaction_tool(self) -> Self {
        Self { compaction_tool: true, ..self }
    }

    /// Builds the session. A log that has messages takes the place of the agent's thread; messages
    /// that the agent has without a log are logged.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: a policy that cannot be followed, a log that cannot be replayed, two tools of
    /// one name.
    pub fn build(self) -> Result<Session, BuildError> {
        let auto = AutoCompactor::new(self.policy)?;
        let specs = self.specs()?;
        let mut agent = self.agent;
        let (mut journal, fresh) = match self.journal {
            Some(journal) => (journal, false),
            None => (Journal::new(EventLog::new(ThreadId::default())), true),
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
        Ok(Session {
            agent,
            journal,
            archive: self.archive,
            tools: self.tools,
            specs: specs.into(),
            system: self.system,
            reminder: self.reminder,
            strategy: self.strategy,
            fast: self.fast,
            auto,
            clock: self.clock,
            sleeper: self.sleeper,
            ids,
            max_rounds: self.max_rounds,
            overhead,
            in_turn: false,
            begun: None,
            shared: Arc::new(Shared::default()),
        })
    }

    fn specs(&self) -> Result<Vec<ToolSpec>, BuildError> {
        let own = self.compaction_tool.then(tools::compact_context);
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
