//! The step that asks the model, with a conversation that fits its window.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use goose_agent::{
    events::AgentEvent,
    machine::MachineSession,
    operation::{
        Emitter, Inference, InferenceInput, Operation, OperationResult, SlashCommand, applied,
        not_applicable, trailing_error,
    },
};
use goose_provider_types::conversation::{Conversation, message::MessageErrorKind};
use rmcp::model::Tool;
use threadfold::{
    CompactionStrategy, Compactor, ContextWindow, Message, async_trait,
    auto::Refusal,
    compactor::RequestStep,
    drive::Models,
    message::{Json, Timestamp, ToolSpec},
    model::{Clock, std_clock},
};

use crate::{
    host::{folded, seen},
    model::GooseModel,
};

/// The number of sessions that are remembered. One that was forgotten is read again.
const REMEMBERED: usize = 32;

/// The step that asks the model, wrapped: it replaces the conversation by a compacted one whenever the
/// request would not fit the window.
///
/// When to compact, [`Compactor::before_request`] decides, as in a session: at four fifths of the
/// window, by the estimate of threadfold, which the usage that the host stores on messages corrects.
/// System prompt and tools count. If no compaction helps, the request is sent as it is.
///
/// If the provider refuses a request as too long, the step takes the error out of the conversation,
/// compacts it, and asks again. A request is sent at most three times.
///
/// The effects of the host must be able to [replace a
/// conversation](goose_agent::operation::ConversationEffect::ReplaceConversation): `E:
/// From<Conversation>`. The event
/// [`HistoryReplaced`](goose_agent::events::AgentEvent::HistoryReplaced) is emitted for each compaction.
#[derive(Debug)]
pub struct Folding<I> {
    inner: I,
    compactor: Compactor,
    model: Option<GooseModel>,
    /// What is remembered of each session.
    sessions: Mutex<Vec<(String, Compactor)>>,
}

impl<I> Folding<I> {
    /// Returns the step with a context window of the model that it asks.
    pub fn new(inner: I, window: ContextWindow) -> Self {
        let compactor = Compactor::default().with_window(window);
        Self { inner, compactor, model: None, sessions: Mutex::default() }
    }

    /// Returns the step with a model that writes the summaries. Without one, a digest replaces the old
    /// part.
    #[must_use]
    pub fn with_model(self, model: GooseModel) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Returns the step with this strategy; the default is the ladder of threadfold's sessions.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        self.compactor = self.compactor.with_strategy(strategy);
        self
    }

    /// Returns the conversation with which the step begins anew: compacted, or without the provider's
    /// refusal, with which it ended. `None` if the model is asked with this one, or nothing helps.
    async fn compacted(
        &self,
        session: &str,
        conversation: &Conversation,
        input: &InferenceInput,
        is_refused: bool,
    ) -> Option<Conversation> {
        let compactor = self.take(session);
        let mut conversation = conversation.clone();
        if is_refused {
            conversation.pop();
        }
        let seen = seen(&conversation);
        let mut compactor = compactor.with_context(context(input), tools(&input.tools));
        compactor.observe_host(&seen);
        let mut step = match is_refused {
            true => compactor.refused(now(), Refusal::default()),
            false => compactor.before_request(now()),
        };
        let models = self.model.as_ref().map_or_else(Models::default, Models::from);
        let next = loop {
            let RequestStep::Compact(brief) = step else {
                let is_again = is_refused && matches!(step, RequestStep::Send);
                break is_again.then(|| conversation.clone());
            };
            if let Ok(planned) = compactor.plan_host(&seen, brief, models).await {
                break Some(folded(&conversation, &seen, &planned.plan));
            }
            step = compactor.before_request(now());
        };
        self.put(session, compactor);
        next
    }

    fn take(&self, session: &str) -> Compactor {
        let mut sessions = self.lock();
        match sessions.iter().position(|(id, _)| id == session) {
            Some(at) => sessions.remove(at).1,
            None => self.compactor.clone(),
        }
    }

    fn put(&self, session: &str, compactor: Compactor) {
        let mut sessions = self.lock();
        sessions.push((session.to_owned(), compactor));
        let excess = sessions.len().saturating_sub(REMEMBERED);
        sessions.drain(..excess);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, Compactor)>> {
        // Nothing panics while it is held, and each compactor in it is whole.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Timestamp {
    std_clock().now()
}

/// The texts that take room beside the messages: the system prompt, and what operations add at the end.
fn context(input: &InferenceInput) -> Vec<Message> {
    let prompts = input.prompt_parts.iter().map(|(_, text)| text).chain(&input.moim_parts);
    prompts.map(|text| Message::system(text.as_str())).collect()
}

fn tools(tools: &[Tool]) -> Vec<ToolSpec> {
    let tools = tools.iter().map(|tool| {
        let schema = Json::from(serde_json::Value::Object((*tool.input_schema).clone()));
        ToolSpec::new(&*tool.name, tool.description.as_deref().unwrap_or_default(), schema)
    });
    tools.collect()
}

fn is_refused(conversation: &Conversation) -> bool {
    trailing_error(conversation) == Some(MessageErrorKind::ContextLengthExceeded)
}

#[async_trait]
impl<S, E, I> Inference<S, E> for Folding<I>
where
    S: MachineSession,
    E: From<Conversation> + Send + 'static,
    I: Inference<S, E>,
{
    fn applies(&self, conversation: &Conversation) -> bool {
        is_refused(conversation) || self.inner.applies(conversation)
    }

    async fn prepare_session(&self, session: &S) -> Result<Option<S>> {
        self.inner.prepare_session(session).await
    }

    async fn infer(
        &self,
        session: &S,
        conversation: &Conversation,
        input: InferenceInput,
        emit: &Emitter,
    ) -> Result<OperationResult<E>> {
        let is_refused = is_refused(conversation);
        match self.compacted(session.id(), conversation, &input, is_refused).await {
            Some(compacted) => {
                emit.emit(AgentEvent::HistoryReplaced(compacted.clone()));
                applied([E::from(compacted)])
            }
            None if is_refused => not_applicable(),
            None => self.inner.infer(session, conversation, input, emit).await,
        }
    }
}

/// Everything else is the wrapped step's.
#[async_trait]
impl<S, E, I> Operation<S, E> for Folding<I>
where
    S: MachineSession,
    E: From<Conversation> + Send + 'static,
    I: Inference<S, E>,
{
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn finalize_cancellation(
        &self,
        session: &S,
        conversation: &Conversation,
        emit: &Emitter,
    ) -> Vec<E> {
        self.inner.finalize_cancellation(session, conversation, emit).await
    }

    async fn run_command(
        &self,
        command: &SlashCommand<'_>,
        session: &S,
        conversation: &Conversation,
        emit: &Emitter,
    ) -> Result<OperationResult<E>> {
        self.inner.run_command(command, session, conversation, emit).await
    }

    async fn inference_tools(&self, session: &S) -> Result<Vec<Tool>> {
        self.inner.inference_tools(session).await
    }

    async fn prompt_parts(
        &self,
        session: &S,
        conversation: &Conversation,
    ) -> Result<Vec<(String, String)>> {
        self.inner.prompt_parts(session, conversation).await
    }

    async fn moim_parts(&self, session: &S, conversation: &Conversation) -> Result<Vec<String>> {
        self.inner.moim_parts(session, conversation).await
    }

    async fn run(
        &self,
        session: &S,
        conversation: &Conversation,
        emit: &Emitter,
    ) -> Result<OperationResult<E>> {
        self.inner.run(session, conversation, emit).await
    }
}
