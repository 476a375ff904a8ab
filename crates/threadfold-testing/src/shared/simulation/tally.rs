//! The counts of a simulation.

use std::ops::AddAssign;

/// Declares the counts, each with its name in a table.
macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident: $name:literal,)+) => {
        /// The counts of a simulation.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally {
            $($(#[$doc])* pub $count: u64,)+
        }

        impl Tally {
            /// The counts with their names.
            #[must_use]
            pub fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$count),)+]
            }
        }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Self) {
                $(self.$count += other.$count;)+
            }
        }
    };
}

counts! {
    /// Sessions that a worker opened over a lease.
    sessions: "sessions",
    /// Lives of a loop with a compactor: each begins from what the one before stored.
    loops: "loops",
    /// Lives of a relay.
    relays: "relays",
    /// Turns and rounds that ended with an answer.
    turns: "turns",
    /// Requests of the conversation.
    requests: "requests",
    /// Requests for summaries.
    summaries: "for summaries",
    /// Compactions that were carried out.
    compactions: "compactions",
    /// Compactions that failed.
    failed: "came to nothing",
    /// Compactions that were undone.
    undone: "undone",
    /// Futures that were dropped midway.
    dropped: "futures dropped",
    /// Processes that crashed and began again.
    crashes: "crashes",
    /// Leases that were taken over from another worker.
    taken_over: "leases taken over",
    /// Appends that the store refused because the lease was lost.
    too_late: "writes too late",
    /// Writes that failed: before, within or after what they write.
    store_failures: "store failed",
    /// Answers that failed, broke off, or were refused without a reason.
    model_failures: "model failed",
    /// Requests that the provider refused, because it counts a little more than was estimated.
    misjudged: "over by an estimate",
    /// Requests with rules that were counted for lack of room instead of stated.
    rules_counted: "rules only counted",
    /// Events in all logs.
    events: "events in logs",
}
