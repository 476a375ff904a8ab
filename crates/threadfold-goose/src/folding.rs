//! The step that asks the model, with a conversation that fits its window.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use goose_agent::{
    events::AgentEvent,
    machine::MachineSession,
    operation::{
        Emitter, Inference, InferenceInput, Operation, OperationResult, SlashCommand, applied,
        not_applicable, trailing_error, yielded_with,
    },
};
use goose_provider_types::conversation::{Conversation, message::MessageErrorKind};
use rmcp::model::Tool;
use threadfold::{
    CompactionStrategy, Compactor, ContextWindow, Message, async_trait,
    auto::Refusal,
    compactor::RequestStep,
    drive::Models,
    message::{Json, ToolSpec},
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
/// compacts it, and asks again. A request is sent at most three times. If the provider refuses it
/// whatever its size, the turn ends with the error, and the conversation is as before the first refusal.
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
    sessions: Mutex<Vec<Remembered>>,
}

/// What is remembered of a session.
#[derive(Clone, Debug)]
struct Remembered {
    id: String,
    compactor: Compactor,
    /// The conversation before the provider refused the request first, if it was not answered since.
    unrefused: Option<Conversation>,
    /// Whether the model was asked since the last compaction.
    is_asked: bool,
}

/// How the step goes on.
enum Next {
    /// Ask the model.
    Ask,
    /// Begin anew with this conversation.
    Replace(Conversation),
    /// End the turn with the provider's refusal; with the conversation as it was before, if it was
    /// compacted.
    End(Option<Conversation>),
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

    /// Decides how the step goes on, and compacts the conversation if that is next. The future may be
    /// dropped at any point: nothing is remembered before it ends.
    async fn next(
        &self,
        session: &str,
        conversation: &Conversation,
        input: &InferenceInput,
        is_refused: bool,
    ) -> Next {
        let mut session = self.find(session);
        let mut conversation = conversation.clone();
        let refusal = if is_refused { conversation.pop() } else { None };
        let seen = seen(&conversation);
        session.compactor = session.compactor.with_context(context(input), tools(&input.tools));
        session.compactor.observe_host(&seen);
        let models = self.model.as_ref().map_or_else(Models::default, Models::from);
        let clock = std_clock();
        let was_asked = std::mem::take(&mut session.is_asked);
        let mut step = if is_refused {
            session.unrefused.get_or_insert_with(|| conversation.clone());
            session.compactor.refused(clock.now(), Refusal::default())
        } else {
            session.unrefused = session.unrefused.filter(|_| !was_asked);
            session.compactor.before_request(clock.now())
        };
        let next = loop {
            match step {
                RequestStep::Compact(brief) => {
                    let planned = session.compactor.plan_host(&seen, brief, models).await;
                    if let Ok(planned) = planned {
                        break Next::Replace(folded(&conversation, &seen, &planned.plan));
                    }
                    step = session.compactor.before_request(clock.now());
                }
                // In any other case the model is asked: the provider decides.
                _ if !is_refused => {
                    session.is_asked = true;
                    break Next::Ask;
                }
                RequestStep::Send { .. } => break Next::Replace(conversation.clone()),
                RequestStep::GiveUp { .. } => {
                    let before = session.unrefused.take();
                    let mut before = before.filter(|before| *before != conversation);
                    before.iter_mut().for_each(|before| before.extend(refusal.clone()));
                    break Next::End(before);
                }
                _ => {
                    session.unrefused = None;
                    break Next::End(None);
                }
            }
        };
        self.remember(session);
        next
    }

    fn find(&self, id: &str) -> Remembered {
        let known = self.lock().iter().find(|session| session.id == id).cloned();
        known.unwrap_or_else(|| Remembered {
            id: id.to_owned(),
            compactor: self.compactor.clone(),
            unrefused: None,
            is_asked: false,
        })
    }

    fn remember(&self, session: Remembered) {
        let mut sessions = self.lock();
        sessions.retain(|old| old.id != session.id);
        sessions.push(session);
        let excess = sessions.len().saturating_sub(REMEMBERED);
        sessions.drain(..excess);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Remembered>> {
        // Nothing panics while it is held, and each session in it is whole.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let replaced = |conversation: Conversation| {
            emit.emit(AgentEvent::HistoryReplaced(conversation.clone()));
            [E::from(conversation)]
        };
        match self.next(session.id(), conversation, &input, is_refused).await {
            Next::Ask => self.inner.infer(session, conversation, input, emit).await,
            Next::Replace(conversation) => applied(replaced(conversation)),
            Next::End(Some(conversation)) => yielded_with(replaced(conversation)),
            Next::End(None) => not_applicable(),
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
