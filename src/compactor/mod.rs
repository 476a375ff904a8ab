//! Compaction for hosts with a loop and a message vector of their own.
//!
//! A [`Compactor`] holds the state that a session has besides its thread: the standing rules, the
//! facts of all messages ever read, the summaries that it made, and the ratio of estimated to
//! reported tokens. Each compaction is carried out by [`drive::compact`](crate::drive::compact), as
//! in a session, so rules and facts survive the third summary as well as the first.
//!
//! | you have | use |
//! |---|---|
//! | a vector of messages | [`Compactor::compact`] |
//! | messages of your own type | [`Compactor::plan_host`], with [`foreign`](crate::foreign) |
//! | a request, for example from a codec | [`Compactor::compact_request`] |
//! | requests that must fit | [`Compactor::before_request`], and [`Compactor::refused`] after a refusal |
//! | a model that compacts on its own | [`Compactor::push_results`], with the tools of [`compaction`](crate::compaction) |
//!
//! The value has a serde form: store it beside the thread. The form holds the rules and facts of
//! removed messages, and stays small however long the conversation is. The options are not stored.
//!
//! Each compaction runs on a conversation that lives as long as its future, with a log of the
//! present messages alone; the host's vector is replaced after the commit. So a dropped future
//! changes nothing, and a compaction has the same states as in a session.
//!
//! A host may change its vector, and codecs change messages. So a compactor remembers a fingerprint
//! of each text that a compaction inserted or left. If the vector does not continue the observed
//! one, the compactor continues from the latest compaction whose summary is in the vector, and
//! reads only texts that this compaction did not leave. A summary of these compactions in a decoded body
//! is recognised by its fingerprint; one that another life of the agent left, by its tags and its place
//! ([`wire::recognised`](crate::wire::recognised)), because a user may type our tags.

#[expect(clippy::module_inception, reason = "the folder is the driver, the file its centre")]
mod compactor;
mod memory;
mod request;

pub use compactor::{Compactor, PlannedHost};
pub use request::RequestStep;
