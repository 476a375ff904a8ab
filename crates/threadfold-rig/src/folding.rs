//! The hook: what is sent in the place of a history that is too long.

use std::sync::{Arc, Mutex, PoisonError};

use rig_agent::agent::{
    AgentHook, DispatchAction, DispatchEvent, HookContext, OutcomeAction, OutcomeEvent, RunId,
    RunSettled, SettledOutcome,
};
use rig_core::{
    DynModel,
    completion::CompletionRequest,
    effect::{EffectId, EffectKind},
    message,
    operation::Completion,
};
use threadfold::{
    CompactionStrategy, Compactor, ContextWindow, Message,
    auto::Refusal,
    compactor::RequestStep,
    drive::Models,
    message::ToolSpec,
    model::{Clock, std_clock},
};

use crate::{
    host::{Shared, made},
    model::{RigModel, refusal_of, usage},
};

/// The number of conversations that a hook remembers. One that was forgotten is compacted again
/// from its history.
const REMEMBERED: usize = 32;

/// A hook that sends a compacted history whenever an agent's request would not fit the window.
///
/// One hook serves any number of runs and conversations at the same time: it finds the compacted
/// form of a history by its messages. What a run adds to the history is kept by rig as it is; only
/// the requests are shorter. The summaries live as long as the hook.
///
/// When to compact, [`Compactor::before_request`] decides, as in a session: at four fifths of the
/// window, by the estimate of threadfold, which the usage that providers report corrects. System
/// prompt, documents and tools count. If a compaction fails, the request is sent with the last
/// compacted history.
///
/// rig ends a run whose request the provider refused as too long. The hook learns from the refusal:
/// if the host prompts once more with the same history, it is compacted to what fits, or sent with a
/// smaller `max_tokens` if only both together were too long. A history that is refused whatever its
/// size is sent as it was before the first refusal.
///
/// Clones share what they remember.
#[derive(Clone, Debug)]
pub struct Folding {
    compactor: Compactor,
    model: Option<RigModel>,
    conversations: Arc<Mutex<Vec<Folded>>>,
}

/// A conversation and its compacted form.
#[derive(Clone, Debug)]
struct Folded {
    /// The messages of the last request, before the compaction.
    history: Vec<Arc<message::Message>>,
    /// What was sent.
    view: Vec<Shared>,
    /// What was sent before the provider refused the request first, if it was not answered since.
    unrefused: Option<Vec<Shared>>,
    compactor: Compactor,
    /// The last request of this conversation.
    sent: Option<EffectId>,
    /// The run that made it.
    run: Option<RunId>,
    /// What the provider stated when it refused it as too long.
    refusal: Option<Refusal>,
    /// The number of compactions.
    compactions: usize,
}

impl Folding {
    /// Returns a hook for models with this context window.
    ///
    /// ```
    /// use threadfold::ContextWindow;
    /// use threadfold_rig::Folding;
    ///
    /// let hook = Folding::new(ContextWindow::new(200_000));
    /// ```
    #[must_use]
    pub fn new(window: ContextWindow) -> Self {
        Self {
            compactor: Compactor::default().with_window(window),
            model: None,
            conversations: Arc::default(),
        }
    }

    /// Returns the hook with a model of rig that writes the summaries. Without one, a digest
    /// replaces the old part.
    ///
    /// ```
    /// use rig_core::test_utils::MockCompletionModel;
    /// use threadfold::ContextWindow;
    /// use threadfold_rig::Folding;
    ///
    /// let hook = Folding::new(ContextWindow::new(200_000))
    ///     .with_model(MockCompletionModel::text("They talked."));
    /// ```
    #[must_use]
    pub fn with_model(self, model: impl Into<DynModel<Completion>>) -> Self {
        Self { model: Some(RigModel::new(model)), ..self }
    }

    /// Returns the hook with this strategy; the default is the ladder of threadfold's sessions.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, strategy::Digest};
    /// use threadfold_rig::Folding;
    ///
    /// let hook = Folding::new(ContextWindow::new(200_000)).with_strategy(Arc::new(Digest::default()));
    /// ```
    #[must_use]
    pub fn with_strategy(mut self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        self.compactor = self.compactor.with_strategy(strategy);
        self
    }

    /// The number of compactions in the conversations that are remembered.
    #[must_use]
    pub fn compactions(&self) -> usize {
        self.lock().iter().map(|folded| folded.compactions).sum()
    }

