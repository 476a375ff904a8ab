//! Compaction by the provider itself: its own summary in the place of the messages before it, in a
//! form that only it reads.

use std::fmt;

use super::json::{Fields, Object};
use threadfold_core::message::{Json, Request, Text, Usage};

/// A dialect's forms for compaction by the provider, from both sides: a client asks its provider,
/// and a gateway is asked by its clients.
///
/// ```
/// use threadfold::{Message, Request};
/// use threadfold::wire::{EncodeOptions, Dialect, WireFormat};
///
/// let native = Dialect::OpenAiResponses.native_compaction().ok_or("it has forms for it")?;
/// let asked = native.request(Request::new(vec![Message::user("Hi.")]));
/// let body = Dialect::OpenAiResponses.encode(&asked, &EncodeOptions::default()).body;
/// assert!(body.as_str().ends_with(r#"{"type":"compaction_trigger"}]}"#));
/// assert!(Dialect::OpenAiChat.native_compaction().is_none());
/// # Ok::<(), &str>(())
/// ```
pub trait NativeCompaction: fmt::Debug + Send + Sync {
    /// Returns the request that asks for a compaction of its messages instead of an answer. It is
    /// encoded, sent and answered like any other; the answer holds opaque
    /// [compactions](threadfold_core::message::Opaque::is_compaction).
    fn request(&self, request: Request) -> Request;

    /// Returns what a request that was read asks its server to do, for a gateway that compacts in
    /// the provider's place; `None` if it asks for nothing.
    fn asked(&self, request: &Request) -> Option<CompactionAsked>;

    /// Returns the body of the answer to [`CompactionAsked::Now`] with a gateway's own summary. The
    /// client sends the summary back in later requests, where it is read as a
    /// [`Summary`](threadfold_core::message::Summary).
    fn answer(&self, model: &str, summary: &str, usage: Usage) -> Json;
}

const _: Option<Box<dyn NativeCompaction>> = None;

/// What a request asks its server to do about the length of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionAsked {
    /// Compact now, and answer with nothing else.
    Now {
        /// The prompt that replaces the server's own, if the client sent one.
        instructions: Option<Text>,
    },
    /// Compact before the answer if the prompt is this long.
    From {
        /// The length in tokens; `None` leaves it to the server.
        tokens: Option<u64>,
        /// The prompt that replaces the server's own, if the client sent one.
        instructions: Option<Text>,
    },
}

/// The proof in a block that this crate made it, where a provider has its signature. It proves
/// nothing about the text, which is the client's own.
pub(super) const BY_GATEWAY: &str = "threadfold";

/// The edit of `context_management` of this type.
pub(super) fn edit<'a>(management: &'a Json, list: Option<&str>, kind: &str) -> Option<Fields<'a>> {
    let edits = match list {
        Some(list) => Fields::parse(management.as_str())?.items(list)?,
        None => super::json::Raw::of(management).items()?,
    };
    let mut edits = edits.into_iter().filter_map(Fields::of);
    edits.find(|edit| edit.word("type").is_some_and(|word| word == kind))
}

/// A usage under the names that both dialects give to the counts.
pub(super) fn counts(usage: Usage) -> Object {
    Object::of("input_tokens", usage.input).with("output_tokens", usage.output)
}
