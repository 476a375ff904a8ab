//! The conformance suite for leases.

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use threadfold::{
    log::LogId,
    message::{ThreadId, Timestamp},
    store::{Lease, LeaseStore, StoreError},
};

use super::{
    cases::{Step, cases, outcome},
    law::{Law, Result, named, same},
    store::{events, stored},
};

/// The lifetime of the leases in the suite.
const TEN: Duration = Duration::from_secs(10);

/// Tests a store with leases: at most one worker at a time has the lease of a thread, even if the
/// workers' clocks differ; a renewal extends a lease, and may be lost, repeated or late; fences
/// rise; every append without the current lease is refused and stores nothing.
///
/// `make` is called once for each case and must return an empty store. Run [`store`](super::store)
/// too.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::store::MemoryStore;
/// use threadfold_testing::conformance;
///
/// block_on(conformance::leases(|| Box::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn leases(mut make: impl FnMut() -> Box<dyn LeaseStore>) -> Result<()> {
    for case in cases(CASES)? {
        let (store, mut leases) = (make(), Leases::default());
        for step in case {
            let found = leases.run(&*store, &step).await?;
            step.check(found)?;
        }
    }
    one_of_many_acquires(&*make()).await
}

const CASES: &str = include_str!("../../testdata/conformance/leases.jsonl");

/// An operation. A lease has a name, by which later steps of its case refer to it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// Acquires a lease with this name for ten seconds, for this worker, at this time.
    Acquire(String, String, Timestamp),
    AcquireForever(String, String, Timestamp),
    /// Returns the thread, the worker and the end of a lease, as the store returned it last.
    Lease(String),
    Renew(String, Timestamp),
    /// Drops a renewal before it reaches the store.
    DropRenewal(String, Timestamp),
    Release(String),
    /// Appends the events with these numbers to a log with this id and length.
    Append(Option<LogId>, u64, Vec<u64>),
    AppendLeased(String, Option<LogId>, u64, Vec<u64>),
    Delete,
    /// Returns the number of stored events.
    Load,
    LogId,
}

/// The leases of a case by their names.
#[derive(Default)]
struct Leases(BTreeMap<String, Lease>);

impl Leases {
    async fn run(&mut self, store: &dyn LeaseStore, step: &Step<Operation>) -> Result<Value> {
        let Step { thread, operation, .. } = step;
        Ok(match operation {
            Operation::Acquire(name, worker, at) => {
                let acquired = store.acquire_lease(thread, worker, *at, TEN).await;
                self.acquired(thread, name, acquired)?
            }
            Operation::AcquireForever(name, worker, at) => {
                let acquired = store.acquire_lease(thread, worker, *at, Duration::MAX).await;
                self.acquired(thread, name, acquired)?
            }
            Operation::Lease(name) => {
                let Lease { thread, worker, expires, .. } = self.find(step, name)?;
                json!([thread, worker, expires])
            }
            Operation::Renew(name, at) => {
                let lease = self.find(step, name)?;
                match store.renew_lease(&lease, *at, TEN).await {
                    Ok(renewed) if renewed.fence == lease.fence => {
                        self.0.insert(name.clone(), renewed);
                        Value::Null
                    }
                    other => self.outcome(thread, other.map(|lease| format!("{lease:?}"))),
                }
            }
            Operation::DropRenewal(name, at) => {
                drop(store.renew_lease(&self.find(step, name)?, *at, TEN));
                Value::Null
            }
            Operation::Release(name) => outcome(store.release_lease(&self.find(step, name)?).await),
            Operation::Append(log, len, seqs) => {
                let appended =
                    store.append(thread, *log, *len, &events(thread, seqs.iter().copied())).await;
                self.outcome(thread, appended)
            }
            Operation::AppendLeased(name, log, len, seqs) => {
                let lease = Lease { thread: thread.clone(), ..self.find(step, name)? };
                let events = events(thread, seqs.iter().copied());
                self.outcome(thread, store.append_leased(&lease, *log, *len, &events).await)
            }
            Operation::Delete => outcome(store.delete(thread).await),
            Operation::Load => stored(store, thread).await,
            Operation::LogId => outcome(store.load(thread).await.map(|loaded| loaded.id)),
        })
    }

    fn find(&self, step: &Step<Operation>, name: &str) -> Result<Lease> {
        let found = self.0.get(name).cloned();
        found.ok_or_else(|| step.law.breach("a step", "the name of a lease", name))
    }

    /// Remembers a lease, after a check that its fence is greater than those before it.
    fn acquired(
        &mut self,
        thread: &ThreadId,
        name: &str,
        acquired: Result<Lease, StoreError>,
    ) -> Result<Value> {
        if let Ok(lease) = &acquired {
            let before = self.0.values().filter(|known| known.thread == *thread);
            if let Some(fence) = before.map(|known| known.fence).max()
                && fence >= lease.fence
            {
                let expected = format!("a fence above {fence}");
                return Err(Law::FencesRise.breach("the next lease", expected, lease.fence));
            }
            self.0.insert(name.to_owned(), lease.clone());
        }
        Ok(self.outcome(thread, acquired.map(drop)))
    }

    /// Returns the JSON of an outcome; an error includes the name of its lease.
    fn outcome<T: Serialize>(&self, thread: &ThreadId, found: Result<T, StoreError>) -> Value {
        let mut known = self.0.iter();
        let refusal = match &found {
            Err(StoreError::Held { lease }) => {
                known.find(|(_, known)| *known == lease).map(|(name, _)| json!({ "held": name }))
            }
            Err(StoreError::LeaseLost { thread: lost, fence }) if lost == thread => known
                .find(|(_, known)| known.fence == *fence)
                .map(|(name, _)| json!({ "lost": name })),
            Ok(_) | Err(_) => None,
        };
        refusal.unwrap_or_else(|| outcome(found))
    }
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
        let held = Err(StoreError::Held { lease: lease.clone() });
        let mut refused = outcomes.iter().filter(|outcome| outcome.is_err());
        refused.try_for_each(|outcome| same(law, &input, &held, outcome))?;
    }
    Ok(())
}
