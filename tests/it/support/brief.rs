//! Briefs for strategies.

use proptest::{option, prelude::*};
use threadfold::{
    Message,
    message::{CompactionReason, Timestamp},
    strategy::Brief,
};

pub(crate) fn brief() -> impl Strategy<Value = Brief> {
    (option::of(50_u64..4_000), any::<bool>(), any::<bool>()).prop_map(|(target, next, asked)| {
        Brief {
            target,
            reason: if asked { CompactionReason::default() } else { CompactionReason::Threshold },
            next_prompt: next.then(|| Message::user("And now?")),
            now: Timestamp(7),
            ..Brief::default()
        }
    })
}
