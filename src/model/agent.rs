//! `ProviderThread` and `Agent`: the traits for adapters that keep the conversation themselves.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};

use super::model::{self, Model};
use crate::{
    compact::{CompactError, CompactOptions, CompactReport, Plan, Replacement},
    log::{Next, Thread},
    message::{ContextWindow, Delta, Message, ModelError, Request, Turn},
};

/// The thread of an adapter, which may keep provider state that depends on it.
///
/// The thread is a [`Thread`], which keeps messages and index consistent, and the provided methods
/// notify the adapter of every rewrite. Change the thread through them, not through
/// [`thread_mut`](Self::thread_mut).
///
/// ```
/// use threadfold::{Message, ProviderThread, Thread};
///
/// /// Its server holds the conversation, under the id of the last answer.
/// #[derive(Debug, Default)]
/// struct Stateful {
///     thread: Thread,
///     previous_response: Option<String>,
/// }
///
/// impl ProviderThread for Stateful {
///     fn thread(&self) -> &Thread {
///         &self.thread
///     }
///
///     fn thread_mut(&mut self) -> &mut Thread {
///         &mut self.thread
///     }
///
///     fn rewritten(&mut self) {
///         self.previous_response = None;
///     }
/// }
///
/// let mut adapter = Stateful::default();
/// adapter.push(Message::user("Hi."));
/// adapter.previous_response = Some("resp_1".to_owned());
/// adapter.push(Message::assistant("Hello!"));
/// assert!(adapter.previous_response.is_some(), "an append leaves the server's state");
/// adapter.truncate(1);
/// assert_eq!(adapter.previous_response, None);
/// ```
pub trait ProviderThread: fmt::Debug + Send + Sync {
    /// Returns the thread.
    fn thread(&self) -> &Thread;

    /// Returns the thread for the provided methods, which change it.
    fn thread_mut(&mut self) -> &mut Thread;

    /// Called after every change except an append. The adapter must drop the state that depends on
    /// the old thread: a previous-response id, a cached prefix, native copies of messages.
    fn rewritten(&mut self);

    /// Returns the messages.
    fn messages(&self) -> &Arc<Vec<Message>> {
        self.thread().messages()
    }

    /// Appends a message.
    fn push(&mut self, message: Message) {
        self.thread_mut().push(message);
    }

    /// Drops the messages from index `len` on.
    fn truncate(&mut self, len: usize) {
        let epoch = self.thread().epoch();
        self.thread_mut().truncate(len);
        if self.thread().epoch() != epoch {
            self.rewritten();
        }
    }

    /// Replaces ranges, given by checkpoints, with summaries.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`]. The thread is then unchanged.
    fn compact(&mut self, replacements: &[Replacement]) -> Result<CompactReport, CompactError> {
        let plan = self.thread().plan(replacements, &CompactOptions::default())?;
        let before = self.thread().size();
        drop(self.apply(&plan)?);
        let thread = self.thread();
        Ok(CompactReport::new(before, thread.messages(), &plan, thread.counter().as_ref()))
    }

    /// Applies a plan and returns the messages that it removed.
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan was made for another thread. The thread is then unchanged.
    fn apply(&mut self, plan: &Plan) -> Result<Vec<Message>, CompactError> {
        let next = self.thread().checked(plan)?;
        Ok(take_on(self, next))
    }
}

/// A checked plan and the conversation that it will rewrite.
///
/// It borrows the conversation, so nothing can change between the check and [`apply`](Self::apply),
/// which therefore cannot fail. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "the thread is unchanged until the rewrite is applied"]
pub(crate) struct Rewrite<'t> {
    thread: &'t mut dyn ProviderThread,
    next: Next,
}

/// Checks a plan against a conversation.
pub(crate) fn rewrite<'t>(
    thread: &'t mut dyn ProviderThread,
    plan: &Plan,
) -> Result<Rewrite<'t>, CompactError> {
    let next = thread.thread().checked(plan)?;
    Ok(Rewrite { thread, next })
}

impl Rewrite<'_> {
    /// Applies the plan, notifies the adapter ([`ProviderThread::rewritten`]), and returns the
    /// messages that the plan removed.
    pub(crate) fn apply(self) -> Vec<Message> {
        take_on(self.thread, self.next)
    }
}

fn take_on<T: ProviderThread + ?Sized>(thread: &mut T, next: Next) -> Vec<Message> {
    let is_change = next.changes();
    let removed = thread.thread_mut().take_on(next);
    if is_change {
        thread.rewritten();
    }
    removed
}

