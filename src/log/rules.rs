//! The standing rules of a logged thread: what the user typed and what the host changed, in order.

use std::ops::Range;

use super::{
    event::{Event, RuleChange},
    event_log::EventLog,
};
use crate::{
    ledger::Ledger,
    message::{Redactor, redact::redacted_text},
};

impl EventLog {
    /// Returns the standing rules: what the user typed in every message that was not dropped from
    /// the end, also where compactions took it away since, and what the host changed. The redactor
    /// stands before all of it.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog, RuleChange}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let user = Message::user("Never touch the lexer. What is in a.txt?");
    /// log.append(Timestamp(1), Event::MessageAppended(user))?;
    /// let change = RuleChange::Added { text: "Never send mails.".into() };
    /// log.append(Timestamp(2), Event::RuleChanged(change))?;
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

/// The standing rules of one log, read as it grows. Every event is read once, unless messages were
/// dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedRules {
    ledger: Ledger,
    /// The first event that was not read.
    next: u64,
    /// How many messages came before it.
    arrived: usize,
}

impl LoggedRules {
    /// The rules, as far as the log was read.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether nothing happened since the last time.
    pub(crate) fn is_read(&self, log: &EventLog) -> bool {
        self.next == log.len()
    }

    /// Reads what happened since the last time.
    pub(crate) fn read(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) {
        let came = log.since(self.next);
        let cut = came.iter().any(|logged| matches!(logged.event, Event::Truncated(_)));
        let mut said = None;
        if self.next > log.len() || cut {
            // What was dropped was never said, so what it took back holds again.
            *self = Self::default();
            said = Some(log.said());
        }
        for logged in log.since(self.next) {
            self.take(&logged.event, said.as_deref(), redactor);
        }
        self.next = log.len();
    }

    fn take(
        &mut self,
        event: &Event,
        said: Option<&[Range<usize>]>,
        redactor: Option<&dyn Redactor>,
    ) {
        match event {
            Event::MessageAppended(message) => {
                let number = self.arrived;
                self.arrived = self.arrived.saturating_add(1);
                let dropped = said.is_some_and(|said| !is_in(said, number));
                // Nor is anything redacted that holds no word of the user.
                if dropped || !message.is_typed() {
                    return;
                }
                match redactor {
                    Some(redactor) => self.ledger.read(number, &message.redacted(redactor)),
                    None => self.ledger.read(number, message),
                }
            }
            Event::RuleChanged(RuleChange::Added { text }) => {
                let text = redactor.map_or_else(|| text.clone(), |one| redacted_text(text, one));
                // What is no rule by today's bounds is none.
                let _ = self.ledger.add(&text);
            }
            Event::RuleChanged(RuleChange::Revoked { id }) => {
                let _ = self.ledger.revoke(*id);
            }
            Event::SystemPromptSet(_)
            | Event::LocalNotice(_)
            | Event::Truncated(_)
            | Event::Compacted(_)
            | Event::CompactionFailed(_)
            | Event::CompactionUndone(_)
            | Event::Host(_)
            | Event::Unknown(_)
            | Event::Malformed(_) => {}
        }
    }
}

/// Whether ascending ranges hold a number.
fn is_in(ranges: &[Range<usize>], number: usize) -> bool {
    let at = ranges.partition_point(|range| range.end <= number);
    ranges.get(at).is_some_and(|range| range.contains(&number))
}
