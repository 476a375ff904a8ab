#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod archive;
mod leases;
mod open;
mod schema;
mod store;
mod threads;
mod words;

pub use archive::PostgresArchive;
pub use open::OpenError;
pub use store::PostgresStore;
