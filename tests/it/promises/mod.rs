//! What a session promises to every host, without conditions: whatever the strategy, the window, the
//! clock and the provider are. Each test goes through the public API and looks at the requests that
//! the model received.

mod provider;

mod asked_for;
mod floor;
mod marks;
mod net;
mod refusals;
mod targets;
mod told;
mod trigger;
mod windows;
