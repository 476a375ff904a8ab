//! `Model`: the one trait that most adapters implement.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};

use crate::message::{ContentBlock, ContextWindow, Delta, ModelError, Request, Turn};

/// Something that answers requests: a provider behind an HTTP client, a local server, a script.
///
/// One method is required. Implementations keep no conversation; whoever asks sends all of it.
/// Futures and streams may be dropped at any point: that cancels the call.
///
/// A request shares the vector of messages with the thread. Whoever keeps it until the answer is
/// appended (in a record, in a task that outlives the stream) has that vector copied once for each
/// call, a few bytes a message; held no longer than the stream it costs nothing, however long the
/// thread is.
///
/// ```
/// use threadfold::{Message, Request, Turn, async_trait, message::StopReason};
/// use threadfold::model::{Model, ModelError};
///
/// #[derive(Debug)]
/// struct Echo;
///
/// #[async_trait]
/// impl Model for Echo {
///     async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
///         let text = format!("{} messages", request.messages.len());
///         Ok(Turn::new(Message::assistant(text), StopReason::EndTurn, None))
///     }
/// }
///
/// let request = Request::new(vec![Message::user("hi")]);
/// let turn = futures::executor::block_on(Echo.complete(request))?;
/// assert_eq!(turn.text(), "1 messages");
/// # Ok::<(), ModelError>(())
/// ```
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Returns the answer to a request.
    ///
    /// # Errors
    ///
    /// [`ModelError`], which says whether the prompt was too long, whether asking again may help,
    /// and what was spent all the same.
    async fn complete(&self, request: Request) -> Result<Turn, ModelError>;

    /// Returns the answer to a request piece by piece. The last item is [`Delta::Turn`] with all of
    /// it, or an error; nothing follows either.
    ///
    /// The provided one waits for the whole answer and then gives its texts and the turn.
    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.complete(request).map(|answer| stream::iter(deltas(answer))).flatten_stream().boxed()
    }

    /// The window of the model on this route, in tokens, where the implementation knows it: from
    /// its server, its configuration, or [`ContextWindow::for_model`]. What a host gives with
    /// [`ModelAgent::with_window`](super::ModelAgent::with_window) wins over it.
    ///
    /// The provided one knows none.
    fn context_window(&self) -> Option<ContextWindow> {
        None
    }
}

/// Returns the turn at the end of a stream. What comes behind it is not waited for.
///
/// ```
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::model::{self, ModelError};
///
/// let cut = stream::empty().boxed();
/// let error = block_on(model::turn_of(cut)).unwrap_err();
/// assert!(error.is_retryable());
/// ```
///
/// # Errors
///
/// The first error of the stream; a retryable one if the stream ends without a turn.
pub async fn turn_of(
    mut deltas: BoxStream<'_, Result<Delta, ModelError>>,
) -> Result<Turn, ModelError> {
    while let Some(delta) = deltas.next().await {
        if let Delta::Turn { turn } = delta? {
            return Ok(turn);
        }
    }
    Err(cut_short())
}

/// The error of a stream that ended without a turn.
pub(crate) fn cut_short() -> ModelError {
    ModelError::cut_short()
}

fn deltas(answer: Result<Turn, ModelError>) -> Vec<Result<Delta, ModelError>> {
    let turn = match answer {
        Ok(turn) => turn,
        Err(error) => return vec![Err(error)],
    };
    let texts = turn.message.content.iter().filter_map(ContentBlock::as_text).cloned();
    let mut deltas: Vec<_> = texts.map(|text| Ok(Delta::Text { text })).collect();
    deltas.push(Ok(Delta::Turn { turn }));
    deltas
}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        #[async_trait]
        impl<M: Model + ?Sized> Model for $pointer {
            async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
                (**self).complete(request).await
            }

            fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
                (**self).stream(request)
            }

            fn context_window(&self) -> Option<ContextWindow> {
                (**self).context_window()
            }
        }
    )+};
}

forward!(&M, Box<M>, Arc<M>);

const _: Option<Box<dyn Model>> = None;
