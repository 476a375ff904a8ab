//! What reading costs, counted where unit tests are built and nowhere else.
//!
//! Everything that reads prose has to end, and in work that grows as its text does. A time cannot
//! tell: machines are shared, and a fast search hides for long that it begins anew for every word.
//! So readers say how far they look: [`through`] a whole text, or [`up_to`] what they found in it.
//! Both return what they are given and are nothing else in a build without tests, so that the floors
//! below the edge stay free of anything global. In the unit tests of this crate they count bytes for
//! `steps`, which has a limit: a loop that counts and does not end fails there, and does not hang.
//!
//! The iterators of the standard library over the parts of a text always end and read every byte
//! once, so one count for each of them is enough. A loop that is written by hand, and searches what
//! is left of a text, has to count in every round.

/// Returns a text that is looked through to its end.
#[doc(hidden)]
#[inline]
pub fn through(text: &str) -> &str {
    #[cfg(any(test, feature = "testing"))]
    counted::add(text.len() + 1);
    text
}

/// Returns where something was found, if it was, in a text that is looked through up to there.
#[doc(hidden)]
#[inline]
pub fn up_to(text: &str, found: Option<usize>) -> Option<usize> {
    #[cfg(any(test, feature = "testing"))]
    counted::add(found.unwrap_or(text.len()) + 1);
    let _ = text;
    found
}

/// Says that a loop that looks at no text goes round once more.
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
        /// What was counted, and what the most is.
        static STEPS: Cell<(u64, u64)> = const { Cell::new((0, u64::MAX)) };
    }

    pub(super) fn add(bytes: usize) {
        STEPS.with(|steps| {
            let (count, most) = steps.get();
            steps.set((count + bytes as u64, most));
            assert!(count <= most, "{count} steps, and {most} are the most");
        });
    }

    /// Returns the steps that some work takes on this thread.
    ///
    /// # Panics
    ///
    /// If they are more than so many.
    pub fn steps(most: u64, work: impl FnOnce()) -> u64 {
        STEPS.with(|steps| steps.set((0, most)));
        work();
        STEPS.with(|steps| steps.replace((0, u64::MAX)).0)
    }
}
