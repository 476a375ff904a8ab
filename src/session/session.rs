//! The session: what it holds, and what can be asked of it.

use std::sync::Arc;

use super::{
    event::CompactionEvent,
    handle::{SessionHandle, Shared},
    known_rules::SessionRules,
};
use crate::{
    auto::AutoCompactor,
    log::{EventLog, LoggedFacts},
    message::{
        CheckpointIds, CompactionId, CompactionReason, ContextWindow, Messages, Redactor,
        SharedVec, Text, ThreadId, ToolSpec,
    },
    model::{Agent, Clock, Model, Sleeper, Tool},
    retention::RetentionPolicy,
    store::{Archive, Journal},
    strategy::CompactionStrategy,
    tokens::Calibrated,
};

/// An agent thread that never overflows. See the [module](super) for what holds.
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
    pub(super) agent: Box<dyn Agent>,
    pub(super) journal: Journal,
    pub(super) archive: Option<Arc<dyn Archive>>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) specs: SharedVec<ToolSpec>,
    pub(super) system: Messages,
    pub(super) reminder: Option<Text>,
    pub(super) remind_every: Option<u64>,
    /// Tokens that the model wrote since it was reminded.
    pub(super) unreminded: u64,
    pub(super) strategy: Arc<dyn CompactionStrategy>,
    pub(super) fast: Option<Arc<dyn Model>>,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) retention: Option<RetentionPolicy>,
    /// What was said so far, as far as a compaction had to know.
    pub(super) facts: LoggedFacts,
    /// The standing rules, as far as somebody had to know.
    pub(super) rules: SessionRules,
    pub(super) rules_in_system_prompt: bool,
    pub(super) auto: AutoCompactor,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sleeper: Arc<dyn Sleeper>,
    pub(super) ids: CheckpointIds,
    pub(super) seed: u64,
    pub(super) max_rounds: u32,
    /// Estimated tokens of system prompt and tools.
    pub(super) overhead: u64,
    /// The least number that no compaction was promised yet.
    pub(super) unpromised: CompactionId,
    /// How the provider counts what is estimated here.
    pub(super) ratio: Calibrated,
    /// Whether a turn began and has no end yet.
    pub(super) in_turn: bool,
    /// A compaction that began and has no end among the events yet.
    pub(super) begun: Option<Begun>,
    pub(super) shared: Arc<Shared>,
}

/// A compaction that began.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) id: CompactionId,
    pub(super) reason: CompactionReason,
    pub(super) strategy: Text,
    /// How it ended, where that is known and may not have been told yet.
    pub(super) end: Option<CompactionEvent>,
}

impl Session {
    /// What talks to the session while a turn goes on.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle::new(Arc::clone(&self.shared))
    }

    /// The messages that the model sees next.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        self.agent.messages()
    }

    /// Everything that happened.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        self.journal.log()
    }

    /// The number of the next compaction. What was promised to one that is prepared is left out, and
    /// that of one whose stream was dropped, which gets its end with the next turn.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let begun = self.begun.as_ref().map(|begun| begun.id.next()).unwrap_or_default();
        self.journal.log().next_compaction().max(self.unpromised).max(begun)
    }

    /// The thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        self.journal.log().thread_id()
    }

    /// The window of the model, where it is known.
    #[must_use]
    pub fn window(&self) -> Option<ContextWindow> {
        self.agent.context_window()
    }
}

const _: () = {
    const fn send<T: Send>() {}
    send::<Session>();
};
