//! Promises of a session to every host, without conditions on the strategy, the window, the clock
//! and the provider. Each test uses the public API and checks the requests that the model received.

pub(crate) mod provider;

mod asked_for;
mod floor;
mod lying;
mod marks;
mod net;
mod refusals;
mod reported;
mod targets;
mod trigger;
mod windows;
