//! Two workers that compete for threads: leases, and sessions over them.

use std::{sync::Arc, time::Duration};

use threadfold::{
    Model, ModelAgent, Session,
    log::LogId,
    message::{CompactionId, ThreadId},
    session::{CompactionEvent, Events, SessionError, SessionEvent},
    store::{self, Journal, Lease, StoreError},
};

use super::{
    agent::Read,
    fault::{Fault, Promise},
    provider::{Asker, Asks, Seat},
    stage::{Actor, Life},
    world::World,
};

/// How long a lease lives.
const LIFETIME: Duration = Duration::from_secs(10);

/// The leases of a world.
const LEASES: u64 = 10;

/// The threads.
const THREADS: [&str; 2] = ["one", "two"];

/// The rule of every session.
const RULE: &str = "Never touch generated files.";

/// The workers. The clock of the second one is fast.
pub const WORKERS: [Actor; 2] = [
    Actor { name: "worker-1", begin: |world| life(Worker { world, name: "worker-1", fast: 0 }) },
    Actor {
        name: "worker-2",
        begin: |world| life(Worker { world, name: "worker-2", fast: 1_500 }),
    },
];

struct Worker {
    world: World,
    name: &'static str,
    fast: u64,
}

fn life(worker: Worker) -> Life {
    Box::pin(async move {
        while worker.world.has_work(LEASES) {
            worker.work().await?;
        }
        Ok(())
    })
}

/// How an operation of a session ended, if it ended.
type Done<T> = Result<Option<T>, Fault>;

impl Worker {
    /// Acquires a lease, and works as long as it is valid.
    async fn work(&self) -> Result<(), Fault> {
        let Self { world, name, fast } = self;
        let thread = world.numbers().one_of(&THREADS).parse::<ThreadId>();
        let thread = thread.map_err(|error| Promise::Ends.broken(error))?;
        let clock = world.clock(*fast);
        let lease = loop {
            let now = clock.now();
            match world.leases().acquire_lease(&thread, name, now, LIFETIME).await {
                Ok(lease) => break lease,
                Err(StoreError::Held { lease }) => {
                    let left = lease.expires.0.saturating_sub(now.0);
                    clock.sleep(Duration::from_millis(left)).await;
                }
                Err(error) => return Err(Promise::OneWriter.broken(error)),
            }
        };
        let seat = world.seat(Asker {
            name,
            asks: Asks::Both,
            rules: vec![RULE],
            lease: Some(lease.clone()),
        });
        let Some(mut session) = self.open(&lease, &seat).await? else { return Ok(()) };
        for turn in 0..=world.numbers().below(4) {
            let text = format!("Lease {}, part {turn}: go on.", lease.fence);
            if self.turn(&mut session, &seat, &lease, text).await?.is_none() {
                return Ok(());
            }
            if world.numbers().once_in(4)
                && world.leases().renew_lease(&lease, clock.now(), LIFETIME).await.is_err()
            {
                return Ok(());
            }
        }
        // The others die without a release.
        if !world.numbers().once_in(4) {
            let released = world.leases().release_lease(&lease).await;
            released.map_err(|error| Promise::OneWriter.broken(error))?;
        }
        Ok(())
    }

    /// Opens the thread of a lease; `None` if the disk fails.
    async fn open(&self, lease: &Lease, seat: &Arc<Seat>) -> Done<Session> {
        let world = &self.world;
        let logs = store::leased(world.leases(), lease.clone());
        let journal = match Journal::open(logs, lease.thread.clone()).await {
            Ok(journal) => journal.with_log_id(LogId(1)),
            Err(StoreError::Medium { .. }) => return Ok(None),
            Err(error) => return Err(Promise::Kept.broken(error)),
        };
        if journal.log().base() == 0 {
            world.core.judge().loaded(&lease.thread, journal.log().events())?;
        }
        world.count(|tally| tally.sessions += 1);
        let agent = ModelAgent::new(Arc::clone(seat) as Arc<dyn Model>);
        let strategy = world.strategy();
        world.note(format_args!("{} opens a session with {}", self.name, strategy.name()));
        let builder = Session::builder(agent)
            .journal(journal)
            .strategy(strategy)
            .system("You work on a large program.")
            .tool(Arc::new(Read))
            .clock(world.clock(self.fast))
            .rule(RULE)
            .seed(world.numbers().below(u64::MAX))
            .max_rounds(4);
        let session = builder.build().map_err(|error| Promise::Ends.broken(error))?;
        self.look(&session, lease)?;
        Ok(Some(session))
    }

