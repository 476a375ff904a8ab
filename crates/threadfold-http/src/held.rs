//! Threads that the provider holds between requests.

use std::sync::Arc;

use futures::{StreamExt, TryFutureExt, TryStreamExt, future::BoxFuture, stream::BoxStream};
use serde_json::Value;
use threadfold::{
    Agent, Answer, ContextWindow, Message, Model, ProviderThread, Request, Role,
    compact::Replaced,
    message::{Delta, ModelError, Text, ToolSpec},
};

use crate::model::HttpModel;

/// An agent whose provider holds the thread between requests, so that a request sends only what
/// follows the model's last answer.
///
/// | dialect | how | the provider forgets |
/// |---|---|---|
/// | Anthropic | `thread: {"type": "create"}`, then `{"type": "continue", "previous_message_id": ...}`, with the beta `message-threads-2026-08-12` | after about 5 minutes, or earlier |
/// | Responses | `store: true`, then `previous_response_id` | after 30 days by default |
/// | others | there is no such thread: every request sends the whole | |
///
/// The whole thread is sent instead after every change of it (a compaction, its undo, a resume from
/// a store), if the system prompt or the tools changed, and if the provider refuses to continue for
/// any reason but the length, the key or a passing failure: it has forgotten the thread
/// (`thread_not_found` with status 404, `previous_response_not_found`), or another request continued
/// the same answer, for example one whose stream was dropped. So a turn never fails because the
/// provider forgot; it costs one refused request. The log and the thread remain the session's, and
/// nothing of this agent needs to be stored. Requests outside of the conversation, such as those for
/// summaries, are sent as always.
///
/// The provider keeps the conversation on its side while it holds it. OpenAI bills the prompt tokens
/// of the whole thread all the same; for Anthropic, its SDK does not say.
///
/// Sources: `beta_message_thread_param.py`, `thread_not_found_error.py` and
/// `thread_already_continued_error.py` of the Python SDK anthropic 2.14.0, and for the five minutes
/// Anthropic's documentation of the beta; for OpenAI its guide on the state of conversations.
///
/// ```
/// use threadfold::Session;
/// use threadfold_http::{HeldThread, HttpModel};
///
/// let model = HttpModel::anthropic("claude-opus-5-5", "a key")?;
/// let session = Session::builder(HeldThread::new(model)).build()?;
/// assert!(session.window().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct HeldThread {
    model: HttpModel,
    /// The newest answer, until it is in the thread.
    answered: Option<Answered>,
    held: Option<Held>,
}

/// An answer, and the request that it answers.
#[derive(Debug)]
struct Answered {
    /// The provider's id of the answer.
    id: String,
    /// The number of messages in the request.
    messages: usize,
    head: Head,
}

/// The thread as the provider holds it.
#[derive(Debug)]
struct Held {
    answered: Answered,
    /// The answer, as it is in the thread.
    newest: Message,
}

/// What must stay the same while a thread is continued.
#[derive(Clone, Debug, PartialEq)]
struct Head {
    system: Arc<Vec<Message>>,
    tools: Arc<Vec<ToolSpec>>,
}

impl HeldThread {
    /// Returns the agent. The provider holds nothing yet, so its first request sends the whole thread.
    pub fn new(model: HttpModel) -> Self {
        Self { model, answered: None, held: None }
    }

    /// The id of the answer that the request continues, if the provider may still hold it.
    fn continued(&self, request: &Request) -> Option<String> {
        let held = self.held.as_ref()?;
        let is_same = request.messages.get(held.answered.messages)?.ptr_eq(&held.newest);
        (is_same && held.answered.head == Head::of(request)).then(|| held.answered.id.clone())
    }
}

impl Head {
    fn of(request: &Request) -> Self {
        Self { system: Arc::clone(&request.system), tools: Arc::clone(&request.tools) }
    }
}

impl ProviderThread for HeldThread {
    fn appended(&mut self, message: &Message) {
        if message.role != Role::Assistant {
            return;
        }
        // An answer that did not come from the provider ends the thread that it holds.
        let newest = message.clone();
        self.held = self.answered.take().map(|answered| Held { answered, newest });
    }

    fn rewritten(&mut self, _replaced: &[Replaced<'_>], _thread: &[Message]) {
        (self.answered, self.held) = (None, None);
    }
}

impl Agent for HeldThread {
    fn answer(&mut self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let previous = self.continued(&request);
        let (messages, head) = (request.messages.len(), Head::of(&request));
        let Self { model, answered, .. } = self;
        *answered = None;
        let deltas = model.answer_held(request, previous).try_flatten_stream();
        let noted = deltas.inspect_ok(move |delta| {
            if let Delta::Answer { answer } = delta {
                let head = head.clone();
                *answered = id_of(answer).map(|id| Answered { id, messages, head });
            }
        });
        noted.boxed()
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
        self.model.context_window()
    }

    /// Returns an agent that sends the whole thread first, because an answer can be continued once.
    fn fork(&self) -> Box<dyn Agent> {
        Box::new(Self::new(self.model.clone()))
    }
}

/// The provider's id of an answer. The codecs keep the fields of a body that have no place in an
/// [`Answer`] in the extra field `~response` of the message.
fn id_of(answer: &Answer) -> Option<String> {
    let (_, body) = answer.message.extra.fields().find(|(key, _)| *key == "~response")?;
    let body: Value = serde_json::from_str(body.as_str()).ok()?;
    Some(body.get("id")?.as_str()?.to_owned())
}
