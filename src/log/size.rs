//! Estimates of the memory that events and messages take.

use super::event::Event;
use crate::message::{ContentBlock, Message};

/// The estimated memory of a message or an event besides its texts, in bytes.
const OVERHEAD: u64 = 256;

/// The estimated memory of the live thread, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadSize {
    pub(super) bytes: u64,
    /// The part of this memory that the log's events share.
    pub(super) in_events: u64,
}

impl ThreadSize {
    /// Returns the size of these messages. The flag of a message is whether the events share its
    /// memory.
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

    /// Returns the size after these messages were added and those removed.
    pub(super) fn with(self, added: Self, removed: Self) -> Self {
        let bytes = self.bytes.saturating_add(added.bytes).saturating_sub(removed.bytes);
        let in_events = self.in_events.saturating_add(added.in_events);
        Self { bytes, in_events: in_events.saturating_sub(removed.in_events) }
    }
}

/// Estimates the memory of an event, in bytes.
pub(super) fn weight(event: &Event) -> u64 {
    match event {
        Event::MessageAppended(message) => bytes_of(message),
        Event::ResultCut(result) => {
            OVERHEAD + result.content.iter().map(ContentBlock::text_bytes).sum::<u64>()
        }
        Event::Host { data, .. } | Event::Malformed { data, .. } => {
            OVERHEAD + data.as_str().len() as u64
        }
        Event::NoteWritten { name, text } => OVERHEAD + (name.len() + text.len()) as u64,
        Event::Compacted(record) => {
            OVERHEAD + record.batches.iter().map(|batch| batch.text.len() as u64).sum::<u64>()
        }
        Event::SystemPromptSet { .. }
        | Event::LocalNotice { .. }
        | Event::Truncated { .. }
        | Event::CompactionFailed(_)
        | Event::CompactionUndone { .. }
        | Event::RuleAdded { .. }
        | Event::RuleRevoked { .. }
        | Event::Spent { .. } => OVERHEAD,
    }
}

/// Estimates the memory of a message, in bytes.
fn bytes_of(message: &Message) -> u64 {
    message.text_bytes().saturating_add(OVERHEAD)
}
