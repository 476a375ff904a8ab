//! `ProviderThread` and `Agent`: the traits for adapters that keep the conversation themselves.
//!
//! A session owns its thread and reports each change, so an adapter keeps nothing, an array in the
//! provider's form, or the id of the last answer, and never a second copy of the messages.
//! [`Agent::answer`] answers the thread and may use the provider's state; [`Agent::ask`] answers
//! a question outside the conversation, such as one for a summary, and changes nothing.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};

use super::model::{self, Model};
use crate::{
    compact::{CompactError, CompactOptions, CompactReport, Plan, Replaced, Replacement},
    log::Thread,
    message::{Answer, ContextWindow, Delta, Message, ModelError, Request, Text},
};

/// What an adapter keeps of the thread for its provider: the messages in the provider's form, the id
/// of the last answer, or both.
///
/// The session owns the thread, so the adapter needs no copy of the messages. The session reports every
/// change to it right after the change, with what changed.
///
/// ```
/// use threadfold::{Message, ProviderThread, Replacement, Thread, compact::Replaced};
///
/// /// Keeps the messages as its provider reads them, and nothing else.
/// #[derive(Debug, Default)]
/// struct Native(Vec<String>);
///
/// fn native(message: &Message) -> String {
///     message.texts().map(|text| text.as_str()).collect()
/// }
///
/// impl ProviderThread for Native {
///     fn appended(&mut self, message: &Message) {
///         self.0.push(native(message));
///     }
///
///     fn rewritten(&mut self, replaced: &[Replaced<'_>], _thread: &[Message]) {
///         for Replaced { at, messages } in replaced.iter().rev() {
///             drop(self.0.splice(at.clone(), messages.iter().map(native)));
///         }
///     }
/// }
///
/// let (mut thread, mut adapter) = (Thread::default(), Native::default());
/// for message in [Message::user("Hi."), Message::assistant("Hello!")] {
///     adapter.appended(&message);
///     thread.push(message);
/// }
/// let report = adapter.compact(&mut thread, &[Replacement::new("We said hello.")])?;
/// assert_eq!((report.before.messages, adapter.0.len()), (2, 1));
/// # Ok::<(), threadfold::compact::CompactError>(())
/// ```
pub trait ProviderThread: fmt::Debug + Send + Sync {
    /// Called after a message was appended to the thread. An append leaves what the provider holds
    /// valid, so the default does nothing.
    fn appended(&mut self, _message: &Message) {}

    /// Called after every other change: a compaction, its undo, a truncation, the start of a session
    /// with the messages of a log. `replaced` are the changed ranges in the order of the thread, and
    /// `thread` is the whole thread as it is now. The adapter must drop what depends on the old
    /// messages: a previous-response id, a cached prefix.
    fn rewritten(&mut self, replaced: &[Replaced<'_>], thread: &[Message]);

    /// Replaces ranges of the thread, given by checkpoints, with summaries.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`]. Nothing has changed then, and nothing is announced.
    fn compact(
        &mut self,
        thread: &mut Thread,
        replacements: &[Replacement],
    ) -> Result<CompactReport, CompactError> {
        let plan = thread.plan(replacements, &CompactOptions::default())?;
        let before = thread.size();
        drop(self.apply(thread, &plan)?);
        Ok(CompactReport::new(before, thread.messages(), &plan, thread.counter().as_ref()))
    }

    /// Applies a plan to the thread, and returns the messages that it removed.
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan was made for another thread. Nothing has changed then, and
    /// nothing is announced.
    fn apply(&mut self, thread: &mut Thread, plan: &Plan) -> Result<Vec<Message>, CompactError> {
        let removed = thread.apply(plan)?;
        announce(self, plan, thread);
        Ok(removed)
    }
}

/// Tells a provider that a plan was applied to its thread.
pub(crate) fn announce<T: ProviderThread + ?Sized>(provider: &mut T, plan: &Plan, thread: &Thread) {
    if !plan.is_empty() {
        provider.rewritten(&plan.replaced(thread.messages()), thread.messages());
    }
}

/// A conversation whose requests a provider answers.
///
/// Implement it for a provider that keeps the conversation on its side. For any other provider
/// implement [`Model`]; [`ModelAgent`] turns it into an agent.
///
/// ```
/// use futures::{StreamExt, executor::block_on, stream::{self, BoxStream}};
/// use threadfold::message::{Delta, ModelError, StopReason};
/// use threadfold::{Agent, Answer, Message, ProviderThread, Request, Role, Session, compact::Replaced};
///
/// /// Answers with the number of messages that it had to send.
/// #[derive(Clone, Debug, Default)]
/// struct Stateful {
///     /// The messages of the newest request.
///     asked: usize,
///     /// The messages that the server has under the id of the last answer.
///     held: usize,
/// }
///
/// fn answer(sent: usize) -> BoxStream<'static, Result<Delta, ModelError>> {
///     let message = Message::assistant(format!("{sent} sent"));
///     let answer = Answer::new(message, StopReason::EndTurn, None);
///     stream::iter([Ok(Delta::Answer { answer })]).boxed()
/// }
///
/// impl ProviderThread for Stateful {
///     fn appended(&mut self, message: &Message) {
///         // The answer is in the thread, so the server has what was asked, and the answer.
///         if message.role == Role::Assistant {
///             self.held = self.asked + 1;
///         }
///     }
///
///     fn rewritten(&mut self, _replaced: &[Replaced<'_>], _thread: &[Message]) {
///         self.held = 0;
///     }
/// }
///
/// impl Agent for Stateful {
///     fn answer(&mut self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
///         self.asked = request.messages.len();
///         answer(self.asked - self.held)
///     }
///
///     fn ask(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
///         answer(request.messages.len())
///     }
///
///     fn fork(&self) -> Box<dyn Agent> {
///         Box::new(self.clone())
///     }
/// }
///
/// let mut session = Session::builder(Stateful::default()).build()?;
/// for text in ["Hi.", "And now?"] {
///     let reply = block_on(async { session.send(text).await })?;
///     assert_eq!(reply.text, "1 sent");
/// }
/// # Ok::<(), threadfold::session::SessionError>(())
/// ```
pub trait Agent: ProviderThread {
    /// Streams the model's answer to the thread as it is now, whose messages the request holds. The
    /// last item is [`Delta::Answer`] or an error. The adapter may use the provider's state instead of
    /// sending all messages. An answer that enters the thread is
    /// [announced](ProviderThread::appended) like any message; one that does not is forgotten.
    /// Dropping the stream cancels the request.
    fn answer(&mut self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>>;

    /// Streams the answer to a request outside the conversation, such as one for a summary. It must
    /// not change the adapter's state.
    fn ask(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>>;

    /// Lets the provider compact the messages of a request itself, as [`Model::compact_natively`]
    /// does, without changing its state. The default returns `None`.
    fn compact_natively(
        &self,
        _request: Request,
        _instructions: Option<Text>,
    ) -> BoxFuture<'_, Result<Option<Answer>, ModelError>> {
        future::ready(Ok(None)).boxed()
    }

    /// Whether the provider ties reasoning to the messages before it, as
    /// [`Model::binds_reasoning`] states. The default returns `false`.
    fn binds_reasoning(&self) -> bool {
        false
    }

    /// Returns the window of the model, in tokens, if it is known. The default returns `None`.
    fn context_window(&self) -> Option<ContextWindow> {
        None
    }

    /// Returns an independent agent with the same state, for a thread that begins as this one.
    fn fork(&self) -> Box<dyn Agent>;
}

/// An [`Agent`] over any [`Model`], which sends the whole conversation with every request and keeps
/// nothing of it.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
///
/// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["hello"])));
/// let mut session = Session::builder(agent).build()?;
/// futures::executor::block_on(async { session.send("hi").await })?;
/// assert_eq!(session.messages().len(), 2);
/// # Ok::<(), threadfold::session::SessionError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ModelAgent {
    model: Arc<dyn Model>,
    window: Option<ContextWindow>,
}

impl ModelAgent {
    /// Returns an agent with the window that the model [states](Model::context_window), if it states
    /// one.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model, window: None }
    }

    /// Returns the agent with this window, which overrides the one that the model states.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Agent, ContextWindow, ModelAgent, testing::ScriptedModel};
    ///
    /// let window = ContextWindow::for_model("claude-sonnet-4-5").ok_or("it is published")?;
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default())).with_window(window);
    /// assert_eq!(agent.context_window(), Some(ContextWindow::new(200_000)));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn with_window(self, window: ContextWindow) -> Self {
        Self { window: Some(window), ..self }
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }
}

