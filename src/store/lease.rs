//! The lease of a thread.

use std::time::Duration;

use crate::message::{Text, ThreadId, Timestamp};

/// The right of one worker to write a thread.
///
/// The fence protects the log: every append carries it, and the store refuses an append whose fence
/// is not that of the current lease. The time only decides when another worker may take over the
/// lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The thread.
    pub thread: ThreadId,
    /// The name of the worker. It is for people; stores do not compare it.
    pub worker: Text,
    /// The number of the lease. It is greater than the number of every earlier lease of the thread.
    pub fence: u64,
    /// The time from which another worker may take over the lease.
    pub expires: Timestamp,
}

/// Returns the end of a lease that begins now.
///
/// ```
/// use std::time::Duration;
/// use threadfold::{message::Timestamp, store::lease_end};
///
/// assert_eq!(lease_end(Timestamp(7), Duration::from_secs(1)), Timestamp(1_007));
/// assert_eq!(lease_end(Timestamp(7), Duration::MAX), Timestamp(u64::MAX));
/// ```
#[must_use]
pub fn lease_end(now: Timestamp, lifetime: Duration) -> Timestamp {
    let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    Timestamp(now.0.saturating_add(millis))
}
