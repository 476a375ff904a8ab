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
//! | Gemini `generateContent` | [`GeminiGenerate`] |

mod anthropic;
mod classify;
mod contract;
mod error_body;
mod extras;
mod fields;
mod gemini;
mod notes;
mod openai_chat;
mod recognise;
mod stream;
mod tree;

pub use anthropic::AnthropicMessages;
pub use classify::classify_error;
pub use contract::{
    Adjustment, Change, DecodeOptions, EncodeOptions, Encoded, ModelTraits, Recognise, WireError,
    WireFormat,
};
pub use gemini::GeminiGenerate;
pub use openai_chat::OpenAiChat;
pub use stream::{StreamEvent, TurnBuilder};
