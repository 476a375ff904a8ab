//! Building a session from the settings of its builder.

use super::error::SessionError;
use std::sync::Arc;

use super::{
    builder::{SessionBuilder, new_journal},
    context,
    handle::Shared,
    rules_cache::RulesCache,
    session::Session,
};
use crate::{
    auto::AutoCompactor,
    ledger::Ledger,
    log::{Event, LoggedFacts, RuleChange, Thread},
    message::{CheckpointIds, CompactionId, InvalidValue, Text, Timestamp, ToolSpec},
    store::Journal,
    tokens::Calibrated,
};

impl SessionBuilder {
    /// Builds the session. A log with messages replaces the agent's thread; if there is no log, or
    /// it is empty, the agent's messages are logged.
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
    /// - [`SessionError::Invalid`] if a share in the policy is not between 0 and 1, or a rule is not valid.
    /// - [`SessionError::Log`] if the log cannot be replayed.
    /// - [`SessionError::DoubleTool`] if two tools have the same name.
    pub fn build(self) -> Result<Session, SessionError> {
        let auto = AutoCompactor::new(self.policy)?;
        let specs = self.specs()?;
        let mut agent = self.agent;
        let mut journal = self.journal.unwrap_or_else(new_journal);
        let now = self.settings.clock.now();
        if journal.log().is_empty() {
            for message in agent.messages() {
                // A message always fits.
                let _ = journal.append(now, Event::MessageAppended(message.clone()));
            }
        } else {
            let log = journal.log();
            let counter = Arc::clone(agent.thread().counter());
            *agent.thread_mut() = Thread::restored(log.replay()?, log.events(), counter);
            agent.rewritten();
        }
        let counter = agent.thread().counter();
        let overhead =
            counter.messages(&self.settings.system).saturating_add(counter.tools(&specs));
        // The log's length varies the seed: a resumed session must not reuse an id from its log,
        // because an undo can bring that checkpoint back.
        let ids = CheckpointIds::new(self.settings.seed.wrapping_add(journal.log().len()));
        add_rules(&mut journal, &self.host_rules, now)?;
        Ok(Session {
            table_window: agent.messages().iter().rev().find_map(context::table_window),
            agent,
            journal,
            settings: self.settings,
            specs: specs.into(),
            auto,
            compaction: None,
            notice: None,
            reserved: CompactionId::default(),
            in_turn: false,
            unreminded: 0,
            facts: LoggedFacts::default(),
            rules: RulesCache::default(),
            ids,
            at: now,
            overhead,
            ratio: Calibrated::default(),
            shared: Arc::new(Shared::default()),
        })
    }

    fn specs(&self) -> Result<Vec<ToolSpec>, SessionError> {
        let own = self.own_tools.iter().cloned();
        let specs: Vec<ToolSpec> =
            self.settings.tools.iter().map(|tool| tool.spec()).chain(own).collect();
        let mut names: Vec<&Text> = specs.iter().map(|spec| &spec.name).collect();
        names.sort_unstable();
        let mut pairs = names.iter().zip(names.iter().skip(1));
        match pairs.find(|(one, other)| one == other) {
            Some((name, _)) => Err(SessionError::DoubleTool { name: (*name).clone() }),
            None => Ok(specs),
        }
    }
}

/// Logs the rules that the log does not have yet.
fn add_rules(journal: &mut Journal, rules: &[Text], now: Timestamp) -> Result<(), InvalidValue> {
    if rules.is_empty() {
        return Ok(());
    }
    let mut known = Ledger::default();
    for logged in journal.log() {
        if let Event::RuleChanged(RuleChange::Added { text }) = &logged.event {
            // A text that was refused as a rule when it was logged is refused again.
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
