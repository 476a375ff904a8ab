//! The standing rules of a log: from the user's messages and the host's changes, in order.

use std::ops::Range;

use super::{event::Event, event_log::EventLog};
use crate::{
    ledger::Ledger,
    message::{Redactor, redact::redacted_text},
};

impl EventLog {
    /// Returns the standing rules: from what the user typed in every message that was not
    /// truncated, including those that compactions removed, and from the host's changes. All texts
    /// are redacted before they are read; rules from before the log's [`base`](Self::base), which
    /// were read then, are redacted now.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let user = Message::user("Never touch the lexer. What is in a.txt?");
    /// log.append(Timestamp(1), Event::MessageAppended(user))?;
    /// log.append(Timestamp(2), Event::RuleAdded { text: "Never send mails.".into() })?;
    /// assert_eq!(log.rules(None).to_string(), "- Never touch the lexer.\n- Never send mails.\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rules(&self, redactor: Option<&dyn Redactor>) -> Ledger {
        let mut rules = LoggedRules::default();
        rules.read(self, redactor);
        rules.ledger
    }
}

/// The standing rules of one log, updated as it grows. Each event is read once; after a truncation
/// all are read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedRules {
    ledger: Ledger,
    /// The `seq` of the first event that was not read.
    next: u64,
    /// The number of messages in the events before `next`.
    messages: usize,
}

impl LoggedRules {
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether all events of the log were read.
    pub(crate) fn is_read(&self, log: &EventLog) -> bool {
        self.next == log.len()
    }

    /// Reads the events appended since the last call.
    pub(crate) fn read(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) {
        let dropped = &log.state().dropped;
        if self.next < dropped.seq {
            let rules: Ledger = serde_json::from_str(dropped.rules.as_str()).unwrap_or_default();
            let ledger = redactor.map_or_else(|| rules.clone(), |one| rules.redacted(one));
            *self = Self { ledger, next: dropped.seq, messages: dropped.messages };
        }
        let new = log.since(self.next);
        let truncated = new.iter().any(|logged| matches!(logged.event, Event::Truncated { .. }));
        let mut originals = None;
        if self.next > log.len() || truncated {
            // Rules that truncated messages revoked are active again, so read the log from the
            // start.
            *self = Self::default();
            originals = Some(log.original_numbers());
        }
        for logged in log.since(self.next) {
            self.read_event(&logged.event, originals.as_deref(), redactor);
        }
        self.next = log.len();
    }

    fn read_event(
        &mut self,
        event: &Event,
        originals: Option<&[Range<usize>]>,
        redactor: Option<&dyn Redactor>,
    ) {
        match event {
            Event::MessageAppended(message) => {
                let number = self.messages;
                self.messages += 1;
                let truncated = originals.is_some_and(|originals| !contains(originals, number));
                // Skip untyped messages here, because redacting them would cost time.
                if truncated || !message.is_typed() {
                    return;
                }
                match redactor {
                    Some(redactor) => self.ledger.read(number, &message.redacted(redactor)),
                    None => self.ledger.read(number, message),
                }
            }
            Event::RuleAdded { text } => {
                let text = redactor.map_or_else(|| text.clone(), |one| redacted_text(text, one));
                // An older build may have allowed a longer text. The ledger counts it as left out.
                let _ = self.ledger.add(&text);
            }
            Event::RuleRevoked { id } => {
                let _ = self.ledger.revoke(id);
            }
            Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::Truncated { .. }
            | Event::Compacted(_)
            | Event::CompactionFailed(_)
            | Event::CompactionUndone { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Unknown { .. }
            | Event::Malformed { .. } => {}
        }
    }
}

/// Whether ascending ranges contain a number.
fn contains(ranges: &[Range<usize>], number: usize) -> bool {
    let at = ranges.partition_point(|range| range.end <= number);
    ranges.get(at).is_some_and(|range| range.contains(&number))
}
