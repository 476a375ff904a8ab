//! The session: its state and its getters.

use std::sync::Arc;

use super::{handle::SessionHandle, settings::Settings, shared::Shared};
use crate::{
    auto::{AutoCompactor, Output},
    compaction::Compaction,
    log::{EventLog, TotalUsage},
    message::{
        CheckpointIds, CompactionId, ContextWindow, Message, Messages, SharedVec, ThreadId,
        Timestamp, ToolSpec,
    },
    model::Agent,
    store::Journal,
    tokens::Calibrated,
};

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
    /// The host's tools, then the session's own.
    pub(super) specs: SharedVec<ToolSpec>,
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
    /// Output tokens since the last reminder.
    pub(super) unreminded: u64,
    pub(super) ids: CheckpointIds,
    /// Time for log entries, in milliseconds; read again after every await that can take long.
    pub(super) at: Timestamp,
    /// Estimated tokens of system prompt and tools.
    pub(super) overhead: u64,
    /// Ratio of reported to estimated tokens.
    pub(super) ratio: Calibrated,
    /// Window of the model that answered last, from the built-in table.
    pub(super) table_window: Option<ContextWindow>,
    /// The tokens billed by the events before this sequence number.
    pub(super) billed: (u64, TotalUsage),
    /// State shared with handles and streams.
    pub(super) shared: Arc<Shared>,
}

impl Session {
    /// Returns a handle that controls the session while a turn borrows it.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle { shared: Arc::clone(&self.shared) }
    }

    /// Shows the handles what the thread is now.
    pub(super) fn show(&mut self) {
        self.shared.lock().messages = self.messages().iter().cloned().collect();
        self.show_usage();
    }

    /// Shows the handles a message that was appended.
    pub(super) fn show_next(&mut self, message: Message) {
        self.shared.lock().messages.make_mut().push(message);
        self.show_usage();
    }

    fn show_usage(&mut self) {
        self.billed = (self.journal.log().len(), self.billed());
        self.shared.lock().usage = self.token_usage();
    }

    /// The messages of the next request.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        self.agent.messages()
    }

    /// The log: every message, compaction and rule change.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        self.journal.log()
    }

    /// The id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        self.journal.log().thread_id()
    }
}
