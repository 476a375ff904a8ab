//! The conformance suite for many workers on many threads.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::join_all;
use threadfold::{
    compact::legality::violations,
    log::{Event, LogId, LoggedEvent},
    message::{Answer, Message, ModelError, Request, StopReason, ThreadId, Timestamp},
    model::{Model, ModelAgent},
    session::{Session, SessionError},
    store::{self, Lease, LeaseStore, Loaded, StoreError, ThreadStore},
};

use super::law::{Breach, Law, Result, named};
use crate::splitmix::splitmix64;

const WORKERS: u64 = 8;
const THREADS: u64 = 200;
const END: u64 = 600_000;
const LIFETIME: Duration = Duration::from_secs(10);

/// Tests a store with eight workers on 200 threads for ten minutes of simulated time. Each acquires
/// the lease of a thread, opens a session and sends texts. Many answers take longer than the lease,
/// so other workers take over their threads. Some workers die without releasing a lease, and the
/// workers' clocks differ.
///
/// At every moment a thread has at most one writer: no append succeeds after a later lease was
/// acquired; the log has the texts of the leases in the order of the leases, and each acknowledged
/// text once; every request is legal.
///
/// The store must be empty. Run [`leases`](super::leases) first; it finds the smaller examples.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::store::MemoryStore;
/// use threadfold_testing::conformance;
///
/// block_on(conformance::workers(Arc::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`].
pub async fn workers(store: Arc<dyn LeaseStore>) -> Result<()> {
    let time = SimulatedTime::new(WORKERS);
    let world = Arc::new(World { store, time, seen: Mutex::default() });
    let works = (0..WORKERS).map(|worker| {
        let world = Arc::clone(&world);
        async move {
            let outcome = work(&world, worker).await;
            // The clock must no longer wait for this worker, whether it succeeded or failed.
            world.time.end();
            outcome
        }
    });
    let outcomes = join_all(works).await;
    outcomes.into_iter().collect::<Result<()>>()?;
    world.check_logs().await?;
    let mut seen = world.seen();
    if let Some(breach) = seen.breaches.pop() {
        return Err(breach);
    }
    // The simulation is the same for every store that keeps the laws, so these counts ensure that
    // no store passes because too little happened.
    let Worked { turns, refused, threads, .. } = seen.worked;
    if turns <= 300 || refused <= 20 || threads <= 190 {
        let found = format!("{:?}", seen.worked);
        return Err(Law::OneWorkerHolds.breach("the workers", "hundreds of turns", found));
    }
    Ok(())
}

