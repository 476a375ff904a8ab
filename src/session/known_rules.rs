//! The standing rules of a session, as far as somebody had to know.

use std::sync::OnceLock;

use crate::{
    ledger::Ledger,
    log::{EventLog, LoggedRules},
    message::Redactor,
};

/// The standing rules of the log of a session, read when somebody asks: the rules of a plain prompt
/// cost 3,000 instructions, a quarter of its turn, and most turns end without anybody who asked.
#[derive(Debug, Default)]
pub(super) struct SessionRules {
    pub(super) read: LoggedRules,
    /// With what came since, where somebody asked who could not change them.
    asked: OnceLock<LoggedRules>,
}

impl SessionRules {
    /// The rules as they are now.
    pub(super) fn ledger(&self, log: &EventLog, redactor: Option<&dyn Redactor>) -> &Ledger {
        if self.read.is_read(log) {
            return self.read.ledger();
        }
        let asked = self.asked.get_or_init(|| {
            let mut asked = self.read.clone();
            asked.read(log, redactor);
            asked
        });
        asked.ledger()
    }

    /// Says that something comes into the log that may change the rules.
    pub(super) fn change(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.read = asked;
        }
    }

    /// Reads what happened since.
    pub(super) fn read(&mut self, log: &EventLog, redactor: Option<&dyn Redactor>) {
        self.change();
        self.read.read(log, redactor);
    }
}
