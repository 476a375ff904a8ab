//! Turns and compactions that survive the death of their process, on
//! [Restate](https://restate.dev).
//!
//! A thread is a virtual object of the engine: its messages are handled one after another, so it
//! has one writer and needs no lease. Everything that depends on the outside world is a journaled
//! step ([`steps`]): the calls of the model, for the turn and for a compaction, the calls of the
//! tools, and the time. Everything else is a function of the results of these steps, because the
//! state machines of the library have no clock, no random numbers and no I/O. If the worker dies,
//! the engine calls the handler again with the recorded results, and the machines reach the same
//! state without repeating a call.
//!
//! | file | holds |
//! |---|---|
//! | [`object`] | the virtual object: what a client calls |
//! | [`turn`] | the loop of a turn |
//! | `compaction` | the compaction of the thread in the middle of a turn |
//! | [`live`] | the thread and its log, and their form between two turns |
//! | [`steps`] | the journaled steps |
//! | [`remote`] | the client of the model and the tools: replace it with your own |
//! | [`service`] | a model and tools that work offline and count their calls |

mod compaction;
pub mod live;
pub mod object;
pub mod remote;
pub mod service;
pub mod steps;
pub mod turn;