    /// Takes one action. `None` if the lease is lost.
    async fn turn(
        &self,
        session: &mut Session,
        seat: &Seat,
        lease: &Lease,
        text: String,
    ) -> Done<()> {
        let world = &self.world;
        seat.lied();
        let thread = session.thread_id().clone();
        let did = match world.numbers().below(10) {
            0 => self.hear(session.compact(None), &thread, seat).await,
            1 => self.undo(session).await,
            _ => {
                world.note(format_args!("{} sends {text:?}", self.name));
                let sent = self.hear(session.send(text.as_str()), &thread, seat).await;
                if let Ok(Some(true)) = sent {
                    world.count(|tally| tally.turns += 1);
                    world.core.judge().acknowledged(&thread, &text);
                }
                sent
            }
        };
        self.look(session, lease)?;
        did.map(|did| did.map(drop))
    }

    /// Listens to the end, or drops the stream. `Some(true)` if it came to its end, and `None` if the
    /// lease is lost.
    async fn hear(&self, mut events: Events<'_>, thread: &ThreadId, seat: &Seat) -> Done<bool> {
        let heard = async {
            let mut completed = Vec::new();
            while let Some(event) = events.next().await {
                match event {
                    Ok(SessionEvent::Compaction(event)) => completed.extend(self.count(&event)),
                    Ok(_) => {}
                    Err(error) => return self.hear_error(&error, seat.lied()),
                }
            }
            // A turn that ended without an error is stored.
            let judge = self.world.core.judge();
            completed.into_iter().try_for_each(|id| judge.completed(thread, id))?;
            Ok(Some(true))
        };
        let heard = self.world.maybe_dropped(8, heard).await;
        heard.unwrap_or(Ok(Some(false)))
    }

    /// Counts the end of a compaction, and returns its id if it is complete.
    fn count(&self, event: &CompactionEvent) -> Option<CompactionId> {
        if !event.is_end() {
            return None;
        }
        let CompactionEvent::Completed { id, .. } = event else {
            self.world.count(|tally| tally.failed += 1);
            return None;
        };
        self.world.count(|tally| tally.compactions += 1);
        Some(*id)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "an error that is not listed is a fault")]
    fn hear_error(&self, error: &SessionError, lied: bool) -> Done<bool> {
        self.world.note(format_args!("{}: {error}", self.name));
        match error {
            SessionError::Store(StoreError::LeaseLost { .. }) => Ok(None),
            SessionError::Store(StoreError::Medium { .. }) => Ok(Some(false)),
            SessionError::Model(error) if lied || !error.is_overflow() => Ok(Some(false)),
            SessionError::CannotFit { .. } if lied => Ok(Some(false)),
            SessionError::Compaction(_) => Ok(Some(false)),
            SessionError::CannotFit { .. } | SessionError::Model(_) => {
                Err(Promise::Fits.broken(error))
            }
            _ => Err(Promise::Kept.broken(error)),
        }
    }

    /// Undoes the last compaction, or drops the undo midway.
    async fn undo(&self, session: &mut Session) -> Done<bool> {
        let Some(id) = session.log().standing().next_back().map(|record| record.id) else {
            return Ok(Some(false));
        };
        self.world.note(format_args!("{} undoes compaction {id}", self.name));
        match self.world.maybe_dropped(8, session.undo_compaction(id)).await {
            Some(Ok(_)) => {
                self.world.count(|tally| tally.undone += 1);
                Ok(Some(false))
            }
            None | Some(Err(SessionError::Store(StoreError::Medium { .. }))) => Ok(Some(false)),
            Some(Err(SessionError::Store(StoreError::LeaseLost { .. }))) => Ok(None),
            Some(Err(error)) => Err(Promise::Undone.broken(format!("{id}: {error}"))),
        }
    }

    /// Compares thread, log and store, as long as nobody else may write.
    fn look(&self, session: &Session, lease: &Lease) -> Result<(), Fault> {
        let judge = self.world.core.judge();
        match judge.is_newest(lease) {
            true => judge.same(session.log(), session.messages()),
            false => Ok(()),
        }
    }
}
