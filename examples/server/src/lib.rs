//! A chat server: many users, one thread for each, stored in SQLite or Postgres.
//!
//! | part | in |
//! |---|---|
//! | one session for each thread, one turn at a time, also among several servers | [`Threads`] |
//! | routes, server-sent events, what happens when a client leaves | [`router`] |
//!
//! There is no login here: a client that knows the name of a thread may use it. Put your login in
//! front of it, and derive the thread from the user.

mod lease;
mod routes;
mod threads;

pub use routes::router;
pub use threads::{Begun, Seen, Threads, TurnEvent};
