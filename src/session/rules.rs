//! The standing rules of a session.

use super::{error::SessionError, session::Session};
use crate::{
    ledger::{Ledger, TITLE},
    log::{Event, RuleChange},
    message::{Message, Text},
};
use std::sync::Arc;

impl Session {
    /// Returns the standing rules of user and host, revoked ones included, without what the
    /// redactor removes.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Fixed."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Fix the parser. Never touch the lexer.").await })?;
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
    pub fn add_rule(&mut self, text: impl Into<Text>) -> Result<Text, SessionError> {
        let text: Text = text.into();
        let shown = self.journal.shown(text.clone());
        let mut rules = self.rules().clone();
        let id = rules.add(&shown)?;
        self.change_rule(RuleChange::Added { text })?;
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
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Fix the parser. Never touch the lexer.").await })?;
    /// let id = session.rules().active().next().ok_or("the user gave a rule")?.id.clone();
    /// assert!(session.revoke_rule(&id)?);
    /// assert!(!session.revoke_rule(&id)?, "it holds no more");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Log`], which does not occur for a change of rules.
    pub fn revoke_rule(&mut self, id: &str) -> Result<bool, SessionError> {
        if !self.rules().active().any(|rule| rule.id == id) {
            return Ok(false);
        }
        self.change_rule(RuleChange::Revoked { id: id.into() })?;
        Ok(true)
    }

    fn change_rule(&mut self, change: RuleChange) -> Result<(), SessionError> {
        let now = self.now();
        self.journal.append(now, Event::RuleChanged(change))?;
        Ok(())
    }

    /// The system prompt, with the rules if the host put them there.
    pub(super) fn system_prompt(&self) -> Arc<Vec<Message>> {
        let Some(rules) = self.rules_to_send() else { return self.settings.system.clone() };
        Arc::new(self.settings.system.iter().cloned().chain([rules]).collect())
    }

    /// Estimated tokens of system prompt, rules and tools.
    pub(super) fn overhead(&self) -> u64 {
        let counter = self.agent.thread().counter();
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
        for text in ["Never touch the lexer.", "Go on.", "You may touch the lexer now."] {
            block_on(async { session.send(text).await }).unwrap();
            assert!(!session.journal.has_read_rules());
            said.push(session.rules().to_string());
            assert_eq!(*session.rules(), session.log().rules(None));
        }
        assert_eq!(said, ["- Never touch the lexer.\n", "- Never touch the lexer.\n", ""]);
    }

    #[test]
    fn rules_for_the_system_prompt_are_read_at_once_and_kept() {
        let model = Arc::new(ScriptedModel::new(["Well."]));
        let builder = Session::builder(ModelAgent::new(model)).rules_in_system_prompt();
        let builder = builder.thread("t".parse().unwrap()).store(Arc::new(MemoryStore::default()));
        let mut session = block_on(builder.open()).unwrap();
        block_on(async { session.send("Never touch the lexer.").await }).unwrap();
        assert!(session.journal.has_read_rules());
        assert_eq!(session.system_prompt().len(), 1);
    }
}
