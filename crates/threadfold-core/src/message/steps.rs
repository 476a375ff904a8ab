//! Counting the bytes that text readers examine, in test builds only.
//!
//! Every function that reads prose must terminate, and its work must grow linearly with its text.
//! Measured time cannot prove that: machines are shared, and a fast search hides that it restarts
//! at every word. So readers report how far they look: [`through`] a whole text, or [`up_to`] the
//! offset that they found. Both return their argument and do nothing else outside test builds, so
//! that the lower floors have no global state. In test builds they count bytes for `steps`, which
//! panics above a limit, so that an endless loop fails instead of hanging.
//!
//! Iterators of the standard library over the parts of a text always end and read every byte once,
//! so they are counted once each. A hand-written loop that searches the rest of a text counts in
//! every round.

/// Counts a text that is read to its end, and returns it.
#[doc(hidden)]
#[inline]
pub fn through(text: &str) -> &str {
    #[cfg(any(test, feature = "testing"))]
    counted::add(text.len() + 1);
    text
}

/// Counts a text that is read up to an offset, or to its end for `None`, and returns the offset.
#[doc(hidden)]
#[inline]
pub fn up_to(text: &str, found: Option<usize>) -> Option<usize> {
    #[cfg(any(test, feature = "testing"))]
    counted::add(found.unwrap_or(text.len()) + 1);
    let _ = text;
    found
}

/// Counts one round of a loop that reads no text.
#[inline]
pub fn round() {
    #[cfg(any(test, feature = "testing"))]
    counted::add(1);
}

#[cfg(any(test, feature = "testing"))]
pub use counted::steps;

#[cfg(any(test, feature = "testing"))]
mod counted {
    use std::cell::Cell;

    thread_local! {
        /// The number of steps so far, and the limit.
        static STEPS: Cell<(u64, u64)> = const { Cell::new((0, u64::MAX)) };
    }

    pub(super) fn add(bytes: usize) {
        STEPS.with(|steps| {
            let (count, most) = steps.get();
            steps.set((count + bytes as u64, most));
            assert!(count <= most, "{count} steps; the maximum is {most}");
        });
    }

    /// Returns the number of steps that `work` takes on this thread.
    ///
    /// # Panics
    ///
    /// If it takes more than `most` steps.
    pub fn steps(most: u64, work: impl FnOnce()) -> u64 {
        STEPS.with(|steps| steps.set((0, most)));
        work();
        STEPS.with(|steps| steps.replace((0, u64::MAX)).0)
    }
}
