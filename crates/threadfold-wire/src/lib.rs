//! Codecs: request bodies of providers as values, and back.
//!
//! The codec of a [`Dialect`] reads a body without losing a field and writes it back unchanged. If
//! the thread was changed in between, or came from another provider, the codec makes the body valid
//! under the provider's rules and returns every [`Adjustment`] that this required. Codecs are pure,
//! so a host's adapter is only its HTTP client.
//!
//! | to read | use |
//! |---|---|
//! | a request body in a file, of any dialect | [`find_body`] |
//! | a whole answer | [`Dialect::decode_response`] |
//! | the bytes of a streamed answer | `model::deltas_of`, which uses the next two |
//! | the events in `text/event-stream` | [`SseParser`] |
//! | lines of JSON, as some servers stream them | [`LineParser`] |
//! | an answer from its events | [`Dialect::answer_builder`] |
//! | the provider's own compaction | [`Dialect::compaction_request`] asks for it |
//! | an error status | [`classify_error`], and [`retry_after`] for its headers |
//! | an answer of status 200 that may be an error | [`error_within`] |
//! | the list of models of a server | [`window_of`] |
//!
//! | dialect | codec, and its forms | feature |
//! |---|---|---|
//! | Anthropic Messages | `Dialect::Anthropic` | `anthropic` |
//! | AWS Bedrock Converse | `Dialect::BedrockConverse` | `bedrock-converse` |
//! | OpenAI Chat Completions, and the many servers that speak it | `Dialect::OpenAiChat` | `openai-chat` |
//! | Gemini `generateContent` | `Dialect::Gemini` | `gemini` |
//! | OpenAI Responses | `Dialect::OpenAiResponses` | `openai-responses` |
//!
//! A provider without a codec needs three parts: [`text_of`] for the blocks that no provider knows,
//! an [`AnswerBuilder`] of its own, and `model::deltas_by`, which reads its stream.
//!
//! # Several people
//!
//! The [author](threadfold_core::message::Author) of a user message is its `name` in Chat Completions,
//! in both directions. A `name` that is not the name of an author stays in the `extra` of its message.
//! The other dialects have no such field. There each text is written between tags:
//!
//! ```text
//! <author:ann>
//! Never push to main.
//! </author:ann>
//! ```
//!
//! A message without text, such as one with a picture only, has the tags before its first picture or
//! document. Nobody can speak for somebody else: of a thread in which any message has an author, each
//! tag of this form in what a user typed gets a backslash before its name, as in `</\author:ann>`. The
//! codecs do not read these tags back, because whoever writes a body can type them: what is between
//! them is then a text without an author, and not among the user's own words.
//!
//! The features `anthropic` and `openai-chat` are on by default. Errors, limits and events of
//! streams are read for every provider, with any features.

#![forbid(unsafe_code)]
// The dialects share these parts, so a part is unused if none of its dialects is compiled.
#![cfg_attr(
    not(all(
        feature = "anthropic",
        feature = "bedrock-converse",
        feature = "gemini",
        feature = "openai-chat",
        feature = "openai-responses"
    )),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "parts of dialects that are not compiled"
    )
)]

mod accounts;
#[cfg(feature = "anthropic")]
pub mod anthropic;
mod asked;
mod assembly;
mod cache;
mod classify;
mod codec;
mod compaction;
mod contract;
#[cfg(feature = "bedrock-converse")]
pub mod converse;
mod dialect;
mod error_body;
mod error_text;
mod extras;
mod find_body;
#[cfg(feature = "gemini")]
pub mod gemini;
mod growing;
mod json;
mod kit;
mod line_buffer;
mod lines;
mod mark;
mod messages;
mod names;
mod normal;
mod notes;
mod openai;
#[cfg(feature = "openai-chat")]
pub mod openai_chat;
#[cfg(feature = "openai-responses")]
pub mod openai_responses;
mod options;
mod overflow;
mod params;
mod phrases;
mod pictures;
mod retry_after;
mod rules;
mod schemas;
mod server;
mod sse;
mod stream;
mod texts;
mod usage;

pub use accounts::recognised;
pub use asked::{CompactionAsked, CompactionTime};
pub use classify::{classify_error, error_within};
pub use contract::{Adjustment, Change, Encoded, WireError, as_declared};
pub use dialect::Dialect;
pub use find_body::{FoundBody, find_body};
#[doc(hidden)]
pub use json::without_halves;
pub use lines::LineParser;
#[doc(hidden)]
pub use normal::extra_mut;
pub use options::{AnthropicVersion, DecodeLimits, DecodeOptions, EncodeOptions, PrefixMismatch};
pub use retry_after::retry_after;
pub use server::window_of;
pub use sse::SseParser;
pub use stream::AnswerBuilder;
pub use texts::text_of;

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
