//! `Model`: the trait that most adapters implement.

use std::fmt;

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};

use super::forward::for_pointers;
use crate::message::{Answer, ContextWindow, Delta, ModelError, Request, Text};

/// Answers requests, for example through a provider's HTTP API, a local server, or a script for
/// tests.
///
/// One method is required. An implementation need not keep the conversation, because every request
/// contains all of it. Dropping a future or stream cancels the request.
///
/// A request shares the vector of message handles with the thread. If the request is still held
/// when the answer is appended, for example in a log of requests, that vector is copied once.
///
/// ```
/// use threadfold::{Answer, Message, Request, async_trait, message::StopReason};
/// use threadfold::model::{Model, ModelError};
///
/// #[derive(Debug)]
/// struct Echo;
///
/// #[async_trait]
/// impl Model for Echo {
///     async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
///         let text = format!("{} messages", request.messages.len());
///         Ok(Answer::new(Message::assistant(text), StopReason::EndTurn, None))
///     }
/// }
///
/// let request = Request::new(vec![Message::user("hi")]);
/// let answer = futures::executor::block_on(Echo.complete(request))?;
/// assert_eq!(answer.text(), "1 messages");
/// # Ok::<(), ModelError>(())
/// ```
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Returns the answer to a request.
    ///
    /// # Errors
    ///
    /// [`ModelError`], which states whether the prompt was too long, whether a retry may help, and
    /// how many tokens were used.
    async fn complete(&self, request: Request) -> Result<Answer, ModelError>;

    /// Streams the answer to a request. The last item is [`Delta::Answer`] with the whole answer, or
    /// an error.
    ///
    /// The default waits for the whole answer and then yields its texts, and the answer at the end.
    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.complete(request).map(|answer| stream::iter(deltas(answer))).flatten_stream().boxed()
    }

    /// Asks the provider to compact the messages of a request itself, and returns its answer, which
    /// holds opaque [compactions](crate::message::Opaque::is_compaction). `None` if the provider
    /// does not offer this. The strategy [`Native`](crate::strategy::Native) calls it.
    ///
    /// `instructions` is the prompt for the compaction, if the user asked for something special; it
    /// replaces the provider's own prompt. A provider that takes none ignores it.
    ///
    /// An adapter sends [`compaction_request`](crate::wire::Dialect::compaction_request) as it
    /// sends any request. The default returns `None`.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    async fn compact_natively(
        &self,
        _request: Request,
        _instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        Ok(None)
    }

    /// Whether the provider ties the model's reasoning to the messages before it, and leaves it out if
    /// one of them was changed (OpenAI since GPT-6.2, Anthropic since Claude 5.1;
    /// [`EncodeOptions::binds_reasoning`](field@crate::wire::EncodeOptions::binds_reasoning) states
    /// it by name). The default ladder then asks for the provider's [own
    /// compaction](Self::compact_natively) first, which keeps later reasoning.
    ///
    /// The default returns `false`.
    fn binds_reasoning(&self) -> bool {
        false
    }

    /// Returns the window of the model on this route, in tokens, if it is known: from the server,
    /// the configuration, or [`ContextWindow::for_model`].
    /// [`ModelAgent::with_window`](super::ModelAgent::with_window) overrides it.
    ///
    /// The default returns `None`.
    fn context_window(&self) -> Option<ContextWindow> {
        None
    }
}

/// Returns the answer at the end of a stream.
///
/// ```
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::model::{self, ModelError};
///
/// let cut = stream::empty().boxed();
/// let error = block_on(model::answer_of(cut)).unwrap_err();
/// assert!(error.is_retryable());
/// ```
///
/// # Errors
///
/// The first error of the stream; a retryable error if the stream ends without an answer.
pub async fn answer_of(
    mut deltas: BoxStream<'_, Result<Delta, ModelError>>,
) -> Result<Answer, ModelError> {
    while let Some(delta) = deltas.next().await {
        if let Delta::Answer { answer } = delta? {
            return Ok(answer);
        }
    }
    Err(ModelError::cut_short())
}

fn deltas(answer: Result<Answer, ModelError>) -> Vec<Result<Delta, ModelError>> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return vec![Err(error)],
    };
    let texts = answer.message.texts().cloned();
    let mut deltas: Vec<_> = texts.map(|text| Ok(Delta::Text { text })).collect();
    deltas.push(Ok(Delta::Answer { answer }));
    deltas
}

for_pointers! { Model {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError>;
    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>
    ) -> Result<Option<Answer>, ModelError>;
    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>>;
    fn binds_reasoning(&self) -> bool;
    fn context_window(&self) -> Option<ContextWindow>;
} }
