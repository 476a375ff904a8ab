//! The conformance suites for leases, and for the runs beside them.

use std::time::Duration;

use futures::future::join_all;

use super::law::{Law, Result, named, same};
use crate::{
    log::{Event, LogId, LoggedEvent},
    message::{Message, ThreadId, Timestamp},
    store::{Lease, LeaseStore, StoreError},
    strategy::{Chunked, CompactionRun},
};

/// How long the leases of the suite last.
const TEN: Duration = Duration::from_secs(10);

/// Tests a store that leases threads: one worker at a time has a thread, also if their clocks
/// differ; renewals extend a lease and may be lost, repeated or late; fences rise; every append
/// without the current lease is refused and stores nothing.
///
/// `make` is called once for each law and must return an empty store. Run [`store`](super::store)
/// too.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{store::MemoryStore, testing::conformance};
///
/// block_on(conformance::leases(|| Box::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn leases(mut make: impl FnMut() -> Box<dyn LeaseStore>) -> Result<()> {
    one_worker_holds(&*make()).await?;
    one_of_many_acquires(&*make()).await?;
    expired_is_free(&*make()).await?;
    released_is_free(&*make()).await?;
    renewal_extends(&*make()).await?;
    lost_renewal_expires(&*make()).await?;
    clocks_may_differ(&*make()).await?;
    late_write_is_refused(&*make()).await?;
    append_needs_the_lease(&*make()).await?;
    deleting_ends_a_lease(&*make()).await?;
    log_is_checked(&*make()).await
}

async fn one_worker_holds(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::OneWorkerHolds);
    let lease = acquire(store, law, &thread, "first", 1_000).await?;
    let (worker, expires) = ("first".into(), Timestamp(11_000));
    let expected = Lease { thread: thread.clone(), worker, fence: lease.fence, expires };
    same(law, "acquired at 1000 for 10 s", &ok(&expected), &Ok(lease.clone()))?;
    for (worker, now) in [("second", 0), ("second", 1_000), ("first", 5_000), ("second", 10_999)] {
        let refused = store.acquire_lease(&thread, worker, Timestamp(now), TEN).await;
        same(law, format!("{worker} at {now}"), &held(&lease), &refused)?;
    }
    acquire(store, Law::ThreadsAreApart, &named("t")?, "second", 1_000).await?;
    let forever = store.acquire_lease(&named("t2")?, "first", Timestamp(5), Duration::MAX).await;
    let forever = forever.map_err(|error| law.breach("a lease for ever", "a lease", error))?;
    let refused = store.acquire_lease(&named("t2")?, "second", Timestamp(1 << 50), TEN).await;
    same(law, "a lease for ever", &held(&forever), &refused)
}

async fn one_of_many_acquires(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::OneWorkerHolds);
    for round in 0..4_u64 {
        let now = Timestamp(round * 10_000);
        let acquires = (0..8).map(|_| store.acquire_lease(&thread, "one of many", now, TEN));
        let outcomes = join_all(acquires).await;
        let input = format!("eight workers at {} ms", now.0);
        let mut acquired = outcomes.iter().flatten();
        let (Some(lease), None) = (acquired.next(), acquired.next()) else {
            return Err(law.breach(input, "one that acquires", format!("{outcomes:?}")));
        };
        let mut refused = outcomes.iter().filter(|outcome| outcome.is_err());
        refused.try_for_each(|outcome| same(law, &input, &held(lease), outcome))?;
    }
    Ok(())
}

async fn expired_is_free(store: &dyn LeaseStore) -> Result<()> {
    let thread = named("t1")?;
    let mut before = acquire(store, Law::ExpiredIsFree, &thread, "first", 0).await?;
    for round in 1..4_u64 {
        let lease = acquire(store, Law::ExpiredIsFree, &thread, "next", round * 10_000).await?;
        rises(&before, &lease)?;
        before = lease;
    }
    Ok(())
}

async fn released_is_free(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::ExpiredIsFree);
    let first = acquire(store, law, &thread, "first", 0).await?;
    for input in ["released", "released twice"] {
        same(law, input, &Ok(()), &store.release_lease(&first).await)?;
    }
    let second = acquire(store, law, &thread, "second", 1).await?;
    rises(&first, &second)?;
    let law = Law::OneWorkerHolds;
    same(law, "released late", &Ok(()), &store.release_lease(&first).await)?;
    let third = store.acquire_lease(&thread, "third", Timestamp(2), TEN).await;
    same(law, "after a late release", &held(&second), &third)
}

