//! Executable rules of the vendors' APIs: requests in, the vendors' replies out.
//!
//! A [`Rulebook`] judges each request as the vendor would, and answers legal ones with the words of a
//! closure, in the vendor's form, whole or as a stream. It enforces what documents, SDKs and public
//! reports state: how calls and results are paired, fields that became errors, reasoning that is bound
//! to what came before it, prompt caches with their lives and prices, windows, the texts of refusals,
//! the vendors' own compaction, and threads that the server holds. Each [`Rule`] names its source.
//!
//! It is a value without I/O: the time is an argument, and ids come from a seed. An agent in any
//! architecture can be tested against it.
//!
//! ```
//! use serde_json::json;
//! use threadfold::{message::Timestamp, wire::Dialect};
//! use threadfold_testing::rulebook::{Asked, BookOptions, HttpCall, Outcome, Rulebook, Said};
//!
//! let mut book = Rulebook::new(Dialect::OpenAiResponses, BookOptions::default());
//! let mut script = |_: &Asked<'_>| Said::text("It has 12 lines.");
//! let mut ask = |input: serde_json::Value| {
//!     let body = json!({"model": "gpt-6.2-sol", "input": input}).to_string();
//!     let call = HttpCall { path: "/v1/responses", headers: &[], body: body.as_bytes() };
//!     let reply = book.answer(&call, Timestamp(0), &mut script);
//!     (reply.status, book.seen().last.outcome)
//! };
//! let call = json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"});
//! assert_eq!(ask(json!([call])), (400, Outcome::Illegal));
//! let output = json!({"type": "function_call_output", "call_id": "c1", "output": "..."});
//! assert_eq!(ask(json!([call, output])), (200, Outcome::Answered));
//! ```
//!
//! What vendors do not state is not enforced, and says so in the docs of its module or in its rule.
//! Four bytes of JSON count as a token, whatever the model.

#![allow(
    clippy::indexing_slicing,
    reason = "a JSON value has null where a field is missing, and only objects made here are changed"
)]

mod anthropic;
mod book;
mod bound;
mod cache;
mod call;
mod chat;
mod converse;
mod event;
mod frames;
mod gemini;
mod held;
mod http;
mod model;
mod numbers;
mod openai;
mod options;
mod piece;
mod responses;
mod rule;
mod script;
mod seen;
mod vendor;

pub use book::Rulebook;
pub use bound::VoidReason;
pub use cache::CacheUse;
pub use call::{HttpCall, Reply, ReplyBody};
pub use event::Event;
pub use http::serve;
pub use model::RulebookModel;
pub use options::{Account, BookOptions, Fit, Refusal};
pub use rule::{Rule, Source, Violation};
pub use script::{Asked, Part, Purpose, Said};
pub use seen::{Last, Outcome, Seen};
