//! The lock by which threads share a value. No other file of the crate names one, so that a test can
//! decide at every use of a lock which thread runs next: `tests/schedules`.

#[cfg(threadfold_schedules)]
use shuttle::sync::Mutex;
#[cfg(threadfold_schedules)]
pub(crate) use shuttle::sync::MutexGuard;
#[cfg(not(threadfold_schedules))]
use std::sync::Mutex;
#[cfg(not(threadfold_schedules))]
pub(crate) use std::sync::MutexGuard;
use std::sync::PoisonError;

/// A value that threads share. If a thread panics while it has the lock, the others get the value as
/// that thread left it, so each single change must leave a valid value.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    #[cfg(feature = "testing")]
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until no other thread has the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
