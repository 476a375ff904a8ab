//! Code that several tests share.

pub(crate) mod bench;
pub(crate) mod bodies;
pub(crate) mod brief;
pub(crate) mod broken_leases;
pub(crate) mod broken_store;
pub(crate) mod chat_bodies;
pub(crate) mod examples;
pub(crate) mod gemini_bodies;
pub(crate) mod language;
pub(crate) mod odd;
pub(crate) mod pieces;
pub(crate) mod polls;
pub(crate) mod random_json;
pub(crate) mod recalled;
pub(crate) mod recorded;
pub(crate) mod responses_bodies;
pub(crate) mod stream_cases;
pub(crate) mod traces;
pub(crate) mod tries;
pub(crate) mod wire_cases;
