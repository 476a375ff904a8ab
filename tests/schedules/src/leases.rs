//! Workers that take over a thread from each other at any step.

use std::{sync::Arc, time::Duration};

use shuttle::{
    future::block_on,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};
use threadfold::{
    ContextWindow, Message, ModelAgent, Role, Session,
    log::{Event, Loaded, LogId},
    message::{ThreadId, Timestamp},
    session::SessionError,
    store::{Lease, LeaseStore, MemoryStore, StoreError, ThreadStore, leased},
    testing::ScriptedModel,
};

use crate::{every_order, many_orders};

/// A lease lives until the next tick of the clock.
const LIFETIME: Duration = Duration::from_millis(1);

fn thread_id() -> ThreadId {
    "t1".parse().unwrap()
}

fn load(store: &MemoryStore) -> Loaded {
    block_on(store.load(&thread_id())).unwrap()
}

/// The texts that users typed in the stored thread.
fn typed(store: &MemoryStore) -> Vec<String> {
    let messages = load(store).log.replay();
    let users = messages.iter().filter(|message| message.role == Role::User);
    users.flat_map(Message::texts).map(ToString::to_string).collect()
}

fn acquire(store: &MemoryStore, worker: &str, now: u64) -> Option<Lease> {
    match block_on(store.acquire_lease(&thread_id(), worker, Timestamp(now), LIFETIME)) {
        Ok(lease) => Some(lease),
        Err(StoreError::Held { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Loads the thread and appends a message with the number of the lease; returns whether the store took
/// it. It refuses a message only if the lease was lost.
fn write(store: &MemoryStore, lease: &Lease) -> bool {
    let Loaded { mut log, id, .. } = load(store);
    let len = log.len();
    log.append(Timestamp(0), Event::MessageAppended(Message::user(lease.fence.to_string())))
        .unwrap();
    let id: Option<LogId> = id.or(Some("00000000000000aa".parse().unwrap()));
    match block_on(store.append_leased(lease, id, len, log.since(len))) {
        Ok(()) => true,
        Err(StoreError::LeaseLost { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn one_of_two_workers_gets_a_lease() {
    every_order(|| {
        let store = Arc::new(MemoryStore::default());
        let other = store.clone();
        let second = thread::spawn(move || acquire(&other, "second", 0));
        let first = acquire(&store, "first", 0);
        let leases = [first, second.join().unwrap()];
        assert_eq!(leases.iter().flatten().count(), 1);
        // After its end the other one gets it.
        let held = leases.into_iter().flatten().next().unwrap();
        let next = acquire(&store, "third", 1).unwrap();
        assert!(next.fence > held.fence);
        assert!(block_on(store.renew_lease(&held, Timestamp(1), LIFETIME)).is_err());
        assert!(write(&store, &next) && !write(&store, &held));
    });
}

#[test]
fn nobody_writes_after_the_next_worker_took_over() {
    many_orders(|| {
        let (store, clock) = (Arc::new(MemoryStore::default()), Arc::new(AtomicU64::new(0)));
        let worker = |name: &'static str| {
            let (store, clock) = (store.clone(), clock.clone());
            thread::spawn(move || {
                let mut written = Vec::new();
                for _ in 0..3 {
                    let Some(lease) = acquire(&store, name, clock.load(Ordering::SeqCst)) else {
                        clock.fetch_add(1, Ordering::SeqCst);
                        continue;
                    };
                    written.extend(write(&store, &lease).then_some(lease.fence));
                    let now = Timestamp(clock.load(Ordering::SeqCst));
                    let renewed = block_on(store.renew_lease(&lease, now, LIFETIME));
                    written.extend(write(&store, &lease).then_some(lease.fence));
                    if renewed.is_ok() {
                        block_on(store.release_lease(&lease)).unwrap();
                        assert!(!write(&store, &lease), "a released lease writes nothing");
                    }
                }
                written
            })
        };
        let workers = [worker("first"), worker("second"), worker("third")];
        let mut written: Vec<u64> =
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
        written.sort_unstable();
        let stored = typed(&store);
        let stored: Vec<u64> = stored.iter().map(|fence| fence.parse().unwrap()).collect();
        // Each write that succeeded is there once, and those of a later lease follow.
        assert_eq!(stored, written);
    });
}

/// A worker that acquires the thread, sends a text, and returns whether its turn succeeded.
fn turn(store: &Arc<MemoryStore>, clock: &AtomicU64, text: &str) -> bool {
    let lease = loop {
        let now = clock.fetch_add(1, Ordering::SeqCst);
        if let Some(lease) = acquire(store, text, now) {
            break lease;
        }
    };
    let model = Arc::new(ScriptedModel::repeating(["Fine."]));
    let agent = ModelAgent::new(model).with_window(ContextWindow::new(8_000));
    let builder = Session::builder(agent).thread(thread_id());
    let mut session = block_on(builder.store(leased(store.clone(), lease)).open()).unwrap();
    match block_on(async { session.send(text).await }) {
        Ok(_) => true,
        Err(SessionError::Store(StoreError::LeaseLost { .. } | StoreError::Conflict { .. })) => {
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_session_that_lost_its_thread_writes_nothing_into_that_of_the_next() {
    many_orders(|| {
        let (store, clock) = (Arc::new(MemoryStore::default()), Arc::new(AtomicU64::new(0)));
        let (others, ticks) = (store.clone(), clock.clone());
        let other = thread::spawn(move || turn(&others, &ticks, "second"));
        let sent = [("first", turn(&store, &clock, "first")), ("second", other.join().unwrap())];
        let stored = typed(&store);
        for (text, is_sent) in sent {
            let count = stored.iter().filter(|stored| *stored == text).count();
            assert!(count <= 1 && (count == 1 || !is_sent), "{text}: {stored:?}");
        }
        // Whoever came last had the lease to the end.
        assert!(sent.iter().any(|(_, is_sent)| *is_sent), "{sent:?}");
        assert!(turn(&store, &clock, "third"), "the thread is usable");
    });
}

#[test]
fn a_reader_sees_the_beginning_of_the_log_that_is_being_written() {
    every_order(|| {
        let store = Arc::new(MemoryStore::default());
        let writing = store.clone();
        let writer = thread::spawn(move || turn(&writing, &AtomicU64::new(0), "Hi."));
        let read = load(&store).log;
        assert!(writer.join().unwrap());
        assert!(load(&store).log.since(0).starts_with(read.since(0)));
    });
}
