//! Stores that break one law each, for the suites to catch.

use std::{
    future::poll_fn,
    sync::Mutex,
    task::Poll::{Pending, Ready},
};

use threadfold::{
    async_trait,
    log::{EventLog, LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Loaded, MemoryStore, StoreError, ThreadStore, check_order},
};
use threadfold_testing::conformance::Law;

/// A store that breaks this law, if it knows how.
#[derive(Debug)]
pub(crate) struct BrokenStore {
    law: Law,
    inner: MemoryStore,
    /// The base that was saved last, of any log.
    base: Mutex<Option<String>>,
}

impl BrokenStore {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, inner: MemoryStore::default(), base: Mutex::default() }
    }

    async fn stored(&self, thread: &ThreadId) -> u64 {
        self.inner.load(thread).await.unwrap().log.len()
    }
}

/// Returns the id in a store that confuses a dot and a hyphen.
fn folded(law: Law, thread: &ThreadId) -> ThreadId {
    let name = thread.as_str();
    let name = if law == Law::ThreadsAreApart { name.replace('.', "-") } else { name.into() };
    name.parse().unwrap()
}

fn numbered(from: u64, events: &[LoggedEvent]) -> Vec<LoggedEvent> {
    let events = (from..).zip(events);
    events.map(|(seq, event)| LoggedEvent { seq, ..event.clone() }).collect()
}

/// Yields once, so that other futures run.
async fn give_way() {
    let mut waited = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut waited, true) { Ready(()) } else { Pending }
    })
    .await;
}

#[async_trait]
impl ThreadStore for BrokenStore {
    async fn append(
        &self,
        thread: &ThreadId,
        _: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let thread = &folded(self.law, thread);
        let stored = self.stored(thread).await;
        match self.law {
            Law::ConflictWritesNothing if expected_len < stored && !events.is_empty() => {
                self.inner.append(thread, None, stored, &numbered(stored, events)).await
            }
            Law::PlacesRunOn if expected_len == stored => {
                self.inner.append(thread, None, expected_len, &numbered(expected_len, events)).await
            }
            Law::EmptyStoresNothing if events.is_empty() => Ok(()),
            Law::OneWriterWins if stored == expected_len => {
                check_order(expected_len, events)?;
                give_way().await;
                let stored = self.stored(thread).await;
                self.inner.append(thread, None, stored, &numbered(stored, events)).await
            }
            Law::FailureLeavesBeginning if stored > 0 => {
                self.inner.delete(thread).await?;
                Err(StoreError::medium("memory", std::io::Error::other("broken")))
            }
            _ => self.inner.append(thread, None, expected_len, events).await,
        }
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let mut loaded = self.inner.load(&folded(self.law, thread)).await?;
        let mut log = EventLog::new(thread.clone());
        if self.law == Law::StoredComesBack {
            for event in loaded.log.events() {
                log.append_logged(LoggedEvent { at: Timestamp(0), ..event.clone() }).unwrap();
            }
            loaded.log = log;
        } else if self.law == Law::UnknownIsEmpty && loaded.log.is_empty() {
            loaded.log = EventLog::new("another".parse().unwrap());
        } else if self.law == Law::ThreadsAreApart {
            loaded.log.events().iter().for_each(|event| drop(log.append_logged(event.clone())));
            loaded.log = log;
        }
        Ok(loaded)
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        let seq = if self.law == Law::TailIsRest { seq + 1 } else { seq };
        self.inner.load_from(&folded(self.law, thread), seq).await
    }

    async fn save_base(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
        base: &str,
        facts: &str,
    ) -> Result<(), StoreError> {
        *self.base.lock().unwrap() = Some(base.to_owned());
        self.inner.save_base(&folded(self.law, thread), log, seq, base, facts).await
    }

    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>, StoreError> {
        if self.law == Law::BaseBelongs {
            return Ok(self.base.lock().unwrap().clone());
        }
        self.inner.load_base(&folded(self.law, thread)).await
    }

    async fn load_facts(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
    ) -> Result<Option<String>, StoreError> {
        self.inner.load_facts(&folded(self.law, thread), log, seq).await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        let mut threads = self.inner.list().await?;
        if self.law == Law::ListNamesAll {
            threads.reverse();
        }
        Ok(threads)
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        if self.law == Law::DeletedIsGone && thread.as_str() == "t1" {
            return Ok(());
        }
        self.inner.delete(&folded(self.law, thread)).await
    }
}
