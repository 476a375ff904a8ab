//! Counting tokens.
//!
//! Exact counts need the tokenizer of the model, which most providers do not publish, so counts are
//! estimates unless a host supplies a better [`TokenCounter`]. The cheapest estimate divides the
//! bytes of a text by a constant. It uses bytes, not characters, because scripts with longer
//! characters have more tokens per character.
//!
//! | to count with | use |
//! |---|---|
//! | a counter of the host | [`TokenCounter`] |
//! | an estimate from bytes | [`ByteEstimate`] |
//! | an estimate that learns from what providers report | [`Calibrated`] |
//! | the exact tokenizer of OpenAI's models (feature `tiktoken`) | `o200k` |
//! | what a request is made of | [`breakdown`](breakdown()) |
//! | pictures and documents by a provider's rule | [`MediaRule`] |
//! | bytes of text instead of tokens | [`text_bytes`] |
//! | four bytes per token, rounded up for each message | [`estimate_conversation_tokens`] |

mod breakdown;
mod calibrated;
mod counter;
mod estimate;
mod media_rule;
#[cfg(feature = "tiktoken")]
mod o200k;

pub use breakdown::{BreakdownPart, PartKind, breakdown, scaled_to};
pub use calibrated::Calibrated;
pub use counter::TokenCounter;
pub use estimate::{ByteEstimate, estimate_conversation_tokens, text_bytes};
pub use media_rule::MediaRule;
#[cfg(feature = "tiktoken")]
pub use o200k::o200k;

pub use crate::message::measure::{DOCUMENT_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS};
