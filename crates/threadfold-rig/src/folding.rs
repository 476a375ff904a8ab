//! The hook.

use std::sync::Arc;

use futures::lock::Mutex;
use rig_agent::agent::{
    AgentHook, CompletionCallAction, CompletionCallEvent, HookContext, ModelTurnAction,
    ModelTurnFinished, RequestPatch,
};
use rig_core::{
    DynModel,
    message::{AssistantContent, Message},
    operation::Completion,
};
use threadfold::{
    CompactionStrategy, Compactor, ContextWindow, Model, Usage, drive::Models, strategy::Brief,
};

use crate::{model::Writer, view::View};

/// The number of histories whose views are remembered.
const REMEMBERED: usize = 16;

/// The share of the window from which on a history is compacted, in percent.
const THRESHOLD: u64 = 80;

/// Compacts the history of a rig agent before the model call that would fill the window.
///
/// Add it to an agent with `add_hook`. Clones share their state, so keep one to ask for
/// [`compactions`](Self::compactions). One value serves any number of agents and concurrent runs: a
/// view belongs to the history that it was made of.
///
/// The whole history stays in rig: a hook changes what is sent. If a compaction fails, the whole
/// history is sent, and the provider decides.
#[derive(Clone, Debug)]
pub struct Folding {
    window: ContextWindow,
    strategy: Option<Arc<dyn CompactionStrategy>>,
    model: Option<Writer>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The views, the latest last.
    views: Vec<View>,
    compactions: usize,
    /// The usage of the latest answers, which are not in a history yet.
    reported: Vec<(Vec<AssistantContent>, Usage)>,
    /// Whether the provider refused the last request as too long.
    is_refused: bool,
}

impl Folding {
    /// A hook for a model with this context window, without a model for summaries.
    #[must_use]
    pub fn new(window: ContextWindow) -> Self {
        Self { window, strategy: None, model: None, state: Arc::default() }
    }

    /// Returns the hook with a completion model of rig that writes the summaries, usually a small
    /// one. If it fails, an extract takes the place of its summary.
    #[must_use]
    pub fn with_model(self, model: impl Into<DynModel<Completion>>) -> Self {
        Self { model: Some(Writer(model.into())), ..self }
    }

    /// Returns the hook with this strategy instead of the ladder of threadfold's sessions.
    #[must_use]
    pub fn with_strategy(self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        Self { strategy: Some(strategy), ..self }
    }

    /// The number of compactions so far.
    pub async fn compactions(&self) -> usize {
        self.state.lock().await.compactions
    }

    /// Tells the hook that the provider refused a request as too long although it seemed to fit: the
    /// next request is compacted to half. rig's runner ends a run with such an error, so the host
    /// calls this and prompts again, once.
    pub async fn refused(&self) {
        self.state.lock().await.is_refused = true;
    }

    /// What to send instead of this history before a prompt; `None` for the history itself.
    async fn fold(&self, history: &[Message], prompt: &Message) -> Option<Vec<Message>> {
        let mut state = self.state.lock().await;
        let known = state.views.iter().enumerate().filter(|(_, view)| view.is_of(history));
        let known = known.max_by_key(|(_, view)| view.read()).map(|(index, _)| index);
        let mut view = match known {
            Some(index) => state.views.remove(index),
            None => self.view(),
        };
        view.add(history, &mut state.reported);
        let is_refused = std::mem::take(&mut state.is_refused);
        let messages = self.compacted(&mut view, prompt, is_refused).await;
        state.compactions += usize::from(messages.is_some());
        if let Some(messages) = messages {
            view.replace(messages);
        }
        let sent = view.sent(history);
        state.views.push(view);
        let excess = state.views.len().saturating_sub(REMEMBERED);
        state.views.drain(..excess);
        sent
    }

    fn view(&self) -> View {
        let compactor = Compactor::default().with_window(self.window);
        let compactor = match &self.strategy {
            Some(strategy) => compactor.with_strategy(Arc::clone(strategy)),
            None => compactor,
        };
        View::new(compactor)
    }

    /// The messages of the view after a compaction; `None` if none is due or it failed.
    async fn compacted(
        &self,
        view: &mut View,
        prompt: &Message,
        is_refused: bool,
    ) -> Option<Vec<threadfold::Message>> {
        let mut messages = view.messages.clone();
        messages.push(crate::convert::read(prompt));
        view.compactor.observe(&messages);
        let tokens = view.compactor.context_tokens();
        let threshold = self.window.tokens() / 100 * THRESHOLD;
        if tokens <= threshold && !is_refused {
            return None;
        }
        let brief = match is_refused {
            true => Brief::from(tokens / 2),
            false => Brief::default(),
        };
        let conversation = self.model.as_ref().map(|model| model as &dyn Model);
        let models = Models { conversation, ..Models::default() };
        view.compactor.compact(&mut messages, brief, models).await.ok()?;
        // The prompt is sent by rig as it is.
        messages.pop();
        Some(messages)
    }
}

impl AgentHook for Folding {
    async fn on_completion_call(
        &self,
        _: &HookContext,
        event: CompletionCallEvent<'_>,
    ) -> CompletionCallAction {
        match self.fold(event.history, event.prompt).await {
            Some(history) => CompletionCallAction::patch(RequestPatch::new().history(history)),
            None => CompletionCallAction::Continue,
        }
    }

    async fn on_model_turn_finished(
        &self,
        _: &HookContext,
        event: ModelTurnFinished<'_>,
    ) -> ModelTurnAction {
        let tokens = (event.usage.input_tokens, event.usage.output_tokens);
        if let (Some(input), Some(output)) = tokens {
            let reported = &mut self.state.lock().await.reported;
            reported.push((event.content.clone(), Usage::new(input, output)));
            let excess = reported.len().saturating_sub(REMEMBERED);
            reported.drain(..excess);
        }
        ModelTurnAction::Continue
    }
}