impl ProviderThread for ModelAgent {
    // The agent has no state that depends on the thread.
    fn rewritten(&mut self, _replaced: &[Replaced<'_>], _thread: &[Message]) {}
}

impl Agent for ModelAgent {
    fn answer(&mut self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.model.stream(request)
    }

    fn ask(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.model.stream(request)
    }

    fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> BoxFuture<'_, Result<Option<Answer>, ModelError>> {
        self.model.compact_natively(request, instructions)
    }

    fn binds_reasoning(&self) -> bool {
        self.model.binds_reasoning()
    }

    fn context_window(&self) -> Option<ContextWindow> {
        self.window.or_else(|| self.model.context_window())
    }

    fn fork(&self) -> Box<dyn Agent> {
        Box::new(self.clone())
    }
}

/// Returns the model of an agent, for requests outside the conversation, such as one for a summary.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{Message, Model, ModelAgent, Request, model::model_of, testing::ScriptedModel};
///
/// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["It is a parser."])));
/// let request = Request::new(vec![Message::user("Summarise the file.")]);
/// assert_eq!(block_on(model_of(&agent).complete(request))?.text(), "It is a parser.");
/// # Ok::<(), threadfold::model::ModelError>(())
/// ```
pub fn model_of(agent: &dyn Agent) -> impl Model + '_ {
    AgentModel(agent)
}

/// The model of [`model_of`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentModel<'a>(pub(crate) &'a dyn Agent);

#[async_trait]
impl Model for AgentModel<'_> {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.0.ask(request)
    }

    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        self.0.compact_natively(request, instructions).await
    }

    fn binds_reasoning(&self) -> bool {
        self.0.binds_reasoning()
    }

    fn context_window(&self) -> Option<ContextWindow> {
        self.0.context_window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::Splice;

    #[derive(Debug, Default)]
    struct Counting(Vec<(usize, usize)>);

    impl ProviderThread for Counting {
        fn rewritten(&mut self, replaced: &[Replaced<'_>], thread: &[Message]) {
            self.0.push((replaced.len(), thread.len()));
        }
    }

    #[test]
    fn a_change_is_announced_and_what_changes_nothing_is_not() {
        let mut adapter = Counting::default();
        let mut thread: Thread = ["one", "two", "three"].into_iter().map(Message::user).collect();
        let range = |at: usize| Splice { at: at..at + 1, insert: Vec::new() };
        adapter.apply(&mut thread, &Plan::from_splices(9, vec![range(0)])).unwrap_err();
        adapter.apply(&mut thread, &Plan::from_splices(3, Vec::new())).unwrap();
        assert_eq!((&adapter.0[..], thread.size().messages), (&[][..], 3));
        adapter.apply(&mut thread, &Plan::from_splices(3, vec![range(0), range(2)])).unwrap();
        assert_eq!(adapter.0, [(2, 1)]);
    }
}
