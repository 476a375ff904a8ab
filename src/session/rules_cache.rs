//! The standing rules of a session, computed on first use.

use std::sync::OnceLock;

use crate::{
    ledger::Ledger,
    log::{EventLog, LoggedRules},
    message::Redactor,
};

/// The standing rules of a session's log. They are read lazily: reading the rules of a plain prompt
/// costs 3,000 instructions, a quarter of its turn, and most turns need no rules.
#[derive(Debug, Default)]
pub(super) struct RulesCache {
    pub(super) read: LoggedRules,
    /// Up-to-date rules, cached for callers that hold `&self`.
    cached: OnceLock<LoggedRules>,
}

impl RulesCache {
    /// The current rules.
    pub(super) fn ledger(&self, log: &EventLog, redactor: Option<&dyn Redactor>) -> &Ledger {
        if self.read.is_read(log) {
            return self.read.ledger();
        }
        let cached = self.cached.get_or_init(|| {
            let mut cached = self.read.clone();
            cached.read(log, redactor);
            cached
        });
        cached.ledger()
    }

    /// Drops the cache, because an event that may change the rules is about to be logged.
    pub(super) fn invalidate(&mut self) {
        if let Some(cached) = self.cached.take() {
            self.read = cached;
        }
    }

    /// Reads the events logged since the last call.
    pub(super) fn read(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) {
        self.invalidate();
        self.read.read(log, redactor);
    }
}
