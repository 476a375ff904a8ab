//! The standing rules and the facts of a log, each updated as the log grows.

use std::{ops::Range, sync::Arc};

use super::{event::Event, event_log::EventLog};
use crate::{
    ledger::Ledger,
    message::{Redactor, redact::redacted_text},
    retention::{AuditOptions, Facts},
};

impl EventLog {
    /// Returns the standing rules: those that models quoted from what the user typed, unless the
    /// user's message was truncated since, and those of the host. Texts are redacted.
    ///
    /// ```
    /// use threadfold::{log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(2), Event::RuleAdded { text: "Never send mails.".into() })?;
    /// assert_eq!(log.rules(None).to_string(), "- Never send mails.\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rules(&self, redactor: Option<&dyn Redactor>) -> Ledger {
        let mut rules = LoggedRules::default();
        rules.read(self, redactor);
        rules.ledger
    }
}

/// The standing rules of one log, updated as the log grows. Each event is read once; after a
/// truncation all events are read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedRules {
    ledger: Ledger,
    /// The `seq` of the first event that was not read.
    next: u64,
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
            *self = Self { ledger, next: dropped.seq };
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
            Event::RuleAdded { text } => {
                let text = redactor.map_or_else(|| text.clone(), |one| redacted_text(text, one));
                // An older build may have allowed a longer text. The ledger then counts this rule
                // as omitted.
                let _ = self.ledger.add(&text);
            }
            Event::RuleRevoked { id } => {
                let _ = self.ledger.revoke(id);
            }
            // The user typed these words, so they hold also after the compaction is undone; not so
            // after their message was truncated.
            Event::Compacted(record) => {
                let is_typed = |position: Option<usize>| {
                    let position = position.zip(originals);
                    position.is_none_or(|(position, originals)| contains(originals, position))
                };
                let mut quoted = record.quoted.clone();
                quoted.rules.retain(|rule| is_typed(rule.position));
                quoted.lifted.retain(|rule| is_typed(rule.position));
                if let Some(redactor) = redactor {
                    for rule in &mut quoted.rules {
                        rule.text = redacted_text(&rule.text, redactor);
                    }
                    for pair in &mut quoted.lifted {
                        *pair = pair.redacted(redactor);
                    }
                }
                self.ledger.apply(&quoted);
            }
            Event::MessageAppended(_)
            | Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::Truncated { .. }
            | Event::CompactionFailed(_)
            | Event::CompactionUndone { .. }
            | Event::NoteWritten { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Spent { .. }
            | Event::Malformed { .. } => {}
        }
    }
}

/// Whether ascending ranges contain a number.
fn contains(ranges: &[Range<usize>], number: usize) -> bool {
    let at = ranges.partition_point(|range| range.end <= number);
    ranges.get(at).is_some_and(|range| range.contains(&number))
}

/// The facts of all messages of one log that were not truncated. Each message is read once. After a
/// truncation all are read again; after a change of the options, those that are in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedFacts {
    /// `None` until they are needed: they take several times the memory of the thread.
    facts: Option<Arc<Facts>>,
    /// The options of the last call.
    options: AuditOptions,
    /// The numbers of the messages that were read.
    read: Vec<Range<usize>>,
}

impl LoggedFacts {
    /// Whether the facts are in memory.
    pub(crate) fn are_held(&self) -> bool {
        self.facts.is_some()
    }

    /// Whether the facts of the messages before the log's base are missing.
    pub(crate) fn lack_base(&self, log: &EventLog) -> bool {
        log.base() > 0 && self.facts.is_none()
    }

    /// Takes the facts of the messages before the log's base.
    pub(crate) fn begin(&mut self, log: &EventLog, facts: Facts) {
        self.read.clone_from(&log.state().dropped.originals);
        self.options = facts.options().clone();
        self.facts = Some(Arc::new(facts));
    }

    /// Frees the memory. The next call reads everything again.
    pub(crate) fn forget(&mut self) {
        (self.facts, self.read) = Default::default();
    }

    /// Reads the messages appended since the last call with the options of that call, and returns
    /// all facts.
    pub(crate) fn all(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) -> Arc<Facts> {
        let options = self.options.clone();
        self.of(log, &options, redactor)
    }

    /// Reads the messages appended since the last call, redacted, and returns all facts.
    pub(crate) fn of(
        &mut self,
        log: &EventLog,
        options: &AuditOptions,
        redactor: Option<&dyn Redactor>,
    ) -> Arc<Facts> {
        let originals = log.original_numbers();
        let known = read_prefix(&self.read, &originals).zip(self.facts.take());
        let (from, mut facts) = match known {
            Some(known) if self.options == *options => known,
            // The messages before the base are not in memory, so their facts cannot be read again
            // with the new options. Keep them as they are.
            Some((from, mut facts)) if log.base() > 0 => {
                Arc::make_mut(&mut facts).set_options(options.clone());
                (from, facts)
            }
            Some(_) | None => (0, Arc::new(Facts::with_options(options.clone()))),
        };
        self.options.clone_from(options);
        let reading = Arc::make_mut(&mut facts);
        for number in originals.iter().flat_map(Clone::clone).skip(from) {
            let Some(message) = log.arrival(number) else { continue };
            let redacted = redactor.map(|redactor| message.redacted(redactor));
            reading.read(redacted.as_ref().unwrap_or(message));
        }
        self.read = originals;
        self.facts = Some(Arc::clone(&facts));
        facts
    }
}

/// Returns how many messages were read, if `originals` begins with exactly these.
fn read_prefix(read: &[Range<usize>], originals: &[Range<usize>]) -> Option<usize> {
    let (last, before) = read.split_last()?;
    let same = originals.get(..before.len()) == Some(before);
    let longer = originals.get(before.len())?;
    let begins = same && longer.start == last.start && last.end <= longer.end;
    begins.then(|| read.iter().map(Range::len).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::Event,
        message::{Message, Timestamp},
        retention::FactClass,
    };

    #[test]
    fn what_was_taken_back_is_no_fact_and_what_came_since_is() {
        let mut log = EventLog::new("main".parse().unwrap());
        let say = |log: &mut EventLog, event| {
            log.append(Timestamp(1), event).unwrap();
        };
        let user = |text: &str| Event::MessageAppended(Message::user(text));
        let (options, mut logged) = (AuditOptions::default(), LoggedFacts::default());
        let mut paths = |log: &EventLog| {
            let retention = logged.of(log, &options, None).audit(&[]);
            let paths = retention.missing.iter().filter(|fact| fact.class == FactClass::Path);
            let mut paths: Vec<String> = paths.map(|fact| fact.text.to_string()).collect();
            paths.sort();
            paths
        };
        say(&mut log, user("See src/one.rs."));
        say(&mut log, user("See src/two.rs."));
        assert_eq!(paths(&log), ["src/one.rs", "src/two.rs"]);
        say(&mut log, user("See src/three.rs."));
        assert_eq!(paths(&log), ["src/one.rs", "src/three.rs", "src/two.rs"]);
        say(&mut log, Event::Truncated { from: 3, len: 1 });
        say(&mut log, user("See src/four.rs."));
        assert_eq!(paths(&log), ["src/four.rs", "src/one.rs"]);
    }
}
