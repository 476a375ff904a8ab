//! Random numbers that are the same for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A splitmix64 generator. Everything in a simulation draws from one.
#[derive(Debug)]
pub struct Numbers(AtomicU64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns a number below `most`, which is not zero.
    pub fn below(&self, most: u64) -> u64 {
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most.max(1)
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
