//! Leases: the suites on the crate's store and on broken ones, and sessions that lose a lease.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Answer, Message, ModelAgent, Role, Session, async_trait,
    log::{Event, LogId, LoggedEvent},
    message::{StopReason, ThreadId, Timestamp, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    session::SessionError,
    store::{self, Journal, LeaseStore, Loaded, MemoryStore, StoreError, ThreadStore, leased},
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::conformance::{self, Law};

use crate::support::{bench::calls, broken_leases::BrokenLeases};

const TEN: Duration = Duration::from_secs(10);

#[test]
fn our_leases_conform() {
    let leases = block_on(conformance::leases(|| Box::new(MemoryStore::default())));
    leases.unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn eight_workers_share_two_hundred_threads_for_ten_minutes() {
    let worked = block_on(conformance::workers(Arc::new(MemoryStore::default())));
    worked.unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn broken_leases_are_caught() {
    let laws = [
        Law::OneWorkerHolds,
        Law::ExpiredIsFree,
        Law::FencesRise,
        Law::RenewalExtends,
        Law::LateWriteIsRefused,
    ];
    for law in laws {
        let outcome = block_on(conformance::leases(|| Box::new(BrokenLeases::new(law))));
        let breach = outcome.expect_err(&law.to_string());
        assert_eq!(breach.law, law, "{breach}");
    }
}

#[test]
fn workers_that_write_late_are_caught() {
    let broken = Arc::new(BrokenLeases::new(Law::LateWriteIsRefused));
    let breach = block_on(conformance::workers(broken)).unwrap_err();
    // The late write itself, or the conflict of the worker whose log it hit.
    let laws = [Law::LateWriteIsRefused, Law::OneWorkerHolds];
    assert!(laws.contains(&breach.law), "{breach}");
}

/// A session of a worker that has just acquired the thread.
fn worker(store: &Arc<MemoryStore>, name: &str, now: u64) -> Session {
    let thread: ThreadId = "t1".parse().unwrap();
    let lease = block_on(store.acquire_lease(&thread, name, Timestamp(now), TEN)).unwrap();
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!", "Hello again!"])));
    let leased = leased(store.clone(), lease);
    block_on(Session::builder(agent).thread(thread).store(leased).open()).unwrap()
}

#[test]
fn a_session_without_its_lease_ends_its_turn_before_it_asks_the_model() {
    let store = Arc::new(MemoryStore::default());
    let mut first = worker(&store, "first", 0);
    block_on(async { first.send("Hi.").await }).unwrap();
    let mut second = worker(&store, "second", 10_000);
    for _ in 0..2 {
        let late = block_on(async { first.send("Hi from the past.").await });
        assert!(matches!(late, Err(SessionError::Store(StoreError::LeaseLost { .. }))), "{late:?}");
    }
    let reply = block_on(async { second.send("And on.").await }).unwrap();
    assert_eq!((reply.text.as_str(), second.messages().len()), ("Hello!", 4));
    assert_eq!(block_on(store.load(second.thread_id())).unwrap().log, *second.log());
}

/// A tool that runs so long that another worker takes the thread over.
#[derive(Debug)]
struct Slow(Arc<MemoryStore>);

#[async_trait]
impl Tool for Slow {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("slow", "Takes its time.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        call: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        self.0.acquire_lease(call.thread, "second", Timestamp(10_000), TEN).await?;
        Ok(ToolOutput::from("done"))
    }
}

#[test]
fn a_lease_that_is_lost_in_a_turn_ends_it_before_the_model_is_asked_again() {
    let (store, thread) = (Arc::new(MemoryStore::default()), "t1".parse::<ThreadId>().unwrap());
    let lease = block_on(store.acquire_lease(&thread, "first", Timestamp(0), TEN)).unwrap();
    let call = Answer::new(calls(&[("call_1", "slow", "{}")]), StopReason::ToolUse, None);
    let model = Arc::new(ScriptedModel::new([call.into(), Scripted::from("It is done.")]));
    let builder =
        Session::builder(ModelAgent::new(model.clone())).tool(Arc::new(Slow(store.clone())));
    let leased = leased(store.clone(), lease);
    let mut session = block_on(builder.thread(thread.clone()).store(leased).open()).unwrap();
    let late = block_on(async { session.send("Do it.").await });
    assert!(matches!(late, Err(SessionError::Store(StoreError::LeaseLost { .. }))), "{late:?}");
    assert_eq!((model.requests().len(), model.remaining()), (1, 1));

    // The next worker finds the call without its result, and answers it as cancelled.
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["It was cut off."])));
    let current = block_on(store.append(&thread, None, 0, &[])).unwrap_err();
    let StoreError::Held { lease } = current else { panic!("{current}") };
    let next = store::leased(store.clone(), lease);
    let mut next = block_on(Session::builder(agent).thread(thread).store(next).open()).unwrap();
    block_on(async { next.continue_turn().await }).unwrap();
    let roles: Vec<Role> = next.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}

