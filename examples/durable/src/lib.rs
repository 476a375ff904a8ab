//! Turns and compactions that survive the death of their process, on [Restate](https://restate.dev).
//!
//! A thread is a virtual object of the engine: its messages are handled one after another, so it has
//! one writer and needs no lease. Whatever depends on the world is a journaled step ([`steps`]): the
//! calls of the model, for the turn and for a compaction, the calls of the tools, and the time. All
//! else is a function of what these steps returned, because the machines of the library have no clock,
//! no chance and no I/O. If the worker dies, the engine calls the handler again with the results that it
//! recorded, and the machines come to the same state without asking anybody twice.
//!
//! | file | holds |
//! |---|---|
//! | [`object`] | the virtual object: what a client calls |
//! | [`turn`] | the loop of a turn |
//! | `compaction` | the compaction of the thread in the middle of a turn |
//! | [`live`] | the thread and its log, and their form between two turns |
//! | [`steps`] | the journaled steps |
//! | [`remote`] | the client of the model and the tools: replace it by your own |
//! | [`service`] | a model and tools that work offline and count their calls |

mod compaction;
pub mod live;
pub mod object;
pub mod remote;
pub mod service;
pub mod steps;
pub mod turn;
