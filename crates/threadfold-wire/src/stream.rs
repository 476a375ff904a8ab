//! Reading answers that arrive in pieces.

use std::fmt;

use threadfold_core::message::{Delta, ModelError, Turn};

/// One event of a streamed answer, as the transport gives it: an event of `text/event-stream`, or a
/// decoded message of another framing.
#[derive(Clone, Copy)]
pub(super) struct StreamEvent<'a> {
    /// The name of the event; empty where the framing has none. Dialects whose data states the type
    /// ignore it.
    pub(super) name: &'a str,
    /// Its data: JSON, but for words such as `[DONE]`.
    pub(super) data: &'a str,
}

/// Builds one answer from the events of its stream.
///
/// Events of kinds that it does not know are passed over. What it builds is what
/// [`decode_response`](super::WireFormat::decode_response) makes of the same answer in one body.
///
/// ```
/// use threadfold::{message::Delta, wire::{Dialect, WireFormat}};
///
/// let mut builder = Dialect::OpenAiChat.turn_builder();
/// let data = r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
/// let deltas = builder.handle("", data)?;
/// assert_eq!(deltas, [Delta::Text { text: "hi".into() }]);
/// builder.handle("", "[DONE]")?;
/// assert!(builder.is_complete());
/// assert_eq!(builder.finish()?.text(), "hi");
/// # Ok::<(), threadfold::model::ModelError>(())
/// ```
pub trait TurnBuilder: fmt::Debug + Send {
    /// Takes the next event and returns what it adds to the answer. Never [`Delta::Turn`].
    ///
    /// The event is one of `text/event-stream`, or a decoded message of another framing. The name is
    /// empty where the framing has none; the data is JSON, except for words such as `[DONE]`.
    ///
    /// # Errors
    ///
    /// [`ModelError`]: the provider broke the answer off, or sent what cannot be read. It carries
    /// what was spent, as far as the stream said. Nothing can be handed over after an error.
    fn handle(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError>;

    /// Whether the stream said that the answer is complete. A host need not read on then.
    fn is_complete(&self) -> bool;

    /// Returns the answer when the stream is over.
    ///
    /// # Errors
    ///
    /// [`ModelError`], retryable, if the stream ended before the answer was complete.
    fn finish(&mut self) -> Result<Turn, ModelError>;
}

const _: Option<Box<dyn TurnBuilder>> = None;
