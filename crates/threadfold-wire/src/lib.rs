//! Codecs: request bodies of providers as values, and back.
//!
//! A codec of a [`WireFormat`] reads a body without losing a field and writes it back as it came.
//! When the thread was changed in between, or came from another provider, it makes the body valid
//! under the provider's rules and returns every [`Adjustment`] that this took. Codecs are pure: a
//! host's adapter is its HTTP client and nothing else.
//!
//! | of an answer | there is |
//! |---|---|
//! | whole | [`WireFormat::decode_response`] |
//! | in pieces, as a stream of bytes | `model::deltas_of`, made of the next two |
//! | events of `text/event-stream` | [`SseParser`] |
//! | events to an answer | [`WireFormat::turn_builder`] |
//! | an error status | [`classify_error`], and [`retry_after`] for its headers |
//! | to a question for the models of a server | [`window_of`] |
//!
//! | dialect | codec |
//! |---|---|
//! | Anthropic Messages | [`AnthropicMessages`] |
//! | AWS Bedrock Converse | [`BedrockConverse`] |
//! | OpenAI Chat Completions, and the many servers that speak it | [`OpenAiChat`] |
//! | Gemini `generateContent` | [`GeminiGenerate`] |
//! | OpenAI Responses | [`OpenAiResponses`] |

mod anthropic;
mod assembly;
mod cache;
mod classify;
mod contract;
mod converse;
mod error_body;
mod extras;
mod fields;
mod gemini;
mod ids;
mod messages;
mod names;
mod normal;
mod notes;
mod openai;
mod openai_chat;
mod openai_content;
mod openai_responses;
mod overflow;
mod params;
mod raw;
mod retry_after;
mod rules;
mod scan;
mod schemas;
mod server;
mod sse;
mod stream;
mod texts;
mod tree;
mod usage;

pub use anthropic::AnthropicMessages;
pub use classify::classify_error;
pub use contract::{
    Adjustment, Change, DecodeOptions, EncodeOptions, Encoded, ModelTraits, Recognise, WireError,
    WireFormat, as_declared,
};
pub use converse::BedrockConverse;
pub use gemini::GeminiGenerate;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;
pub use retry_after::retry_after;
pub use server::window_of;
pub use sse::{SseError, SseEvent, SseParser};
pub use stream::{StreamEvent, TurnBuilder};
