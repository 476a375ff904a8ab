//! What every codec does before and while it encodes: repair the thread, and note each change.

use super::contract::{Adjustment, Change};
use crate::{
    compact::legality,
    message::{Extra, Json, Message, Text},
};

/// Returns the messages as some provider accepts them, each with its index in the request, and
/// the notes on what that took.
pub(super) fn prepare(messages: &[Message], codec: &'static str) -> (Vec<(usize, Message)>, Notes) {
    let (messages, repairs) = legality::repair_numbered(messages.to_vec());
    let mut notes = Notes { codec, message: None, adjustments: Vec::new() };
    notes.adjustments = repairs
        .into_iter()
        .map(|repair| Adjustment::at(repair.message(), Change::Repaired { repair }))
        .collect();
    (messages, notes)
}

/// The changes made so far, and the message at work.
#[derive(Debug)]
pub(super) struct Notes {
    codec: &'static str,
    message: Option<usize>,
    adjustments: Vec<Adjustment>,
}

impl Notes {
    /// Turns to a message of the request; `None` for the request as a whole.
    pub(super) fn turn_to(&mut self, message: impl Into<Option<usize>>) {
        self.message = message.into();
    }

    /// Notes a change to the message at work.
    pub(super) fn note(&mut self, change: Change) {
        self.adjustments.push(Adjustment { message: self.message, change });
    }

    /// Notes that a block is left out.
    pub(super) fn drop_block(&mut self, kind: &str, reason: &str) {
        self.note(Change::BlockDropped { kind: kind.into(), reason: reason.into() });
    }

    /// The extra fields if they are this codec's; another's are noted as left out.
    pub(super) fn own_fields<'e>(
        &mut self,
        extra: &'e Extra,
    ) -> impl Iterator<Item = (&'e str, &'e Json)> + use<'e> {
        if let Some(codec) = extra.codec().filter(|codec| *codec != self.codec) {
            // What begins with `#` is a codec's note to itself and was never on the wire.
            let names = extra.fields().map(|(key, _)| key).filter(|key| !key.starts_with('#'));
            let fields: Vec<Text> = names.map(Text::from).collect();
            if !fields.is_empty() {
                self.note(Change::FieldsDropped { codec: codec.into(), fields });
            }
        }
        extra.of(self.codec)
    }

    /// The changes, in the order of the thread.
    pub(super) fn finish(mut self) -> Vec<Adjustment> {
        self.adjustments.sort_by_key(|adjustment| adjustment.message.unwrap_or(usize::MAX));
        self.adjustments
    }
}
