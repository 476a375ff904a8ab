//! A store that sometimes fails, and replays the thread that it holds.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use threadfold::{
    Message, ThreadStore, async_trait,
    log::{EventLog, LogId, LoggedEvent},
    message::ThreadId,
    store::{Loaded, StoreError, check_order},
};
use threadfold_testing::shared::simulation::{Numbers, Replay};

/// One in this many appends fails: before, within or after its events.
const FAILS: u64 = 150;

/// One in this many events is serialized and read back.
const AS_BYTES: u64 = 16;

/// The log of one thread, and the thread that follows from it.
#[derive(Debug)]
pub(super) struct Kept {
    numbers: Arc<Numbers>,
    /// Whether it sometimes fails.
    fails: bool,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    events: Vec<LoggedEvent>,
    replay: Replay,
    failures: u64,
    fault: Option<String>,
}

impl Kept {
    pub(super) fn new(numbers: Arc<Numbers>, fails: bool) -> Self {
        Self { numbers, fails, held: Mutex::default() }
    }

    /// The number of stored events.
    pub(super) fn len(&self) -> u64 {
        self.held().events.len() as u64
    }

    /// How often the store failed.
    pub(super) fn failures(&self) -> u64 {
        self.held().failures
    }

    /// The first stored event that makes no sense.
    pub(super) fn fault(&self) -> Option<String> {
        self.held().fault.clone()
    }

    /// Returns how these messages differ from the stored thread, if they do.
    pub(super) fn differs(&self, messages: &[Message]) -> Option<String> {
        let held = self.held();
        let stored = held.replay.messages();
        let (found, expected) = (messages.len(), stored.len());
        let same = messages.iter().zip(stored).take_while(|(one, other)| one == other).count();
        (same < found.max(expected)).then(|| {
            let at = |thread: &[Message]| format!("{:.300}", format!("{:?}", thread.get(same)));
            let (here, there) = (at(messages), at(stored));
            format!(
                "{found} messages where {expected} are stored; at {same}: {here}, stored: {there}"
            )
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, expected: u64, events: &[LoggedEvent]) -> Result<(), StoreError> {
        let mut held = self.held();
        let found = held.events.len() as u64;
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        for event in events {
            held.push(event);
        }
        Ok(())
    }

    fn fail(&self) -> StoreError {
        self.held().failures += 1;
        StoreError::medium("the simulated disk", io::Error::other("it is full now and then"))
    }
}

impl Held {
    fn push(&mut self, event: &LoggedEvent) {
        let event =
            if event.seq.is_multiple_of(AS_BYTES) { read_back(event) } else { event.clone() };
        if let Err(fault) = self.replay.take(&event.event) {
            self.fault.get_or_insert(format!("event {}: {fault}", event.seq));
        }
        self.events.push(event);
    }
}

/// Returns the event as a store of bytes would load it.
fn read_back(event: &LoggedEvent) -> LoggedEvent {
    let text = serde_json::to_string(event);
    text.and_then(|text| serde_json::from_str(&text)).unwrap_or_else(|_| event.clone())
}

#[async_trait]
impl ThreadStore for Kept {
    async fn append(
        &self,
        _: &ThreadId,
        _: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        check_order(expected_len, events)?;
        self.numbers.nap().await;
        let most = if self.fails && self.numbers.once_in(FAILS) {
            Some(self.numbers.below(events.len() as u64 + 1) as usize)
        } else {
            None
        };
        self.store(expected_len, most.and_then(|most| events.get(..most)).unwrap_or(events))?;
        self.numbers.nap().await;
        if most.is_some() { Err(self.fail()) } else { Ok(()) }
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let mut log = EventLog::new(thread.clone());
        for event in &self.held().events {
            // The events are stored in order, so each is the next one.
            let _ = log.append_logged(event.clone());
        }
        Ok(Loaded::new(log))
    }

    async fn load_from(&self, _: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        self.numbers.nap().await;
        if self.fails && self.numbers.once_in(20) {
            return Err(self.fail());
        }
        let held = self.held();
        Ok(held.events.get(seq as usize..).unwrap_or_default().to_vec())
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        Ok(Vec::new())
    }

    async fn delete(&self, _: &ThreadId) -> Result<(), StoreError> {
        Ok(())
    }
}
