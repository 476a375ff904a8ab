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
//! | AWS Bedrock Converse | [`BedrockConverse`] |
//! | OpenAI Chat Completions, and the many servers that speak it | [`OpenAiChat`] |

mod anthropic;
mod classify;
mod contract;
mod converse;
mod error_body;
mod fields;
mod notes;
mod openai_chat;
mod stream;
mod tree;

pub use anthropic::AnthropicMessages;
pub use classify::classify_error;
pub use contract::{
    Adjustment, Change, DecodeOptions, EncodeOptions, Encoded, ModelTraits, Recognise, WireError,
    WireFormat,
};
pub use converse::BedrockConverse;
pub use openai_chat::OpenAiChat;
pub use stream::{StreamEvent, TurnBuilder};