async fn renewal_extends(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::RenewalExtends);
    let lease = acquire(store, law, &thread, "first", 0).await?;
    // The renewal at 5 s arrives again after the one at 8 s. The last one comes after the lease
    // ended.
    for (now, expires) in [(5, 15), (8, 18), (5, 18), (8, 18), (20, 30)] {
        let input = format!("renewed at {now} s");
        let renewed = store.renew_lease(&lease, Timestamp(now * 1_000), TEN).await;
        let expected = Lease { expires: Timestamp(expires * 1_000), ..lease.clone() };
        same(law, &input, &ok(&expected), &renewed)?;
        let other = store.acquire_lease(&thread, "second", Timestamp(expires * 1_000 - 1), TEN);
        same(law, input, &held(&expected), &other.await)?;
    }
    let second = acquire(store, law, &thread, "second", 30_000).await?;
    let late = store.renew_lease(&lease, Timestamp(30_000), TEN).await;
    same(law, "renewed after it was lost", &lost(&lease), &late)?;
    let third = store.acquire_lease(&thread, "third", Timestamp(39_999), TEN).await;
    same(law, "after a late renewal", &held(&second), &third)?;
    same(law, "released", &Ok(()), &store.release_lease(&second).await)?;
    let late = store.renew_lease(&second, Timestamp(30_001), TEN).await;
    same(law, "renewed after the release", &lost(&second), &late)
}

async fn lost_renewal_expires(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::ExpiredIsFree);
    let first = acquire(store, law, &thread, "first", 0).await?;
    // This renewal is lost on its way to the store.
    drop(store.renew_lease(&first, Timestamp(5_000), TEN));
    let second = acquire(store, law, &thread, "second", 10_000).await?;
    rises(&first, &second)?;
    refuses(store, &first, "a renewal was lost", 0).await
}

async fn clocks_may_differ(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::OneWorkerHolds);
    let (first_now, hour) = (7_200_000, 3_600_000);
    let first = acquire(store, law, &thread, "first", first_now).await?;
    append(store, &first, 0).await?;
    // A clock that is an hour slow waits longer; one that is an hour fast takes over at once.
    let late = store.acquire_lease(&thread, "late", Timestamp(first_now - hour), TEN).await;
    same(law, "a clock that is an hour late", &held(&first), &late)?;
    let early = acquire(store, law, &thread, "early", first_now + hour).await?;
    rises(&first, &early)?;
    refuses(store, &first, "taken over by an early clock", 1).await?;
    append(store, &early, 1).await?;
    let again = store.acquire_lease(&thread, "first", Timestamp(first_now + 1), TEN).await;
    same(law, "acquired again", &held(&early), &again)?;
    expect_len(store, &thread, "clocks apart", 2).await
}

async fn late_write_is_refused(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::LateWriteIsRefused);
    let first = acquire(store, law, &thread, "first", 0).await?;
    append(store, &first, 0).await?;
    let second = acquire(store, law, &thread, "second", 10_000).await?;
    // The expected length is right, so only the fence can refuse this append.
    refuses(store, &first, "its length is right", 1).await?;
    append(store, &second, 1).await?;
    refuses(store, &first, "its length is wrong", 1).await?;
    let none = store.append_leased(&first, None, 2, &[]).await;
    same(law, "no events", &lost(&first), &none)?;
    append(store, &second, 2).await?;
    same(law, "released", &Ok(()), &store.release_lease(&second).await)?;
    refuses(store, &second, "released", 3).await?;
    expect_len(store, &thread, "three appends with a lease", 3).await
}

async fn append_needs_the_lease(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::LateWriteIsRefused);
    let lease = acquire(store, law, &thread, "first", 0).await?;
    let input = "an append without a lease";
    let free = store.append(&thread, None, 0, &[notice(0)]).await;
    same(law, input, &held(&lease), &free)?;
    let free = store.append(&thread, Some(LogId(7)), 0, &[notice(0)]).await;
    same(law, input, &held(&lease), &free)?;
    let other = Lease { thread: named("t2")?, ..lease.clone() };
    refuses(store, &other, "the fence of another thread", 0).await?;
    expect_len(store, &thread, input, 0).await?;
    same(law, "released", &Ok(()), &store.release_lease(&lease).await)?;
    let free = store.append(&thread, None, 0, &[notice(0)]).await;
    same(law, "an append after the release", &Ok(()), &free)
}

async fn deleting_ends_a_lease(store: &dyn LeaseStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::DeletedIsGone);
    let first = acquire(store, law, &thread, "first", 0).await?;
    append(store, &first, 0).await?;
    same(law, "deleted", &Ok(()), &store.delete(&thread).await)?;
    refuses(store, &first, "the thread was deleted", 0).await?;
    let second = acquire(store, law, &thread, "second", 1).await?;
    rises(&first, &second)?;
    refuses(store, &first, "deleted and acquired", 0).await?;
    append(store, &second, 0).await?;
    expect_len(store, &thread, "deleted and written again", 1).await
}

