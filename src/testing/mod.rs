//! The test kit: what this crate's own tests are made of, for those of its users too.

pub mod cases;
pub mod notation;