#[test]
fn a_leased_store_writes_no_other_thread() {
    let store = Arc::new(MemoryStore::default());
    let thread: ThreadId = "t1".parse().unwrap();
    let lease = block_on(store.acquire_lease(&thread, "first", Timestamp(0), TEN)).unwrap();
    let other: ThreadId = "t2".parse().unwrap();
    let refused = block_on(leased(store, lease).append(&other, None, 0, &[]));
    assert!(matches!(refused, Err(StoreError::LeaseLost { thread, .. }) if thread == other));
}

/// A leased store whose first write is stored and fails, and whose thread another worker takes over
/// before it is read again.
#[derive(Debug)]
struct Overtaken {
    memory: Arc<MemoryStore>,
    first: Arc<dyn ThreadStore>,
    is_written: AtomicBool,
}

#[async_trait]
impl ThreadStore for Overtaken {
    async fn append(
        &self,
        thread: &ThreadId,
        id: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        self.first.append(thread, id, expected_len, events).await?;
        if self.is_written.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        Err(StoreError::medium("a cable", io::Error::other("pulled out")))
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let mut loaded = self.memory.load(thread).await?;
        if self.is_written.load(Ordering::Relaxed) {
            let lease = self.memory.acquire_lease(thread, "second", Timestamp(10_000), TEN).await?;
            let event = Event::MessageAppended(Message::user("Hi from the second."));
            loaded.log.append(Timestamp(10_000), event).unwrap();
            let events = loaded.log.events().last().map(std::slice::from_ref).unwrap();
            let second = leased(self.memory.clone(), lease);
            second.append(thread, loaded.id, loaded.log.len() - 1, events).await?;
        }
        Ok(loaded)
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.memory.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.memory.delete(thread).await
    }
}

#[test]
fn a_lease_that_is_lost_while_a_write_is_in_doubt_is_named() {
    let (memory, thread) = (Arc::new(MemoryStore::default()), "t1".parse::<ThreadId>().unwrap());
    let lease = block_on(memory.acquire_lease(&thread, "first", Timestamp(0), TEN)).unwrap();
    let first = leased(memory.clone(), lease);
    let is_written = AtomicBool::new(false);
    let store = Arc::new(Overtaken { memory: memory.clone(), first, is_written });
    let mut journal = block_on(Journal::open(store, thread.clone())).unwrap();
    let event = Event::MessageAppended(Message::user("Hi."));
    journal.append(Timestamp(1), event).unwrap();
    assert!(matches!(block_on(journal.flush()), Err(StoreError::Medium { .. })));
    let late = block_on(journal.flush());
    assert!(matches!(late, Err(StoreError::LeaseLost { .. })), "{late:?}");
    assert_eq!(block_on(memory.load(&thread)).unwrap().log.len(), 2);
}
