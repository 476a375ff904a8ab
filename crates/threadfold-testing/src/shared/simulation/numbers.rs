//! Random numbers that are the same for the same seed.

use std::sync::{Mutex, PoisonError};

use crate::splitmix::splitmix64;

/// A splitmix64 generator. Everything in a simulation draws from one.
#[derive(Debug)]
pub struct Numbers(Mutex<u64>);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// Returns a number below `most`, which is not zero.
    pub fn below(&self, most: u64) -> u64 {
        splitmix64(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)) % most.max(1)
    }

    /// Returns one of these; there must be one.
    pub fn one_of<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// Returns `true` one time in `times`.
    pub fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns a number below `most`, mostly a small one.
    pub fn steep(&self, most: u64) -> u64 {
        self.below(most) >> self.below(12)
    }

    /// Returns up to this many words.
    pub fn words(&self, most: u64) -> String {
        "some words of a text ".repeat(self.below(most).max(1) as usize)
    }

    /// Is pending a few times, so that the future that awaits it can be dropped here.
    pub async fn nap(&self) {
        for _ in 0..self.steep(8) {
            let mut waited = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
        }
    }
}
