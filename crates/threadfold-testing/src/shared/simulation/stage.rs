//! Runs the actors of a world, one step of one actor at a time.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::{FutureExt, future::BoxFuture};

use super::{
    core::Watch,
    fault::{Fault, Promise},
    provider::Vendor,
    tally::Tally,
    world::World,
};

/// The steps after which a world that has not ended counts as hanging.
const MAX_STEPS: u64 = 500_000;

/// One in this many steps, the process of an actor crashes.
const CRASHES: u64 = 600;

/// A process: its name, and how it begins from what the disk holds.
#[derive(Clone, Copy)]
pub struct Actor {
    /// The name.
    pub name: &'static str,
    /// Begins a life of the process. It ends when the work is done.
    pub begin: fn(World) -> Life,
}

/// A life of a process. A crash drops it at an await, and another one begins.
pub type Life = BoxFuture<'static, Result<(), Fault>>;

/// What came of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// A hash of everything that happened: each request and each stored event, byte for byte, and
    /// each line of the record.
    pub digest: u64,
    /// The counts.
    pub tally: Tally,
    /// The promise that was broken, with the name of the actor.
    pub fault: Option<(&'static str, Fault)>,
}

/// Runs the world of a seed to its end, or to the first broken promise. `watch` gets a line for each
/// thing that happens.
pub fn run(seed: u64, vendor: Vendor, cast: &[Actor], watch: Option<Watch>) -> Run {
    let world = World::new(seed, vendor, watch);
    let mut tasks: Vec<Task> = cast.iter().map(|actor| Task::new(*actor, &world)).collect();
    let mut fault = None;
    for step in 0.. {
        world.core.wake();
        let awake: Vec<usize> = (0..tasks.len()).filter(|place| tasks[*place].is_awake()).collect();
        if awake.is_empty() {
            if tasks.iter().all(|task| task.life.is_none()) {
                break;
            }
            if world.core.pass() {
                continue;
            }
            fault = Some(("everybody", Promise::Ends.broken("nobody will wake what is pending")));
            break;
        }
        let task = &mut tasks[*world.numbers().one_of(&awake)];
        let stepped = if step == MAX_STEPS {
            Err(Promise::Ends.broken(format!("{MAX_STEPS} steps, and no end")))
        } else {
            task.step(&world)
        };
        if let Some(found) = world.core.fault().or(stepped.err()) {
            fault = Some((task.actor.name, found));
            break;
        }
    }
    if fault.is_none() {
        fault = at_end(&world).err().map(|found| ("the end", found));
    }
    Run { digest: world.core.digest(), tally: world.core.tally(), fault }
}

/// Checks all logs once more, as another process would load them.
fn at_end(world: &World) -> Result<(), Fault> {
    let threads = world.core.judge().threads();
    for thread in threads {
        let Some(loaded) = world.disk.held(&thread) else {
            return Err(Promise::Kept.broken(format!("the log of {thread} cannot be loaded")));
        };
        let judge = world.core.judge();
        judge.loaded(&thread, loaded.log.events())?;
        judge.same(&loaded.log, &loaded.log.replay())?;
    }
    Ok(())
}

struct Task {
    actor: Actor,
    life: Option<Life>,
    woken: Arc<Woken>,
}

impl Task {
    fn new(actor: Actor, world: &World) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Self { actor, life: Some((actor.begin)(world.clone())), woken }
    }

    fn is_awake(&self) -> bool {
        self.life.is_some() && self.woken.0.load(Ordering::Relaxed)
    }

    /// Polls the life once, or crashes it.
    fn step(&mut self, world: &World) -> Result<(), Fault> {
        if world.numbers().once_in(CRASHES) {
            world.count(|tally| tally.crashes += 1);
            world.note(format_args!("{} crashes", self.actor.name));
            *self = Self::new(self.actor, world);
            return Ok(());
        }
        let Some(life) = &mut self.life else { return Ok(()) };
        self.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| life.poll_unpin(&mut context)));
        match polled {
            Ok(Poll::Pending) => Ok(()),
            Ok(Poll::Ready(ended)) => {
                world.note(format_args!("{} ends", self.actor.name));
                self.life = None;
                ended
            }
            Err(_) => {
                self.life = None;
                Err(Promise::Ends.broken("a panic; its message is on standard error"))
            }
        }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
