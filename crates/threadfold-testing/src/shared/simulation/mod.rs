//! A deterministic simulation of everything together. A [`World`] has one disk that fails, one time,
//! one provider with the rules of a vendor, and one chance, all from a seed. [`Actor`]s are the
//! processes in it: workers that take threads over from each other by leases, a host's loop with a
//! compactor, and whatever a caller adds. [`run`] gives one of them one step at a time, crashes them
//! now and then, and lets one judge check the [`Promise`]s whenever a request leaves, events are
//! stored, or an operation ends.
//!
//! Two runs of a seed are the same, byte for byte: [`Run::digest`] is of all requests, stored events
//! and lines of the record. So a failure is repeated by its seed alone.

mod agent;
mod clock;
mod core;
mod disk;
mod fault;
mod judge;
mod numbers;
mod own_loop;
mod provider;
mod replay;
mod stage;
mod tally;
mod worker;
mod world;

pub use agent::{Read, extracted, worked};
pub use core::Watch;
pub use fault::{Fault, Promise};
pub use numbers::Numbers;
pub use own_loop::OWN_LOOP;
pub use provider::{Asker, Asks, Vendor};
pub use replay::Replay;
pub use stage::{Actor, Life, Run, run};
pub use tally::Tally;
pub use worker::WORKERS;
pub use world::World;
