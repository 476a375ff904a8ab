//! A digest: what a thread says of itself, word for word, where no model can be asked.
//!
//! `facts` holds what is taken out of a thread and `gather` takes it; `write` puts it down within a
//! budget and `read` takes it out of a digest again, so that a digest of a digest is one digest and
//! not one inside the other. [`Digest`] is the strategy over them.

mod facts;
mod gather;
mod read;
mod scan;
mod strategy;
mod write;

pub use strategy::Digest;
