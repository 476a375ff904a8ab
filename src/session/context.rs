//! How full the context of a session is, and what the window is.

use super::{error::SessionError, session::Session};
use crate::{
    auto::Pressure,
    compaction::api::TokenUsageSummary,
    log::ContextCount,
    message::{ContextWindow, Message, Text, Turn},
};

impl Session {
    /// The window of the model: what the [builder](super::SessionBuilder::window) says, or else the
    /// agent or its model, or else the [table](ContextWindow::for_model) for the model that answered
    /// last; less where a refusal of the provider stated less. `None` where nobody knows.
    #[must_use]
    pub fn window(&self) -> Option<ContextWindow> {
        self.auto.window(self.host_window())
    }

    /// The window without what refusals stated.
    fn host_window(&self) -> Option<ContextWindow> {
        self.settings.window.or(self.agent.context_window()).or(self.table_window)
    }

    /// The tokens that the next request would have: what the provider counted last and an estimate
    /// of what came since, or an estimate of all.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Message, ModelAgent, Session, Turn, Usage, message::StopReason};
    /// use threadfold::testing::ScriptedModel;
    ///
    /// let answer = Message::assistant("Hello!");
    /// let turn = Turn::new(answer, StopReason::EndTurn, Some(Usage::new(900, 100)));
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new([turn])));
    /// let mut session = Session::builder(agent).system("Be brief.").build()?;
    /// assert_eq!(session.context_tokens(), 7, "nobody counted yet");
    /// block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(session.context_tokens(), 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.pressure(0).tokens()
    }

    /// What the thread has cost, and how full its context is.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let session = Session::builder(agent.with_window(ContextWindow::new(1_000))).build()?;
    /// let usage = session.token_usage();
    /// assert_eq!((usage.total_tokens, usage.context_limit), (0, Some(1_000)));
    /// # Ok::<(), threadfold::session::BuildError>(())
    /// ```
    #[must_use]
    pub fn token_usage(&self) -> TokenUsageSummary {
        TokenUsageSummary::new(self.log(), self.context_tokens(), self.window())
    }

    /// Learns from an answer how the provider counts and which model it is.
    pub(super) fn learn(&mut self, turn: &Turn) {
        self.table_window = table_window(&turn.message).or(self.table_window);
        let Some(usage) = turn.usage else { return };
        let estimated = self.agent.thread().size().tokens.saturating_add(self.overhead());
        // What cannot be of this request teaches nothing.
        let _ = self.ratio.learn(estimated, usage.input);
    }

    /// How full the context is before a request that goes on with the thread as it is.
    pub(super) fn pressure(&self, pending: u64) -> Pressure {
        let thread = self.agent.thread();
        let usage = thread.context_usage();
        let reported = match usage.counted {
            ContextCount::Reported(tokens) => Some(tokens),
            ContextCount::Estimated(_) | ContextCount::Unknown => None,
        };
        Pressure {
            window: self.host_window(),
            reported,
            since: usage.pending,
            thread: thread.size().tokens,
            overhead: self.overhead(),
            pending,
            output: self.settings.max_output.unwrap_or(0),
            newest: self.newest(),
        }
        .calibrated(&self.ratio)
    }

    /// How full the context is before this prompt is appended and sent. Everything before it may go.
    pub(super) fn pressure_before(&self, prompt: &Message) -> Pressure {
        let pending = self.agent.thread().counter().message(prompt);
        Pressure { newest: 0, ..self.pressure(pending) }
    }

    /// Estimated tokens that no compaction takes out of the thread: what the user typed last. Results
    /// can be trimmed, and rounds that are answered can be summed up.
    fn newest(&self) -> u64 {
        let thread = self.agent.thread();
        let typed = thread.messages().iter().rposition(Message::is_typed);
        typed.map_or(0, |message| thread.tokens_of(message))
    }

    /// Why a request cannot go out, part by part.
    pub(super) fn cannot_fit(
        &self,
        (floor, tokens, limit): (u64, u64, u64),
        tried: Option<Text>,
    ) -> SessionError {
        let counter = self.agent.thread().counter();
        let system = self.ratio.scale_up(counter.messages(&self.system_prompt()));
        let tools = self.ratio.scale_up(counter.tools(&self.specs));
        let newest = floor.saturating_sub(system.saturating_add(tools));
        SessionError::CannotFit { floor, tokens, limit, system, tools, newest, tried }
    }
}

/// The window of the model that wrote an answer, from the table.
pub(super) fn table_window(answer: &Message) -> Option<ContextWindow> {
    ContextWindow::for_model(answer.origin.as_ref()?.model.as_ref()?)
}