/// A conversation whose requests a provider answers.
///
/// Implement it for a provider that keeps the conversation on its side. For any other provider
/// implement [`Model`]; [`ModelAgent`] turns it into an agent.
///
/// ```
/// use std::sync::Arc;
/// use futures::{StreamExt, executor::block_on, stream::{self, BoxStream}};
/// use threadfold::message::{Delta, ModelError, StopReason};
/// use threadfold::{Agent, Message, ProviderThread, Request, Thread, Turn, model};
///
/// /// Answers with the number of messages that it had to send.
/// #[derive(Clone, Debug, Default)]
/// struct Stateful {
///     thread: Thread,
///     /// The number of messages that its server already has.
///     held: usize,
/// }
///
/// # impl ProviderThread for Stateful {
/// #     fn thread(&self) -> &Thread {
/// #         &self.thread
/// #     }
/// #     fn thread_mut(&mut self) -> &mut Thread {
/// #         &mut self.thread
/// #     }
/// #     fn rewritten(&mut self) {
/// #         self.held = 0;
/// #     }
/// # }
/// impl Agent for Stateful {
///     fn run_turn(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
///         let own = Arc::ptr_eq(&request.messages, self.messages());
///         let sent = request.messages.len() - if own { self.held } else { 0 };
///         let answer = Message::assistant(format!("{sent} sent"));
///         let turn = Turn::new(answer, StopReason::EndTurn, None);
///         stream::iter([Ok(Delta::Turn { turn })]).boxed()
///     }
///
///     fn fork(&self) -> Box<dyn Agent> {
///         Box::new(self.clone())
///     }
/// }
///
/// let mut agent = Stateful { held: 1, ..Stateful::default() };
/// agent.push(Message::assistant("Old."));
/// agent.push(Message::user("New."));
/// let ask = |messages| block_on(model::turn_of(agent.run_turn(Request::new(messages))));
/// assert_eq!(ask(agent.messages().clone())?.text(), "1 sent");
/// assert_eq!(ask(agent.messages().to_vec().into())?.text(), "2 sent");
/// # Ok::<(), ModelError>(())
/// ```
pub trait Agent: ProviderThread {
    /// Streams the model's answer to a request. The last item is [`Delta::Turn`] or an error. The
    /// answer is not appended to the thread. Dropping the stream cancels the request.
    ///
    /// In a turn of the conversation the request holds the thread's own messages ([`Arc::ptr_eq`]
    /// with [`messages`](ProviderThread::messages) is true), and the adapter may use the provider's
    /// state instead of sending them. A request outside the conversation, such as one for a
    /// summary, holds other messages and must not change that state.
    ///
    fn run_turn(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>>;

    /// Lets the provider compact the messages of a request itself, as [`Model::compact_natively`]
    /// does, without changing its state. The default returns `None`.
    fn compact_natively(
        &self,
        _request: Request,
    ) -> BoxFuture<'_, Result<Option<Turn>, ModelError>> {
        future::ready(Ok(None)).boxed()
    }

    /// Returns the window of the model, in tokens, if it is known. The default returns `None`.
    fn context_window(&self) -> Option<ContextWindow> {
        None
    }

    /// Returns an independent agent with a copy of the thread.
    fn fork(&self) -> Box<dyn Agent>;
}

/// An [`Agent`] over any [`Model`], which sends the whole conversation with every request.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::{Message, model::{ModelAgent, ProviderThread}, testing::ScriptedModel};
///
/// let mut agent = ModelAgent::new(Arc::new(ScriptedModel::new(["hello"])));
/// agent.push(Message::user("hi"));
/// assert_eq!(agent.messages().len(), 1);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ModelAgent {
    model: Arc<dyn Model>,
    thread: Thread,
    window: Option<ContextWindow>,
}

