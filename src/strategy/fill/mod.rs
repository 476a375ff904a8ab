//! The fill: what a compaction without a model writes in place of the old part of a thread.
//!
//! A text is composed for a budget of tokens, in this order: what the user typed (a share of the
//! room) and what was pasted in it, the *account* (what was done, one line for each step, the newest
//! in more detail), and *needed* facts that everything else lacks, each with the line that it stands
//! in, by value for each token. If there is room left, the steps just before the kept messages follow, shortened.
//!
//! - `thread_texts` reads the old part into sources: texts with their kind, their step and their failure.
//! - `shape` finds results that an agent of a text protocol got in user messages.
//! - `earlier` reads the digest of an earlier compaction.
//! - `account` writes the course of the work.
//! - `needed` chooses facts, by the weights of `weights`.
//! - `text` composes these parts.

mod account;
mod earlier;
mod needed;
pub(super) mod shape;
mod text;
mod thread_texts;
mod weights;

pub(super) use earlier::{is_opening, opening};
pub(super) use needed::facts;
pub(super) use text::{Fill, Length, Reading, write};
