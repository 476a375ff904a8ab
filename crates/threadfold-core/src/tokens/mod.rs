//! How many tokens something is.
//!
//! Exact counts need the tokenizer of the model, which most providers keep to themselves, so a
//! count here is an estimate unless a host brings a better [`TokenCounter`]. The bytes of a text,
//! divided by a number, are the estimate that costs nothing: bytes rather than characters, because
//! scripts with longer characters have more tokens for each.
//!
//! | to have | there is |
//! |---|---|
//! | a counter of my own | [`TokenCounter`] |
//! | an estimate that costs nothing | [`ByteEstimate`] |
//! | an estimate that learns from what providers report | [`Calibrated`] |
//! | an exact count for OpenAI's models, behind the feature `tiktoken` | `O200k` |
//! | the size of messages without tokens | [`text_bytes`] |
//! | the numbers of hosts that count four characters a token | [`estimate_conversation_tokens`] |

mod bytes;
mod calibrated;
mod counter;
mod estimate;
#[cfg(feature = "tiktoken")]
mod o200k;

pub use bytes::text_bytes;
pub use calibrated::Calibrated;
pub use counter::TokenCounter;
pub use estimate::{ByteEstimate, estimate_conversation_tokens};
#[cfg(feature = "tiktoken")]
pub use o200k::O200k;

pub use crate::message::measure::{DOCUMENT_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS};
