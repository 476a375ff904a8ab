//! The session: what it holds, and what can be asked of it.

use std::sync::Arc;

use super::{
    handle::{SessionHandle, Shared},
    rules_cache::RulesCache,
    settings::Settings,
};
use crate::{
    auto::{AutoCompactor, Output},
    compaction::Compaction,
    log::{EventLog, LoggedFacts},
    message::{
        CheckpointIds, CompactionId, ContextWindow, Messages, SharedVec, ThreadId, Timestamp,
        ToolSpec,
    },
    model::Agent,
    store::Journal,
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
    /// The live thread and the model behind it.
    pub(super) agent: Box<dyn Agent>,
    /// The log and its store.
    pub(super) journal: Journal,
    pub(super) settings: Settings,
    /// The tools of the host, then those of the session.
    pub(super) specs: SharedVec<ToolSpec>,
    /// Says when to compact.
    pub(super) auto: AutoCompactor,
    /// The compaction in flight, until its end was heard.
    pub(super) compaction: Option<Compaction>,
    /// What the trigger said to the end of that compaction, to be told after it.
    pub(super) notice: Option<Output>,
    /// Lowest compaction id that no job has reserved.
    pub(super) reserved: CompactionId,
    /// Whether a turn began and has no end yet.
    pub(super) in_turn: bool,
    /// Tokens that the model wrote since it was reminded.
    pub(super) unreminded: u64,
    /// The facts of everything that was said, computed when a compaction needs them.
    pub(super) facts: LoggedFacts,
    /// The standing rules, computed when somebody asks.
    pub(super) rules: RulesCache,
    pub(super) ids: CheckpointIds,
    /// The time of what comes into the log, read after everything that takes its time.
    pub(super) at: Timestamp,
    /// Estimated tokens of system prompt and tools.
    pub(super) overhead: u64,
    /// The tokens that the provider reports for one that is estimated here.
    pub(super) ratio: Calibrated,
    /// The window of the model that answered last, from the table.
    pub(super) table_window: Option<ContextWindow>,
    /// What the session shares with its handles and streams.
    pub(super) shared: Arc<Shared>,
}

impl Session {
    /// What talks to the session while a turn goes on.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle { shared: Arc::clone(&self.shared) }
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

    /// The name of the thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        self.journal.log().thread_id()
    }
}

const _: () = {
    const fn send<T: Send>() {}
    send::<Session>();
};
