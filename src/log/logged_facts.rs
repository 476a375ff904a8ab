//! The facts of a log, updated as it grows.

use std::{ops::Range, sync::Arc};

use super::event_log::EventLog;
use crate::{
    message::Redactor,
    retention::{AuditOptions, Facts},
};

/// The facts of all messages of one log that were not truncated. Each message is read once. After a
/// truncation all are read again; after a change of the options, those that the log holds.
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
