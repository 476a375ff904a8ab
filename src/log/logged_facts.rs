//! The facts of a log, updated as it grows.

use std::{ops::Range, sync::Arc};

use super::{base::LogBase, event_log::EventLog};
use crate::{
    message::{Json, Redactor},
    retention::{AuditOptions, Facts},
};

/// The facts of all messages of one log that were not truncated. Each message is read once; after a
/// truncation all are read again, and with other options those that the log holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedFacts {
    facts: Arc<Facts>,
    /// The facts at the base of the log, until they are needed.
    stored: Option<Json>,
    options: AuditOptions,
    /// The numbers of the messages that were read.
    read: Vec<Range<usize>>,
}

impl LoggedFacts {
    /// Returns the facts of a log at its base.
    pub(crate) fn at(base: &LogBase) -> Self {
        let (stored, read) = (Some(base.facts().clone()), base.originals().to_vec());
        Self { stored, read, ..Self::default() }
    }

    /// Returns the facts of a log that is read with this redactor from now on.
    pub(crate) fn redacted(mut self, log: &EventLog, redactor: &dyn Redactor) -> Self {
        if log.base() == 0 {
            return Self::default();
        }
        self.unpack();
        Self { facts: Arc::new(self.facts.redacted(redactor)), ..self }
    }

    /// Reads the messages appended since the last call with the options of that call, and returns
    /// all facts.
    pub(crate) fn all(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) -> Arc<Facts> {
        self.unpack();
        let options = self.options.clone();
        self.of(log, &options, redactor)
    }

    /// Reads the facts of the base.
    fn unpack(&mut self) {
        let Some(stored) = self.stored.take() else { return };
        let facts: Facts = serde_json::from_str(stored.as_str()).unwrap_or_default();
        (self.options, self.facts) = (facts.options().clone(), Arc::new(facts));
    }

    /// Reads the messages appended since the last call, redacted, and returns all facts.
    pub(crate) fn of(
        &mut self,
        log: &EventLog,
        options: &AuditOptions,
        redactor: Option<&dyn Redactor>,
    ) -> Arc<Facts> {
        self.unpack();
        let originals = log.original_numbers();
        let from = match read_prefix(&self.read, &originals) {
            Some(from) if self.facts.messages() > 0 && self.options == *options => from,
            // Earlier messages are not held, so what was found in them by other options stays.
            Some(from) if log.base() > 0 => {
                Arc::make_mut(&mut self.facts).set_options(options.clone());
                self.options = options.clone();
                from
            }
            Some(_) | None => {
                self.facts = Arc::new(Facts::new(options.clone()));
                self.options = options.clone();
                0
            }
        };
        let facts = Arc::make_mut(&mut self.facts);
        for number in originals.iter().flat_map(Clone::clone).skip(from) {
            match (log.arrival(number), redactor) {
                (Some(message), Some(redactor)) => facts.read(&message.redacted(redactor)),
                (Some(message), None) => facts.read(message),
                (None, _) => {}
            }
        }
        self.read = originals;
        Arc::clone(&self.facts)
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
