//! Workers that share threads by leases, sleep past the ends of their leases and have different
//! clocks.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use futures::executor::block_on;
use threadfold::{
    message::{ThreadId, Timestamp},
    store::{LeaseStore, StoreError, ThreadStore},
};
use threadfold_sqlite::SqliteStore;

use crate::support::{Folder, id, open, said, texts};

const WORKERS: u64 = 8;
const THREADS: u64 = 50;
const LEASES: u64 = 60;
const LIFETIME: Duration = Duration::from_secs(10);

/// The state that the workers share: a clock that their sleeps advance, and the acknowledged
/// events.
#[derive(Default)]
struct World {
    clock: AtomicU64,
    acknowledged: Mutex<BTreeMap<(String, u64), String>>,
    stolen: AtomicU64,
}

#[test]
fn a_thread_has_one_writer_at_a_time_although_leases_are_taken_over() {
    let (folder, world) = (Folder::new(), World::default());
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (store, world) = (open(&folder), &world);
            scope.spawn(move || (0..LEASES).for_each(|turn| work(&store, world, worker, turn)));
        }
    });
    let stolen = world.stolen.load(Ordering::Relaxed);
    let acknowledged = world.acknowledged.into_inner().unwrap();
    println!("{} events, {stolen} late writes refused", acknowledged.len());
    assert!(stolen > 20, "only {stolen} leases were stolen");

    let (store, mut stored) = (open(&folder), BTreeMap::new());
    for thread in block_on(store.list()).unwrap() {
        let mut last = 0;
        for (seq, text) in (0..).zip(texts(&store, thread.as_str())) {
            // After a later lease has written, no earlier one may write.
            let fence: u64 = text.split(' ').next().unwrap().parse().unwrap();
            assert!(fence >= last, "{thread}: fence {fence} after {last}");
            last = fence;
            stored.insert((thread.to_string(), seq), text);
        }
    }
    assert_eq!(stored, acknowledged, "exactly the acknowledged events are stored, in order");
}

/// Acquires a thread and writes to it. In between it may sleep past the end of its lease.
fn work(store: &SqliteStore, world: &World, worker: u64, turn: u64) {
    let chance = |of: u64| mixed(worker * 1_000 + turn) / of;
    // Few threads are used at a time, so that workers compete for them.
    let thread = id(&format!("t{}", (turn * 5 / 6 + chance(1) % 2) % THREADS));
    // The clocks of the workers differ by up to seven seconds.
    let now = || Timestamp(100_000 + world.clock.load(Ordering::SeqCst) + worker * 1_000);
    let name = format!("worker-{worker}");
    let lease = match block_on(store.acquire_lease(&thread, &name, now(), LIFETIME)) {
        Ok(lease) => lease,
        Err(StoreError::Held { .. }) => {
            world.clock.fetch_add(1_000, Ordering::SeqCst);
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let len = block_on(store.load(&thread)).unwrap().log.len();
    for (len, step) in (len..).zip(0..3) {
        let robbed = chance(13 + step) % 9 == 0;
        if robbed {
            world.clock.fetch_add(20_000, Ordering::SeqCst);
            steal(store, world, &thread, now());
        } else if chance(7 + step) % 3 == 0 {
            world.clock.fetch_add(6_000, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(chance(5) % 9));
        } else if chance(11 + step) % 3 == 0 {
            let _ = block_on(store.renew_lease(&lease, now(), LIFETIME));
        }
        let text = format!("{} {worker}.{turn}.{step}", lease.fence);
        match block_on(store.append_leased(&lease, None, len, &[said(len, text.as_str())])) {
            Ok(()) if robbed => panic!("{thread}: a worker wrote after its lease was stolen"),
            Ok(()) => acknowledge(world, &thread, len, text),
            Err(StoreError::LeaseLost { .. }) => {
                world.stolen.fetch_add(1, Ordering::SeqCst);
                return;
            }
            // Any other error means that the lease did not stop a second writer.
            Err(other) => panic!("{thread}: {other}"),
        }
    }
    if chance(3) % 4 != 0 {
        block_on(store.release_lease(&lease)).unwrap();
    }
}

/// Takes over a thread whose lease has expired, unless another worker does, and writes to it.
fn steal(store: &SqliteStore, world: &World, thread: &ThreadId, now: Timestamp) {
    let lease = match block_on(store.acquire_lease(thread, "thief", now, LIFETIME)) {
        Ok(lease) => lease,
        Err(StoreError::Held { .. }) => return,
        Err(other) => panic!("{other}"),
    };
    let len = block_on(store.load(thread)).unwrap().log.len();
    let text = format!("{} thief", lease.fence);
    match block_on(store.append_leased(&lease, None, len, &[said(len, text.as_str())])) {
        Ok(()) => acknowledge(world, thread, len, text),
        Err(StoreError::LeaseLost { .. }) => {}
        Err(other) => panic!("{thread}: {other}"),
    }
    block_on(store.release_lease(&lease)).unwrap();
}

fn acknowledge(world: &World, thread: &ThreadId, seq: u64, text: String) {
    let key = (thread.to_string(), seq);
    let twice = world.acknowledged.lock().unwrap().insert(key, text);
    assert_eq!(twice, None, "event {seq} of {thread} was acknowledged twice");
}

fn mixed(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}
