//! What a strategy may be asked for.

use proptest::{option, prelude::*};
use threadfold::{Message, message::Timestamp, strategy::Brief};

pub(crate) fn brief() -> impl Strategy<Value = Brief> {
    (option::of(50_u64..4_000), any::<bool>()).prop_map(|(target, next)| Brief {
        target,
        next_prompt: next.then(|| Message::user("And now?")),
        now: Timestamp(7),
        ..Brief::default()
    })
}