async fn log_is_checked(store: &dyn LeaseStore) -> Result<()> {
    let (thread, ours, others) = (named("t1")?, Some(LogId(1)), Some(LogId(2)));
    let law = Law::ConflictWritesNothing;
    let lease = acquire(store, law, &thread, "first", 0).await?;
    let batch = [notice(0), notice(1)];
    let first = store.append_leased(&lease, ours, 0, &batch).await;
    same(Law::StoredComesBack, "two events", &Ok(()), &first)?;
    let id = store.load(&thread).await.map(|loaded| loaded.id);
    same(Law::StoredComesBack, "the id of the log", &Ok(ours), &id)?;
    for (log, expected) in [(None, 0), (ours, 1), (ours, 3), (others, 0)] {
        let refused = store.append_leased(&lease, log, expected, &[notice(expected)]).await;
        let conflict = Err(StoreError::Conflict { expected, found: 2 });
        same(law, format!("{expected} expected of 2"), &conflict, &refused)?;
    }
    for expected in [None, others] {
        let refused = store.append_leased(&lease, expected, 2, &[notice(2)]).await;
        let other = StoreError::OtherLog { thread: thread.clone(), expected, found: ours };
        same(law, "another log", &Err(other), &refused)?;
    }
    let refused = store.append_leased(&lease, ours, 2, &[notice(3)]).await;
    let place = StoreError::Place { expected: 2, found: 3 };
    same(Law::PlacesRunOn, "event 3 at 2", &Err(place), &refused)?;
    for at in [2, 3] {
        let more = store.append_leased(&lease, ours, at, &[notice(at)]).await;
        same(Law::StoredComesBack, format!("event {at}"), &Ok(()), &more)?;
    }
    expect_len(store, &thread, "four events", 4).await
}

async fn acquire(
    store: &dyn LeaseStore,
    law: Law,
    thread: &ThreadId,
    worker: &str,
    now: u64,
) -> Result<Lease> {
    let lease = store.acquire_lease(thread, worker, Timestamp(now), TEN).await;
    lease.map_err(|error| law.breach(format!("{worker} at {now}"), "a lease", error))
}

/// Appends one event, which must succeed.
async fn append(store: &dyn LeaseStore, lease: &Lease, len: u64) -> Result<()> {
    let appended = store.append_leased(lease, None, len, &[notice(len)]).await;
    same(Law::LateWriteIsRefused, format!("{} at {len}", lease.worker), &Ok(()), &appended)
}

/// Checks that an append of one event is refused, because the lease was lost.
async fn refuses(store: &dyn LeaseStore, lease: &Lease, input: &str, len: u64) -> Result<()> {
    let appended = store.append_leased(lease, None, len, &[notice(len)]).await;
    same(Law::LateWriteIsRefused, input, &lost(lease), &appended)
}

async fn expect_len(
    store: &dyn LeaseStore,
    thread: &ThreadId,
    input: &str,
    len: u64,
) -> Result<()> {
    let expected: Vec<LoggedEvent> = (0..len).map(notice).collect();
    same(Law::LateWriteIsRefused, input, &Ok(expected), &store.load_from(thread, 0).await)
}

fn rises(before: &Lease, after: &Lease) -> Result<()> {
    if before.fence < after.fence {
        return Ok(());
    }
    let expected = format!("a fence above {}", before.fence);
    Err(Law::FencesRise.breach("the next lease", expected, after.fence))
}

fn notice(seq: u64) -> LoggedEvent {
    let event = Event::LocalNotice { text: format!("event {seq}").into() };
    LoggedEvent { seq, at: Timestamp(seq), event }
}

fn ok(lease: &Lease) -> Result<Lease, StoreError> {
    Ok(lease.clone())
}

fn held<T>(lease: &Lease) -> Result<T, StoreError> {
    Err(StoreError::Held { lease: lease.clone() })
}

fn lost<T>(lease: &Lease) -> Result<T, StoreError> {
    Err(StoreError::LeaseLost { thread: lease.thread.clone(), fence: lease.fence })
}

/// Tests a store of runs: a saved run replaces the earlier one and is loaded unchanged; threads are
/// independent; deleted runs are gone.
///
/// `make` must return an empty store.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{store::MemoryStore, testing::conformance};
///
/// block_on(conformance::runs(|| Box::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn runs(make: impl FnOnce() -> Box<dyn LeaseStore>) -> Result<()> {
    let (store, one, other) = (make(), named("t1")?, named("t")?);
    let none = Ok(None);
    same(Law::UnknownIsEmpty, "a new store", &none, &store.load_run(&one).await)?;
    same(Law::UnknownIsEmpty, "nothing to delete", &Ok(()), &store.delete_run(&one).await)?;
    let apart = run("Fix the lexer.")?;
    let law = Law::StoredComesBack;
    same(law, "another thread", &Ok(()), &store.save_run(&other, &apart).await)?;
    for text in ["Fix the parser.", "a\n\"\\\u{0}\u{2028}\u{1f600}"] {
        let run = run(text)?;
        same(law, text, &Ok(()), &store.save_run(&one, &run).await)?;
        same(law, text, &Ok(Some(run)), &store.load_run(&one).await)?;
    }
    let law = Law::DeletedIsGone;
    same(law, "deleted", &Ok(()), &store.delete_run(&one).await)?;
    same(law, "deleted", &none, &store.load_run(&one).await)?;
    let kept = Ok(Some(apart));
    same(Law::ThreadsAreApart, "another thread", &kept, &store.load_run(&other).await)
}

fn run(text: &str) -> Result<CompactionRun> {
    let run = CompactionRun::new(&[Message::user(text)], None, Chunked::default());
    run.map_err(|error| Law::StoredComesBack.breach(text, "a run", error))
}
