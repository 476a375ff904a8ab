//! Compaction between an agent and its provider: the agent sends its whole thread with each
//! request, and a proxy sends a smaller one.
//!
//! A thread is identified by a [`Chain`] of hashes over its messages, so it needs no id. Threads of
//! two agents, a branch and an edited history have different chains. A [`View`] holds the compacted
//! form of the first messages of a thread; the longest view whose [`Link`] is in the chain replaces
//! these. A [`Relay`] handles one request: it decides when to compact, by the same policy as a
//! session, and which request to send.
//!
//! This module is pure, except that `compaction` awaits models and a store. It knows neither sockets
//! nor a database: [`proxy`](crate::proxy) looks up and stores views, and sends the bytes.

mod chain;
#[doc(hidden)]
pub mod compaction;
mod passing;
mod request;
mod view;

pub use chain::{Chain, Link};
pub use passing::passing_from;
pub use request::{Relay, RelayStep};
pub use view::View;
