//! Code that several tests share.

pub(crate) mod server;
pub(crate) mod streams;
