//! Reads what a thread states, and finds what a summary of it lost. No model is asked.
//!
//! | module | what |
//! |---|---|
//! | [`retention`] | the facts and statements of a thread: which are lost or invented, and how to put them back |
//! | [`ledger`] | the user's standing rules, and the check of quotes by which a model names them |
//!
//! Depend on `threadfold`, which has these modules under the same names. This crate is for those who
//! audit the summaries of another program.

#![forbid(unsafe_code)]

pub mod ledger;
#[doc(hidden)]
pub mod prose;
pub mod retention;

use threadfold_core::{message, tokens};

/// The code of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
