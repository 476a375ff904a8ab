//! Compaction of message vectors: pure functions over values.
//!
//! [`legality`] says what no provider accepts, mends it, and knows where a thread may be cut.

pub mod legality;
mod position;
mod repair;
mod turns;

pub use position::Position;
