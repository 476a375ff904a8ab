#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod archive;
mod database;
mod erase;
mod lease_rows;
mod leases;
mod open;
mod schema;
mod store;
mod threads;
mod words;

pub use archive::SqliteArchive;
pub use open::OpenError;
pub use store::SqliteStore;