    /// The form of the request that fits, or `None` if it fits as it is. The future may be dropped at
    /// any point: nothing is remembered before it ends.
    async fn folded(
        &self,
        run: RunId,
        id: EffectId,
        request: &CompletionRequest,
    ) -> Option<CompletionRequest> {
        let (system, history) = match request.chat_history.split_first() {
            Some((message::Message::System { content }, history)) => (Some(content), history),
            _ => (None, request.chat_history.as_slice()),
        };
        let mut folded = self.find(history);
        let new = history.get(folded.history.len()..).unwrap_or_default();
        for message in new.iter().cloned().map(Arc::new) {
            folded.view.push(Shared(Arc::clone(&message)));
            folded.unrefused.iter_mut().for_each(|view| view.push(Shared(Arc::clone(&message))));
            folded.history.push(message);
        }
        folded.compactor = folded
            .compactor
            .with_context(context(system, request), tools(request))
            .with_max_output(request.max_tokens);
        folded.compactor.observe_host(&folded.view);
        let models = self.model.as_ref().map_or_else(Models::default, Models::from);
        let clock = std_clock();
        let mut step = match folded.refusal.take() {
            Some(refusal) => {
                folded.unrefused.get_or_insert_with(|| folded.view.clone());
                folded.compactor.refused(clock.now(), refusal)
            }
            None => {
                folded.unrefused = None;
                folded.compactor.before_request(clock.now())
            }
        };
        while let RequestStep::Compact(brief) = step {
            let planned = folded.compactor.plan_host(&folded.view, brief, models).await;
            if let Ok(planned) = planned {
                let applied = planned.plan.apply(&mut folded.view, made);
                folded.compactions += usize::from(applied.is_ok());
            }
            step = folded.compactor.before_request(clock.now());
        }
        let max_tokens = match step {
            RequestStep::Send { max_output } => max_output,
            RequestStep::GiveUp { .. } => {
                folded.view = folded.unrefused.take().unwrap_or(folded.view);
                request.max_tokens
            }
            // The request is sent as it is: the provider decides.
            _ => request.max_tokens,
        };
        (folded.sent, folded.run) = (Some(id), Some(run));
        let is_same = folded.view.len() == folded.history.len() && {
            folded.view.iter().zip(&folded.history)
        }
        .all(|(sent, whole)| Arc::ptr_eq(&sent.0, whole));
        let patched = (!is_same || max_tokens != request.max_tokens).then(|| {
            let head = request.chat_history.len() - history.len();
            let head = request.chat_history.iter().take(head).cloned();
            let sent = folded.view.iter().map(|message| (*message.0).clone());
            let mut patched = request.clone();
            (patched.chat_history, patched.max_tokens) = (head.chain(sent).collect(), max_tokens);
            patched
        });
        self.put(folded);
        patched
    }

    /// The conversation that this history continues, the one with the most messages.
    fn find(&self, history: &[message::Message]) -> Folded {
        let conversations = self.lock();
        let continued = conversations.iter().filter(|folded| {
            folded.history.len() <= history.len() && { folded.history.iter().zip(history) }
                .all(|(one, other)| **one == *other)
        });
        continued.max_by_key(|folded| folded.history.len()).cloned().unwrap_or_else(|| Folded {
            history: Vec::new(),
            view: Vec::new(),
            unrefused: None,
            compactor: self.compactor.clone(),
            sent: None,
            run: None,
            refusal: None,
            compactions: 0,
        })
    }

    /// Remembers the conversation, in the place of the one that was found for it.
    fn put(&self, folded: Folded) {
        let mut conversations = self.lock();
        // If two runs continue one history, the second finds nothing in its place.
        let found = conversations.iter().position(|old| {
            old.history.len() <= folded.history.len() && { old.history.iter().zip(&folded.history) }
                .all(|(old, new)| Arc::ptr_eq(old, new))
        });
        if let Some(found) = found {
            conversations.remove(found);
        }
        conversations.push(folded);
        let excess = conversations.len().saturating_sub(REMEMBERED);
        conversations.drain(..excess);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Folded>> {
        // Nothing panics while it is held, and each conversation in it is whole.
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system prompt and the documents of a request, which take room beside its messages.
fn context(system: Option<&String>, request: &CompletionRequest) -> Vec<Message> {
    let documents = request
        .normalized_documents()
        .map(|documents| threadfold::foreign::shadow(&Shared(Arc::new(documents))));
    let system = system.map(|text| Message::system(text.as_str()));
    system.into_iter().chain(documents).collect()
}

fn tools(request: &CompletionRequest) -> Vec<ToolSpec> {
    let tools = request.tools.iter().map(|tool| {
        let schema = threadfold::message::Json::from(&tool.parameters);
        ToolSpec::new(tool.name.as_str(), tool.description.as_str(), schema)
    });
    tools.collect()
}

impl AgentHook for Folding {
    async fn on_dispatch(&self, ctx: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let EffectKind::Completion { request, stream } = event.kind else {
            return DispatchAction::Proceed;
        };
        match self.folded(ctx.run_id(), event.id, request).await {
            Some(request) => {
                DispatchAction::Patch(EffectKind::Completion { request, stream: *stream })
            }
            None => DispatchAction::Proceed,
        }
    }

    async fn on_outcome(&self, _ctx: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        let mut conversations = self.lock();
        let sent = conversations.iter_mut().find(|folded| folded.sent == Some(event.id));
        let Some(folded) = sent else { return OutcomeAction::Proceed };
        let reported = event.completion().and_then(|response| usage(&response.usage));
        // An implausible report is ignored.
        let _ = reported.map(|reported| folded.compactor.learn(reported));
        OutcomeAction::Proceed
    }

    async fn on_run_settled(&self, ctx: &HookContext, event: RunSettled<'_>) {
        let SettledOutcome::Error(error) = event.outcome else { return };
        let mut conversations = self.lock();
        let failed = conversations.iter_mut().find(|folded| folded.run == Some(ctx.run_id()));
        if let Some(folded) = failed {
            folded.refusal = refusal_of(error);
        }
    }
}
