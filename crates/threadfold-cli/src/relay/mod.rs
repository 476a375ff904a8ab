//! Compaction between an agent and its provider: the agent sends its whole thread each time, and a
//! proxy sends a smaller one.
//!
//! A thread is recognised by a [`Chain`] of hashes over its messages, so two agents, a branch and
//! an edited history are different threads, and a thread needs no id. A [`View`] holds the
//! compacted form of the first messages of a thread; the longest one whose [`Link`] is in the chain
//! is sent in their place. A [`Relay`] is one request on its way: it decides when to compact, by
//! the same policy as a session, and which request to send.
//!
//! All of it is pure. [`proxy`](crate::proxy) looks up and stores views, runs the compactions and sends
//! the bytes.

mod chain;
mod request;
mod view;

pub use chain::{Chain, Link};
pub use request::{Relay, RelayOptions, RelayStep};
pub use view::View;
