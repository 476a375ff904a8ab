//! Codecs: request bodies of providers as values, and back.
//!
//! A codec of a [`WireFormat`] reads a body without losing a field and writes it back as it came.
//! When the thread was changed in between, or came from another provider, it makes the body valid
//! under the provider's rules and returns every [`Adjustment`] that this took. Codecs are pure: a
//! host's adapter is its HTTP client and nothing else.
//!
//! | dialect | codec |
//! |---|---|
//! | Anthropic Messages | [`AnthropicMessages`] |
//! | OpenAI Chat Completions, and the many servers that speak it | [`OpenAiChat`] |
//! | OpenAI Responses | [`OpenAiResponses`] |

mod anthropic;
mod classify;
mod contract;
mod error_body;
mod fields;
mod ids;
mod marks;
mod notes;
mod openai;
mod openai_chat;
mod openai_responses;
mod stream;
mod tree;

pub use anthropic::AnthropicMessages;
pub use classify::classify_error;
pub use contract::{
    Adjustment, Change, DecodeOptions, EncodeOptions, Encoded, ModelTraits, Recognise, WireError,
    WireFormat,
};
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;
pub use stream::{StreamEvent, TurnBuilder};
