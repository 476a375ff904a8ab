//! The standing rules of a session, as far as somebody had to know.

use std::sync::OnceLock;

use crate::{
    ledger::Ledger,
    log::{EventLog, LoggedRules},
    message::Redactor,
};

/// The standing rules of the log of a session, read when somebody asks: the rules of a plain prompt
/// cost 3,000 instructions, a quarter of its turn, and most turns end without anybody who cached.
#[derive(Debug, Default)]
pub(super) struct RulesCache {
    pub(super) read: LoggedRules,
    /// With what came since, where somebody cached who could not change them.
    cached: OnceLock<LoggedRules>,
}

impl RulesCache {
    /// The rules as they are now.
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

    /// Says that something comes into the log that may change the rules.
    pub(super) fn invalidate(&mut self) {
        if let Some(cached) = self.cached.take() {
            self.read = cached;
        }
    }

    /// Reads what happened since.
    pub(super) fn read(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) {
        self.invalidate();
        self.read.read(log, redactor);
    }
}
