//! Generators of threads, for property tests and benchmarks.
//!
//! | you need | use |
//! |---|---|
//! | legal threads with every feature of real ones | [`legal_thread`] |
//! | arbitrary, mostly illegal threads | [`junk_thread`] |
//! | one long thread like those of coding agents, generated fast, the same for the same seed | [`legal_thread_from`] |
//!
//! The first two are `proptest` strategies and shrink to small threads.

mod blocks;
mod corpus;
mod threads;

pub use corpus::legal_thread_from;
pub use threads::{junk_thread, legal_thread};
