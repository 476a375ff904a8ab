//! Material that is longer than a request: it is read piece by piece, in order, and one model call
//! or conversation is about one piece.
//!
//! | a call about a piece | what follows |
//! |---|---|
//! | is answered | the strategy reads the answer, and goes on with the next piece |
//! | exceeds the model's window | the piece is divided into halves, which are read one after the other |
//! | fails, but may succeed later | the same call after a wait, as often as [`Retries`] allow |
//! | fails otherwise | the strategy decides: `chunked` goes on without a model, `rolling` fails |
//!
//! Both strategies have a loop of this kind. They differ in what a piece is (a part of the rendered text, or
//! messages), and in what an answer is for: `chunked` has one file edited, `rolling` has one account
//! written for each chunk.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::{Retries, Tried};
use crate::message::ModelError;

/// Pieces of some material, of which the first are finished. A value: it can be stored between two
/// calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pieces<P> {
    pub(super) all: Vec<P>,
    /// Number of finished pieces, which is the index of the current one.
    pub(super) done: usize,
    /// The retries of the current call.
    pub(super) tried: Tried,
}

impl<P> Pieces<P> {
    pub(super) fn new(all: Vec<P>) -> Self {
        Self { all, done: 0, tried: Tried::default() }
    }

    /// The piece that the next call is about; `None` once all are finished.
    pub(super) fn current(&self) -> Option<&P> {
        self.all.get(self.done)
    }

    /// Puts the halves in place of the current piece. Returns whether there were any.
    pub(super) fn divide(&mut self, halves: Option<[P; 2]>) -> bool {
        let Some(halves) = halves.filter(|_| self.done < self.all.len()) else { return false };
        self.all.splice(self.done..=self.done, halves);
        true
    }

    /// Returns the wait before a failed call about the current piece is made again, and counts a
    /// retry.
    pub(super) fn wait(&mut self, error: &ModelError, retries: &Retries) -> Option<Duration> {
        retries.wait(&mut self.tried, error)
    }

    /// The number of calls in a row that failed, if the last one was not made again.
    pub(super) fn tries(&self) -> usize {
        self.tried.retries.saturating_add(1)
    }
}