impl ModelAgent {
    /// Returns an agent with an empty thread and the window that the model
    /// [states](Model::context_window), if it states one.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model, thread: Thread::default(), window: None }
    }

    /// Returns the agent with this thread.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, ModelAgent, ProviderThread, Thread, testing::ScriptedModel};
    ///
    /// let mut thread = Thread::default();
    /// thread.push(Message::user("hi"));
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::default())).with_thread(thread);
    /// assert_eq!(agent.messages().len(), 1);
    /// ```
    pub fn with_thread(self, thread: Thread) -> Self {
        Self { thread, ..self }
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

/// A thread without an adapter, for hosts that have no agent: no state depends on it.
///
/// ```
/// use threadfold::{Message, Thread, drive::Conversation, log::{Event, EventLog}};
/// use threadfold::{message::Timestamp, store::Journal};
///
/// let mut thread: Thread = [Message::user("hi")].into_iter().collect();
/// let mut journal = Journal::new(EventLog::new("main".parse()?));
/// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
/// let conversation = Conversation::new(&mut thread, &mut journal);
/// assert_eq!(conversation.snapshot().messages()[..], [Message::user("hi")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl ProviderThread for Thread {
    fn thread(&self) -> &Thread {
        self
    }

    fn thread_mut(&mut self) -> &mut Thread {
        self
    }

    fn rewritten(&mut self) {}
}

impl ProviderThread for ModelAgent {
    fn thread(&self) -> &Thread {
        &self.thread
    }

    fn thread_mut(&mut self) -> &mut Thread {
        &mut self.thread
    }

    // The agent has no state that depends on the thread.
    fn rewritten(&mut self) {}
}

impl Agent for ModelAgent {
    fn run_turn(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.model.stream(request)
    }

    fn compact_natively(
        &self,
        request: Request,
    ) -> BoxFuture<'_, Result<Option<Turn>, ModelError>> {
        self.model.compact_natively(request)
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
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        model::turn_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.0.run_turn(request)
    }

    async fn compact_natively(&self, request: Request) -> Result<Option<Turn>, ModelError> {
        self.0.compact_natively(request).await
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
    struct Counting {
        thread: Thread,
        rewritten: usize,
    }

    impl ProviderThread for Counting {
        fn thread(&self) -> &Thread {
            &self.thread
        }

        fn thread_mut(&mut self) -> &mut Thread {
            &mut self.thread
        }

        fn rewritten(&mut self) {
            self.rewritten += 1;
        }
    }

    #[test]
    fn an_adapter_is_notified_when_a_rewrite_is_applied_and_not_before() {
        let mut adapter = Counting::default();
        adapter.push(Message::user("one"));
        adapter.push(Message::user("two"));
        let plan = Plan::from_splices(2, vec![Splice { at: 0..1, insert: Vec::new() }]);
        drop(rewrite(&mut adapter, &plan).unwrap());
        assert_eq!((adapter.messages().len(), adapter.rewritten), (2, 0));
        assert_eq!(rewrite(&mut adapter, &plan).unwrap().apply().len(), 1);
        assert_eq!((adapter.messages().len(), adapter.rewritten), (1, 1));
        let nothing = Plan::from_splices(1, Vec::new());
        let _ = rewrite(&mut adapter, &nothing).unwrap().apply();
        assert_eq!(adapter.rewritten, 1);
    }

    #[derive(Debug)]
    struct Stating(Option<u64>);

    #[async_trait]
    impl Model for Stating {
        async fn complete(&self, _request: Request) -> Result<Turn, ModelError> {
            Err(ModelError::cut_short())
        }

        fn context_window(&self) -> Option<ContextWindow> {
            self.0.map(ContextWindow::new)
        }
    }

    #[test]
    fn the_window_of_the_host_wins_over_that_of_the_model() {
        let rows =
            [(None, None), (Some(8_000), None), (None, Some(4_000)), (Some(8_000), Some(4_000))];
        for (stated, given) in rows {
            let agent = ModelAgent::new(Arc::new(Stating(stated)));
            let agent =
                given.map_or(agent.clone(), |given| agent.with_window(ContextWindow::new(given)));
            let window = agent.context_window().map(ContextWindow::tokens);
            assert_eq!(window, given.or(stated));
        }
    }

    #[test]
    fn pointers_and_forks_and_the_model_of_an_agent_keep_the_window() {
        let window = Some(ContextWindow::new(8_000));
        let agent = ModelAgent::new(Arc::new(Stating(Some(8_000))));
        let boxed: Box<dyn Model> = Box::new(Stating(Some(8_000)));
        assert_eq!(<&dyn Model>::context_window(&boxed.as_ref()), window);
        assert_eq!(<Box<dyn Model>>::context_window(&boxed), window);
        assert_eq!(Arc::<dyn Model>::from(boxed).context_window(), window);
        assert_eq!(agent.fork().context_window(), window);
        assert_eq!(AgentModel(&agent).context_window(), window);
    }
}
