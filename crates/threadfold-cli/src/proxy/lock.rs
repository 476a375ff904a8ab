//! Locks that a panic does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the value, even after a panic with the lock held: every change is a single step, so the
/// value is consistent.
pub(super) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
