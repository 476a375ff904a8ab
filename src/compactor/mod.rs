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
//! | a request, for example from a codec | [`Compactor::compact_request`] |
//! | a model that compacts on its own | [`Compactor::push_results`], with the tools of [`compaction`](crate::compaction) |
//!
//! The value has a serde form: store it beside the thread. The form holds the rules and facts of
//! removed messages, and stays small however long the conversation is. The options are not stored.

mod compact;
mod configure;
mod memory;
mod value;

pub use value::Compactor;
