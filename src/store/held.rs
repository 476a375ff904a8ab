//! What a journal holds in memory besides the latest events: rules and facts, as long as they are
//! needed.

use std::sync::Arc;

use super::{journal::Journal, store_error::Result, thread_store::ThreadStore};
use crate::{
    ledger::Ledger,
    log::{Event, LogBase, StoredBase},
    message::{InvalidValue, Text, Timestamp},
    notes::Notes,
    retention::{AuditOptions, Facts},
};

/// Maximum bytes of events that memory may hold in addition to the thread.
const SPARE_BYTES: u64 = 32 * 1024;

impl Journal {
    /// The standing rules, redacted.
    pub(crate) fn rules(&self) -> &Ledger {
        self.rules.ledger(&self.log, self.redactor.as_deref())
    }

    /// The notes of the agent, redacted.
    pub(crate) fn notes(&self) -> Notes {
        match self.redactor.as_deref() {
            Some(redactor) => self.log.notes().redacted(redactor),
            None => self.log.notes().clone(),
        }
    }

    /// Keeps the rules in memory between writes, for a caller that needs them after every event.
    pub(crate) fn keep_rules(&mut self) {
        self.rules.keep();
    }

    /// Reads the events logged since the rules were read.
    pub(crate) fn read_rules(&mut self) {
        self.rules.read(&self.log, self.redactor.as_deref());
    }

    /// Adds the host's rules that the log has never held.
    pub(crate) fn add_rules(&mut self, at: Timestamp, rules: &[Text]) -> Result<(), InvalidValue> {
        let mut known = self.log.added_rules().clone();
        for text in rules {
            if known.find(text).is_none() {
                known.add(text)?;
                // A change of a rule always fits the log, so this cannot fail.
                let _ = self.append(at, Event::RuleAdded { text: text.clone() });
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn has_read_rules(&self) -> bool {
        self.rules.is_read(&self.log)
    }

    /// The facts of all messages of the log, redacted. Those of messages before the log's base come
    /// from the store.
    pub(crate) async fn facts(&mut self, options: &AuditOptions) -> Result<Arc<Facts>> {
        // Boxed: inlined, this rare path would enlarge every turn's future.
        Box::pin(self.read_base_facts()).await?;
        Ok(self.facts.of(&self.log, options, self.redactor.as_deref()))
    }

    async fn read_base_facts(&mut self) -> Result<()> {
        let (Some(store), true) = (&self.store, self.facts.lack_base(&self.log)) else {
            return Ok(());
        };
        let (thread, base) = (self.log.thread_id(), self.log.base());
        let stored = match self.id {
            Some(id) => store.load_facts(thread, id, base).await?,
            None => None,
        };
        // Facts that another build wrote may be unreadable.
        if let Some(facts) = stored.and_then(|text| serde_json::from_str::<Facts>(&text).ok()) {
            let redacted = self.redactor.as_ref().map(|one| facts.redacted(one.as_ref()));
            self.facts.begin(&self.log, redacted.unwrap_or(facts));
            return Ok(());
        }
        let whole = self.whole().await?.into_owned();
        self.facts.all(&whole, self.redactor.as_deref());
        self.holds_facts = true;
        Ok(())
    }

    /// Whether the events, without the messages that are still in the thread, take so much memory
    /// that writing a base pays.
    pub(super) fn is_bulky(&self) -> bool {
        // A base needs the facts. Just after a compaction they are in memory; at other times they
        // must be read from the store, so the base must save at least as much memory as the thread
        // takes.
        let thread = if self.facts.are_held() { 0 } else { self.log.thread_bytes() };
        self.log.past_bytes() > SPARE_BYTES.saturating_add(thread)
    }

    /// Writes a base to the store and drops the events before it from memory. If the store fails,
    /// the events stay until the next flush, or the next opening reads the whole log.
    pub(super) async fn drop_events(&mut self, store: &dyn ThreadStore) {
        if self.read_base_facts().await.is_err() {
            return;
        }
        self.read_rules();
        let facts = self.facts.all(&self.log, self.redactor.as_deref());
        let Some(base) = LogBase::of(&self.log, self.id, self.rules(), &facts) else { return };
        let Some(log) = base.log(Vec::new()) else { return };
        (self.log, self.rules) = (log, self.rules.emptied());
        if let Some(stored) = base.stored_form() {
            let StoredBase { log, base: text, facts } = stored;
            let _ = store.save_base(self.log.thread_id(), log, base.seq(), &text, facts).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::{
        EventLog, Message, Plan,
        compact::Splice,
        log::CompactionRecord,
        message::{CompactionId, CompactionReason},
        store::MemoryStore,
    };

    #[test]
    fn a_base_is_made_when_facts_are_at_hand_or_the_past_outweighs_the_thread() {
        // Of 20 messages with 10 KB each, a compaction removes some.
        for (reads_facts, removed, has_base) in
            [(true, 3, false), (true, 4, true), (false, 4, false), (false, 13, true)]
        {
            let log = EventLog::new("main".parse().unwrap());
            let mut journal = Journal::new(log).kept_by(Arc::new(MemoryStore::default()));
            for number in 0..20 {
                let message = Message::user(format!("{number} {}", "It reads on. ".repeat(800)));
                journal.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
            }
            block_on(journal.flush()).unwrap();
            assert_eq!(journal.log().base(), 0, "all events are messages of the thread");
            if reads_facts {
                block_on(journal.facts(&AuditOptions::default())).unwrap();
            }
            let plan = Plan::from_splices(20, vec![Splice { at: 0..removed, insert: vec![] }]);
            let (id, reason) = (CompactionId(0), CompactionReason::Threshold);
            let record = CompactionRecord::new(id, reason, "test", plan);
            journal.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
            block_on(journal.flush()).unwrap();
            assert_eq!(journal.log().base() > 0, has_base, "{reads_facts} {removed}");
        }
    }
}
