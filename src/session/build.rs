//! Building a session from the settings of its builder.

use std::sync::Arc;

use super::{
    builder::SessionBuilder,
    change::take_over,
    error::{Result, SessionError},
    handle::Shared,
    session::{Session, table_window},
};
use crate::{
    auto::AutoCompactor,
    log::{Counted, Event, EventLog, LoggedEvent},
    message::{CheckpointIds, CompactionId, ThreadId},
    model::Tools,
    store::Journal,
    tokens::Calibrated,
};

impl SessionBuilder {
    /// Opens the session: loads the [thread](Self::thread) from the [store](Self::store) and
    /// continues it. If the store has none with this id, the thread is that of the
    /// [journal](Self::journal) or the [fork](Session::fork), or else a new one. New events are
    /// written to the same store. Without a store, this is the same as [`build`](Self::build).
    ///
    /// The future writes nothing, so it may be dropped.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, store::MemoryStore, testing::ScriptedModel};
    ///
    /// let store = Arc::new(MemoryStore::default());
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!", "Again."])));
    /// let open = || {
    ///     let builder = Session::builder(agent.clone()).store(store.clone());
    ///     block_on(builder.thread("user-7".parse().unwrap()).open())
    /// };
    /// let mut session = open()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// let messages = session.messages().clone();
    /// drop(session);
    /// assert_eq!(open()?.messages()[..], messages[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), and [`SessionError::Store`] if the log cannot be loaded.
    pub async fn open(mut self) -> Result<Session> {
        if let (Some(thread), Some(store)) = (&self.thread, &self.store) {
            let stored = Journal::open(Arc::clone(store), thread.clone()).await?;
            if self.journal.is_none() || !stored.log().is_empty() {
                (self.journal, self.store) = (Some(stored), None);
            }
        }
        self.build()
    }

    /// Builds the session without reading a store. If the [journal](Self::journal) has messages,
    /// they replace those of the agent; otherwise the agent's messages are logged.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let error = Session::builder(agent).compact_tool().compact_tool().build().unwrap_err();
    /// assert_eq!(error.to_string(), "two tools are called compact");
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Invalid`] if a share in the policy is not between 0 and 1, or a rule is
    ///   not valid.
    /// - [`SessionError::NotLoaded`] if the builder has a thread id and a store, but no journal: the
    ///   store may hold the thread, so use [`open`](Self::open).
    /// - [`SessionError::OtherThread`] if the journal, or the session that was forked, is of another
    ///   thread than the builder names.
    /// - [`SessionError::Log`] if the log cannot be replayed.
    /// - [`SessionError::DoubleTool`] if two tools have the same name.
    pub fn build(self) -> Result<Session> {
        let auto = AutoCompactor::new(self.policy)?;
        let tools = Tools::new(self.tools, &self.own_tools);
        let tools = tools.map_err(|name| SessionError::DoubleTool { name })?;
        let mut agent = self.agent;
        let mut journal = match (self.journal, self.thread, &self.store) {
            (None, Some(thread), Some(_)) => return Err(SessionError::NotLoaded { thread }),
            (None, thread, _) => {
                Journal::new(EventLog::new(thread.unwrap_or_else(ThreadId::random)))
            }
            (Some(journal), Some(thread), _) if *journal.log().thread_id() != thread => {
                let found = journal.log().thread_id().clone();
                return Err(SessionError::OtherThread { thread, found });
            }
            (Some(journal), _, _) => journal,
        };
        if let Some(store) = self.store {
            journal = journal.kept_by(store);
        }
        if let Some(redactor) = self.redactor {
            journal = journal.with_redactor(redactor);
        }
        let now = self.settings.clock.now();
        let begun = |logged: &LoggedEvent| matches!(logged.event, Event::MessageAppended(_));
        let log = journal.log();
        let has_messages = log.base() > 0
            || !journal.thread().messages().is_empty()
            || log.events().iter().any(begun);
        if !has_messages {
            for message in self.messages {
                journal.append(now, Event::MessageAppended(message))?;
            }
        }
        journal = journal.with_counter(Arc::clone(&self.settings.counter));
        take_over(agent.as_mut(), journal.thread().messages());
        // The log's length varies the seed: a resumed session must not reuse an id from its log,
        // because an undo can bring that checkpoint back.
        let ids = CheckpointIds::new(self.settings.seed.wrapping_add(journal.log().len()));
        journal.add_rules(now, &self.host_rules)?;
        if self.settings.rules_in_system_prompt {
            journal.keep_rules();
        }
        let mut session = Session {
            table_window: journal.thread().messages().iter().rev().find_map(table_window),
            agent,
            journal,
            settings: self.settings,
            tools,
            auto,
            compaction: None,
            notice: None,
            reserved: CompactionId::default(),
            in_turn: false,
            is_own_input: false,
            results: Vec::new(),
            unreminded: 0,
            ids,
            at: now,
            overhead: 0,
            shared: Arc::new(Shared::new(self.observers)),
        };
        session.count_overhead();
        session.auto.raise_ratio(session.logged_ratio());
        Ok(session)
    }
}

impl Session {
    /// The ratio for messages that no answer of this session was counted with: the heaviest of the last
    /// count of the thread and of those before its compactions, which an undo brings back. It is never
    /// lighter than that of the estimate, because another model may count the next prompt.
    pub(super) fn logged_ratio(&self) -> Calibrated {
        let thread = self.journal.thread();
        let (reported, since) = thread.counted();
        let counted = reported.map(|tokens| Counted { tokens, since });
        let present = counted.map(|counted| (thread.size().tokens, counted));
        let compactions = self.log().compactions();
        let before = compactions.filter_map(|it| Some((it.report.before.tokens, it.counted?)));
        let mut ratio = Calibrated::default();
        for (size, Counted { tokens, since }) in present.into_iter().chain(before) {
            let estimated = size.saturating_sub(since).saturating_add(self.overhead());
            // A count that cannot belong to this context teaches nothing.
            let _ = tokens > ratio.scale(estimated) && ratio.learn_refusal(estimated, tokens);
        }
        ratio
    }
}
