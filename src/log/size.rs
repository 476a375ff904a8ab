//! What events and messages take in memory, roughly.

use super::event::Event;
use crate::message::{ContentBlock, Message};

/// What a message or an event takes in memory besides its texts, in bytes, roughly.
const OVERHEAD: u64 = 256;

/// What the live thread takes in memory, in bytes, roughly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadSize {
    pub(super) bytes: u64,
    /// The part of it that the log's events hold too.
    pub(super) in_events: u64,
}

impl ThreadSize {
    /// The size of some messages, each with whether the events hold it too.
    pub(super) fn of<'m>(messages: impl IntoIterator<Item = (&'m Message, bool)>) -> Self {
        let mut size = Self::default();
        for (message, is_in_events) in messages {
            let bytes = bytes_of(message);
            size.bytes = size.bytes.saturating_add(bytes);
            if is_in_events {
                size.in_events = size.in_events.saturating_add(bytes);
            }
        }
        size
    }

    /// The size with these messages added and those removed.
    pub(super) fn with(self, added: Self, removed: Self) -> Self {
        let bytes = self.bytes.saturating_add(added.bytes).saturating_sub(removed.bytes);
        let in_events = self.in_events.saturating_add(added.in_events);
        Self { bytes, in_events: in_events.saturating_sub(removed.in_events) }
    }
}

/// What an event takes in memory, in bytes, roughly.
pub(super) fn weight(event: &Event) -> u64 {
    match event {
        Event::MessageAppended(message) => bytes_of(message),
        Event::ResultCut(result) => {
            OVERHEAD + result.content.iter().map(ContentBlock::text_bytes).sum::<u64>()
        }
        Event::Host { data, .. } | Event::Unknown { data, .. } | Event::Malformed { data, .. } => {
            OVERHEAD + data.as_str().len() as u64
        }
        Event::SystemPromptSet { .. }
        | Event::LocalNotice { .. }
        | Event::Truncated { .. }
        | Event::Compacted(_)
        | Event::CompactionFailed(_)
        | Event::CompactionUndone { .. }
        | Event::RuleChanged(_) => OVERHEAD,
    }
}

/// What a message takes in memory, in bytes, roughly.
fn bytes_of(message: &Message) -> u64 {
    message.text_bytes().saturating_add(OVERHEAD)
}
