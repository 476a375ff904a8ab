//! The interface for streamed answers.

use std::fmt;

use threadfold_core::message::{Answer, Delta, ModelError};

/// The result of taking an event, or a part of one.
pub(super) type Taken = Result<(), ModelError>;

/// Builds one answer from the events of its stream.
///
/// The codecs have one each; implement it for a provider without a codec, and pass it to
/// `model::deltas_by`. Events of unknown types are ignored. The answer equals the one that
/// [`decode_response`](super::Dialect::decode_response) returns for the same answer in one body.
///
/// ```
/// use threadfold::{message::Delta, wire::Dialect};
///
/// let mut builder = Dialect::OpenAiChat.answer_builder();
/// let data = r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
/// let deltas = builder.handle("", data)?;
/// assert_eq!(deltas, [Delta::Text { text: "hi".into() }]);
/// builder.handle("", "[DONE]")?;
/// assert!(builder.is_complete());
/// assert_eq!(builder.finish()?.text(), "hi");
/// # Ok::<(), threadfold::model::ModelError>(())
/// ```
pub trait AnswerBuilder: fmt::Debug + Send {
    /// Takes the next event and returns the deltas that it adds, but never a [`Delta::Answer`].
    ///
    /// The event is one of `text/event-stream`, or a decoded message of another framing. The name
    /// is empty if the framing has none; the data is JSON, except for words such as `[DONE]`.
    ///
    /// # Errors
    ///
    /// [`ModelError`] if the provider ended the answer early, or sent an event that cannot be read.
    /// It carries the usage that the stream reported so far. Every later call returns it again.
    fn handle(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError>;

    /// Whether the stream has announced its end, so that the host can stop reading.
    fn is_complete(&self) -> bool;

    /// Returns the answer. Call it at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`ModelError`], retryable, if the stream ended before the answer was complete.
    fn finish(&mut self) -> Result<Answer, ModelError>;
}

const _: Option<Box<dyn AnswerBuilder>> = None;
