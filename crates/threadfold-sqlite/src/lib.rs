#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod database;
mod erase;
mod lease_rows;
mod leases;
mod open;
mod schema;
mod store;
mod threads;

pub use open::OpenError;
pub use store::SqliteStore;
