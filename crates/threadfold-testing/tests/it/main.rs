//! What the rulebooks do, by their public interface.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests and their helpers may panic"
)]

mod anthropic;
mod chat;
mod converse;
mod desk;
mod gemini;
mod responses;
