//! The standing rules of a journal, read when they are needed.

use std::sync::OnceLock;

use crate::{
    ledger::Ledger,
    log::{EventLog, LoggedRules},
    message::Redactor,
};

/// The standing rules of a log, read when they are needed. Reading the rules of a plain prompt costs
/// 3,000 instructions, a quarter of its turn, and most turns need no rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct RulesCache {
    read: LoggedRules,
    /// Up-to-date rules, cached for callers that hold `&self`.
    cached: OnceLock<LoggedRules>,
}

impl RulesCache {
    /// The current rules.
    pub(crate) fn ledger(&self, log: &EventLog, redactor: Option<&dyn Redactor>) -> &Ledger {
        if self.is_read(log) {
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
    pub(crate) fn invalidate(&mut self) {
        if let Some(cached) = self.cached.take() {
            self.read = cached;
        }
    }

    /// Whether no event was logged since the rules were read.
    pub(crate) fn is_read(&self, log: &EventLog) -> bool {
        self.read.is_read(log)
    }

    /// Reads the events logged since the last call.
    pub(crate) fn read(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) {
        self.invalidate();
        self.read.read(log, redactor);
    }
}
