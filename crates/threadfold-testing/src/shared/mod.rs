//! What the tests, benches and fuzz targets of several packages of the repository share. It is hidden
//! from the docs: it changes whenever these tests change.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests and benches stop where something is not as it must be"
)]

pub mod cases;
mod folder;
pub mod fuzz;
pub mod killed;
pub mod searched;
pub mod simulation;
mod writer;

pub use crate::splitmix::splitmix64;
pub use folder::Folder;
pub use writer::serve_writer;