/// The state that all workers share.
#[derive(Debug)]
struct World {
    store: Arc<dyn LeaseStore>,
    time: SimulatedTime,
    seen: Mutex<Seen>,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Worked {
    /// The turns that ended.
    turns: usize,
    /// The turns that ended because another worker had taken the thread over.
    refused: usize,
    /// The threads with a log.
    threads: usize,
}

/// The observations of all workers.
#[derive(Debug, Default)]
struct Seen {
    worked: Worked,
    /// The number of threads that were begun.
    begun: u64,
    /// The greatest fence of each thread among the acquired leases.
    fences: BTreeMap<ThreadId, u64>,
    /// The texts of the turns that ended, in order.
    acknowledged: BTreeMap<ThreadId, Vec<String>>,
    breaches: Vec<Breach>,
}

/// Runs one worker until the simulated time is over.
async fn work(world: &Arc<World>, worker: u64) -> Result<()> {
    let (mut chance, mut wanted) = (Chance(worker), None);
    while world.time.now() < END {
        let thread = match wanted.take() {
            Some(thread) => thread,
            None => world.next_thread()?,
        };
        // The clocks are up to three and a half seconds apart.
        let now = Timestamp(world.time.now() + worker * 500);
        let name = format!("worker-{worker}");
        match world.store.acquire_lease(&thread, &name, now, LIFETIME).await {
            Ok(lease) => hold(world, lease, &mut chance).await?,
            // A user waits for the answer, so the worker takes over the thread when the lease ends.
            Err(StoreError::Held { lease }) if chance.below(3) > 0 => {
                world.time.sleep(lease.expires.0.saturating_sub(now.0)).await;
                wanted = Some(thread);
                continue;
            }
            Err(StoreError::Held { .. }) => {}
            Err(error) => return Err(Law::OneWorkerHolds.breach(thread, "a lease", error)),
        }
        world.time.sleep(500 + chance.below(2_000)).await;
    }
    Ok(())
}

/// Does the work of one lease: a session with some turns.
async fn hold(world: &Arc<World>, lease: Lease, chance: &mut Chance) -> Result<()> {
    world.acquired(&lease);
    let law = Law::OneWorkerHolds;
    let agent = ModelAgent::new(Arc::new(Thinker {
        world: Arc::clone(world),
        fence: lease.fence,
        millis: if chance.below(3) == 0 {
            9_000 + chance.below(12_000)
        } else {
            chance.below(3_000)
        },
    }));
    let leased = store::leased(Arc::clone(&world.store), lease.clone());
    let store = Watched { world: Arc::clone(world), leased, fence: lease.fence };
    let builder = Session::builder(agent).thread(lease.thread.clone()).store(Arc::new(store));
    let opened = builder.open().await;
    let mut session = opened.map_err(|error| law.breach(&lease.worker, "a session", error))?;
    for turn in 0..=chance.below(2) {
        let text = format!("{} turn {turn}", lease.fence);
        match session.send(text.as_str()).await {
            Ok(_) => world.acknowledge(&lease.thread, text),
            Err(SessionError::Store(StoreError::LeaseLost { .. })) => {
                world.seen().worked.refused += 1;
                return Ok(());
            }
            // A conflict would mean a second writer that the lease did not stop.
            Err(error) => return Err(law.breach(text, "an answer or a lost lease", error)),
        }
        let now = Timestamp(world.time.now());
        if chance.below(3) == 0 && world.store.renew_lease(&lease, now, LIFETIME).await.is_err() {
            return Ok(());
        }
    }
    // The other workers die without a release.
    if chance.below(4) > 0 {
        let released = world.store.release_lease(&lease).await;
        released.map_err(|error| law.breach("a release", "Ok(())", error))?;
    }
    Ok(())
}

impl World {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next thread. Each is returned twice, so that two workers compete for it.
    fn next_thread(&self) -> Result<ThreadId> {
        let mut seen = self.seen();
        seen.begun += 1;
        named(&format!("t{}", seen.begun / 2 % THREADS))
    }

    fn acquired(&self, lease: &Lease) {
        let mut seen = self.seen();
        let newest = seen.fences.entry(lease.thread.clone()).or_default();
        *newest = lease.fence.max(*newest);
    }

    fn acknowledge(&self, thread: &ThreadId, text: String) {
        let mut seen = self.seen();
        seen.worked.turns += 1;
        seen.acknowledged.entry(thread.clone()).or_default().push(text);
    }

    /// Checks that each log has the texts of the leases one after another, and all acknowledged
    /// texts.
    async fn check_logs(&self) -> Result<()> {
        let law = Law::OneWorkerHolds;
        let input = "ten minutes of work";
        let threads = self.store.list().await;
        let threads = threads.map_err(|error| law.breach(input, "the logs", error))?;
        self.seen().worked.threads = threads.len();
        for thread in threads {
            let loaded = self.store.load(&thread).await;
            let log = loaded.map_err(|error| law.breach(input, "the logs", error))?.log;
            let texts: Vec<String> = log.events().iter().filter_map(text).collect();
            if !texts.iter().map(|text| text.split(' ').next()?.parse::<u64>().ok()).is_sorted() {
                return Err(law.breach(&thread, "the fences in order", format!("{texts:#?}")));
            }
            let acknowledged = self.seen().acknowledged.remove(&thread).unwrap_or_default();
            for expected in acknowledged {
                let found = texts.iter().filter(|text| **text == expected).count();
                if found != 1 {
                    let found = format!("{found} times in {texts:#?}");
                    return Err(law.breach(&thread, format!("{expected:?} once"), found));
                }
            }
        }
        let left = std::mem::take(&mut self.seen().acknowledged);
        if left.is_empty() {
            return Ok(());
        }
        Err(law.breach(input, "all logs", format!("none of {left:?}")))
    }
}

/// Returns the text of a message that was appended.
fn text(event: &LoggedEvent) -> Option<String> {
    let Event::MessageAppended(message) = &event.event else { return None };
    message.texts().next().map(ToString::to_string)
}

/// A model that answers after a while, with the fence of its worker's lease.
#[derive(Debug)]
struct Thinker {
    world: Arc<World>,
    fence: u64,
    millis: u64,
}

#[async_trait]
impl Model for Thinker {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let found = violations(&request.messages);
        if !found.is_empty() {
            let found = format!("{found:?}");
            let breach = Law::RequestIsLegal.breach("a request", "no violation", found);
            self.world.seen().breaches.push(breach);
        }
        self.world.time.sleep(self.millis).await;
        let answer = Message::assistant(format!("{} answer", self.fence));
        Ok(Answer::new(answer, StopReason::EndTurn, None))
    }
}

