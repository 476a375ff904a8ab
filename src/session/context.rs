//! The context usage and the window of a session.

use super::{error::SessionError, session::Session};
use crate::{
    auto::Pressure,
    compaction::api::TokenUsageSummary,
    log::{ContextCount, TotalUsage},
    message::{ContextWindow, Message, Text, Turn},
    tokens::Breakdown,
};

impl Session {
    /// The window of the model: from the [builder](super::SessionBuilder::window), else from the
    /// agent or its model, else from the [table](ContextWindow::for_model) for the model that
    /// answered last. A refusal of the provider can lower it. `None` if unknown.
    #[must_use]
    pub fn window(&self) -> Option<ContextWindow> {
        self.auto.window(self.host_window())
    }

    /// The window before any correction from refusals.
    fn host_window(&self) -> Option<ContextWindow> {
        self.settings.window.or(self.agent.context_window()).or(self.table_window)
    }

    /// The tokens of the next request: the larger of the provider's last count plus an estimate of
    /// what was appended since, and an estimate of the whole request.
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
        TokenUsageSummary::new(self.billed(), self.context_tokens(), self.window())
    }

    /// What the next request is made of: system prompt, tools, typed text, answers, results by tool,
    /// summaries and so on. The tokens of the parts sum up to [`context_tokens`](Self::context_tokens).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!"])));
    /// let mut session = Session::builder(agent).system("Be brief.").build()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// let breakdown = session.breakdown();
    /// assert_eq!(breakdown.tokens(), session.context_tokens());
    /// assert!(breakdown.to_string().contains("system prompt (1)"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn breakdown(&self) -> Breakdown {
        let counter = self.agent.thread().counter().as_ref();
        Breakdown::of(&self.request(), counter).scaled_to(self.context_tokens())
    }

    /// The tokens billed by all events of the log.
    pub(super) fn billed(&self) -> TotalUsage {
        let (read, mut billed) = self.billed;
        let later = self.log().since(read);
        later.iter().for_each(|logged| billed.record(&logged.event));
        billed
    }

    /// Updates the window and the token ratio from an answer.
    pub(super) fn learn(&mut self, turn: &Turn) {
        self.table_window = table_window(&turn.message).or(self.table_window);
        let Some(usage) = turn.usage else { return };
        let estimated = self.agent.thread().size().tokens.saturating_add(self.overhead());
        // A count that cannot be of this request is ignored.
        let _ = self.ratio.learn(estimated, usage.input);
    }

    /// The context usage of a request without a new prompt; `pending` are the estimated tokens of
    /// what is appended before it.
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

    /// The context usage before this prompt is appended and sent. A compaction may then remove
    /// everything else.
    pub(super) fn pressure_before(&self, prompt: &Message) -> Pressure {
        let pending = self.agent.thread().counter().message(prompt);
        Pressure { newest: 0, ..self.pressure(pending) }
    }

    /// Estimated tokens that no compaction removes: the last message that the user typed. Results
    /// can be trimmed, and answered rounds can be summarised.
    fn newest(&self) -> u64 {
        let thread = self.agent.thread();
        let typed = thread.messages().iter().rposition(Message::is_typed);
        typed.map_or(0, |message| thread.tokens_of(message))
    }

    /// The error for a request that cannot fit, with the size of each part.
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

/// The window of the model that wrote an answer, from the built-in table.
pub(super) fn table_window(answer: &Message) -> Option<ContextWindow> {
    ContextWindow::for_model(answer.origin.as_ref()?.model.as_ref()?)
}
