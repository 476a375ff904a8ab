//! The standing rules of a journal, read when they are needed.

use std::sync::OnceLock;

use crate::{
    ledger::Ledger,
    log::{EventLog, LoggedRules},
    message::Redactor,
};

/// The standing rules of a log, read when they are needed. Reading the rules of a short prompt
/// takes 3,000 CPU instructions, a quarter of its turn, and most turns need no rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct RulesCache {
    read: LoggedRules,
    /// Up-to-date rules, cached for callers that hold `&self`.
    cached: OnceLock<LoggedRules>,
    /// Whether the caller needs the rules after every event.
    is_kept: bool,
}

impl RulesCache {
    /// Returns a cache without the rules that were read, for another log.
    pub(crate) fn emptied(&self) -> Self {
        Self { is_kept: self.is_kept, ..Self::default() }
    }

    /// Keeps the rules in memory from now on.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Frees the memory (3 KB for each rule) unless the rules are kept. The next call reads them
    /// again.
    pub(crate) fn forget(&mut self) {
        if !self.is_kept {
            *self = Self::default();
        }
    }

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