/// The store of a worker. It detects appends that a later lease should have stopped.
#[derive(Debug)]
struct Watched {
    world: Arc<World>,
    leased: Arc<dyn ThreadStore>,
    fence: u64,
}

#[async_trait]
impl ThreadStore for Watched {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let newest = self.world.seen().fences.get(thread).copied().unwrap_or_default();
        let outcome = self.leased.append(thread, log, expected_len, events).await;
        let own = self.fence;
        if newest > own && outcome.is_ok() {
            let input = format!("{thread}: an append with fence {own} after fence {newest}");
            let breach = Law::LateWriteIsRefused.breach(input, "a lost lease", "Ok(())");
            self.world.seen().breaches.push(breach);
        }
        outcome
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.leased.load(thread).await
    }

    fn inner(&self) -> Option<&dyn ThreadStore> {
        Some(self.leased.as_ref())
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.leased.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.leased.delete(thread).await
    }
}

/// Pseudo-random numbers that are the same in each run.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        splitmix64(&mut self.0) % end.max(1)
    }
}

/// A clock in milliseconds. When all workers sleep, it moves to the time at which the first one
/// wakes. All other work takes no simulated time.
#[derive(Debug)]
struct SimulatedTime(Mutex<State>);

#[derive(Debug)]
struct State {
    now: u64,
    /// The number of workers that have not ended.
    working: u64,
    /// The next number of a sleeper.
    next: u64,
    sleepers: BTreeMap<u64, (u64, Waker)>,
}

impl SimulatedTime {
    fn new(workers: u64) -> Self {
        let sleepers = BTreeMap::new();
        Self(Mutex::new(State { now: 0, working: workers, next: 0, sleepers }))
    }

    fn now(&self) -> u64 {
        self.state().now
    }

    /// Sleeps for this many milliseconds. Do not drop the future earlier: its worker would count as
    /// asleep for ever.
    async fn sleep(&self, millis: u64) {
        let (number, until) = {
            let mut state = self.state();
            state.next += 1;
            (state.next, state.now.saturating_add(millis))
        };
        let wakes = poll_fn(|context| {
            let mut state = self.state();
            if state.now < until {
                state.sleepers.insert(number, (until, context.waker().clone()));
                state.pass();
            }
            if state.now < until {
                return Poll::Pending;
            }
            state.sleepers.remove(&number);
            Poll::Ready(())
        });
        wakes.await
    }

    /// Ends a worker, so that the others no longer wait for it.
    fn end(&self) {
        let mut state = self.state();
        state.working = state.working.saturating_sub(1);
        state.pass();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Moves the clock if all workers sleep.
    fn pass(&mut self) {
        if (self.sleepers.len() as u64) < self.working {
            return;
        }
        let Some(first) = self.sleepers.values().map(|(until, _)| *until).min() else { return };
        self.now = self.now.max(first);
        for (until, waker) in self.sleepers.values() {
            if *until <= self.now {
                waker.wake_by_ref();
            }
        }
    }
}
