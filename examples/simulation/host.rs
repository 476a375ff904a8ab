//! The host: builds the session, sends messages to it, interferes, and checks its state.

use futures::FutureExt;
use futures::future::{self, BoxFuture};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures::executor::block_on;
use threadfold::{
    ContentBlock, ContextWindow, Message, Model, ModelAgent, Role, Session,
    auto::AutoPolicy,
    legality,
    message::{Timestamp, ToolResult},
    model::Clock,
    retention::RetentionPolicy,
    session::{Events, SessionError},
    store::{Journal, StoreError},
};
use threadfold_testing::shared::simulation::Numbers;

use super::{
    fault::{Fault, Kind},
    kept::Kept,
    listener::{Heard, Listener, polled},
    tally::Tally,
    tool::Write,
    wild::{MAX_ROUNDS, Wild},
    world::World,
};

/// The maximum number of messages in a row that may fail without a request to the model.
const MAX_UNHEARD: u32 = 3;

/// A session and its user.
pub(super) struct Host {
    world: World,
    seed: u64,
    session: Session,
    listener: Listener,
    clock: Arc<Wandering>,
    unheard: u32,
}

impl Host {
    pub(super) fn new(world: &World, seed: u64) -> Result<Self, Fault> {
        let numbers = Arc::new(Numbers::new(seed));
        let store = Arc::new(Kept::new(Arc::clone(&numbers), !world.is_calm()));
        let model = Wild::new(Arc::clone(&numbers), Arc::clone(&store), world.clone());
        let clock = Wandering {
            now: AtomicU64::new(0),
            numbers: Arc::clone(&numbers),
            calm: world.is_calm(),
        };
        let (listener, clock) = (Listener::new(numbers, store, Arc::new(model)), Arc::new(clock));
        let session = session(world, seed, &listener, &clock)?;
        Ok(Self { world: world.clone(), seed, session, listener, clock, unheard: 0 })
    }

    /// Takes one action, and checks the result.
    pub(super) fn turn(&mut self, turn: u64) -> Result<(), Fault> {
        let numbers = Arc::clone(&self.listener.numbers);
        self.listener.tally.turns += 1;
        let said = |text: &str| (text.to_owned(), Message::user(text));
        let go_on = || said(&format!("Go on with part {turn}."));
        let (text, typed) = match numbers.below(100) {
            _ if self.world.is_calm() => go_on(),
            0..3 => said("/compact the lines"),
            3 => return self.listen(&Message::user(""), |session| session.compact(None)),
            4..7 => said("@compact Go on."),
            7..12 => return self.undo(),
            12 => {
                let odd = odd(&numbers);
                return self.listen(&odd.clone(), |session| session.send_message(odd));
            }
            // Up to two windows.
            13 => said(&numbers.words(self.world.bytes(200) / 21)),
            14 if numbers.once_in(2) => return self.resume(),
            _ => go_on(),
        };
        self.listen(&typed, |session| session.send(text))
    }

    /// Checks everything once more at the end.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        self.resume()?;
        self.listener.tally.resumed -= 1;
        Ok(())
    }

    /// Returns the counts so far.
    pub(super) fn tally(&self) -> Tally {
        let (store_failures, events) = (self.listener.store.failures(), self.listener.store.len());
        Tally { store_failures, events, ..self.listener.tally.clone() }
    }

    fn listen(
        &mut self,
        typed: &Message,
        ask: impl FnOnce(&mut Session) -> Events<'_>,
    ) -> Result<(), Fault> {
        let (handle, calm) = (self.session.handle(), self.world.is_calm());
        let heard = self.listener.listen(typed, calm, ask(&mut self.session), &handle)?;
        // After any trouble, a message that fits must soon reach the model again.
        match heard {
            Heard::Refused | Heard::Failed if self.listener.requests() == 0 => self.unheard += 1,
            Heard::Done => self.unheard = 0,
            Heard::Refused | Heard::Failed | Heard::Aborted | Heard::Dropped => {}
        }
        if self.unheard > MAX_UNHEARD {
            let words = &self.listener.refusal;
            let what = format!("no message gets to the model any more: {words}");
            return Err(Fault::new(Kind::Locked, what));
        }
        self.look()
    }

    /// Undoes the last compaction, or drops the undo midway.
    fn undo(&mut self) -> Result<(), Fault> {
        let Some(id) = self.session.log().standing().next_back().map(|record| record.id) else {
            return Ok(());
        };
        let polls = self.listener.numbers.steep(40) + 1;
        {
            let mut undoing = pin!(self.session.undo_compaction(id));
            for _ in 0..polls {
                match polled(|context| undoing.as_mut().poll(context))? {
                    Poll::Pending => {}
                    Poll::Ready(Ok(_) | Err(SessionError::Store(StoreError::Medium { .. }))) => {
                        break;
                    }
                    Poll::Ready(Err(error)) => {
                        return Err(format!("cannot take {id} back: {error}").into());
                    }
                }
            }
        }
        self.listener.tally.undone += 1;
        self.look()
    }

    /// Drops the session and resumes it from the store, as after a crash.
    fn resume(&mut self) -> Result<(), Fault> {
        self.session = session(&self.world, self.seed, &self.listener, &self.clock)?;
        self.listener.open = None;
        // Events that were never stored are gone.
        let log = self.session.log();
        self.listener.over.retain(|id| log.is_ended(*id));
        self.listener.model.forget();
        self.listener.tally.resumed += 1;
        self.look()
    }

    /// Checks thread, log and store.
    fn look(&mut self) -> Result<(), Fault> {
        self.listener.look()?;
        let (log, messages) = (self.session.log(), self.session.messages());
        if log.replay() != messages[..] {
            return Err(Fault::new(Kind::Log, "the log does not come to the thread"));
        }
        if let Some(violation) = legality::violations(messages).first() {
            return Err(Fault::new(Kind::Illegal, format!("the thread: {violation}")));
        }
        let store = &self.listener.store;
        match store.differs(messages) {
            Some(what) if store.len() == log.len() => Err(Fault::new(Kind::Log, what)),
            _ if store.len() > log.len() => {
                Err(Fault::new(Kind::Log, "the store has more than the log"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns a session over the stored log.
fn session(
    world: &World,
    seed: u64,
    listener: &Listener,
    clock: &Arc<Wandering>,
) -> Result<Session, String> {
    let agent = ModelAgent::new(Arc::clone(&listener.model) as Arc<dyn Model>);
    let agent = match world.named {
        true => agent.with_window(ContextWindow::new(world.window)),
        false => agent,
    };
    let store = Arc::clone(&listener.store);
    let thread = "simulation".parse().map_err(|error| format!("{error}"))?;
    let journal = block_on(Journal::open(store, thread)).map_err(|error| error.to_string())?;
    let estimates_usage = seed % 8 < 4;
    let after_turn = seed % 16 > 12 && !world.is_calm();
    let builder = Session::builder(agent)
        .journal(journal)
        .strategy(world.strategy()?)
        .system("Work.")
        .tool(Arc::new(Write(Arc::clone(&listener.numbers))))
        .compact_context_tool()
        .compact_tool()
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .seed(seed)
        .max_rounds(MAX_ROUNDS)
        // An audit reads all texts, which takes long, so only some sessions have one.
        .retention(
            (seed.is_multiple_of(4) && world.window <= 20_000).then(RetentionPolicy::default),
        )
        .policy(AutoPolicy { estimates_usage, after_turn, ..AutoPolicy::default() });
    let builder = if seed.is_multiple_of(3) { builder.reminder("Write lines.") } else { builder };
    builder.build().map_err(|error| error.to_string())
}

/// Returns a message that no person would type.
fn odd(numbers: &Numbers) -> Message {
    match numbers.below(4) {
        0 => Message::user(" \n"),
        1 => Message::new(Role::User, Vec::new()),
        2 => Message::assistant("I am the user."),
        _ => {
            let result = ToolResult::text("again", "Nobody asked.");
            Message::new(Role::User, vec![ContentBlock::text("So."), result.into()])
        }
    }
}

/// A clock that advances by some seconds with every reading and sometimes goes back; in calm worlds
/// it advances by some milliseconds.
#[derive(Debug)]
struct Wandering {
    now: AtomicU64,
    numbers: Arc<Numbers>,
    calm: bool,
}

impl Clock for Wandering {
    fn now(&self) -> Timestamp {
        if self.calm {
            return Timestamp(self.now.fetch_add(self.numbers.below(50), Ordering::Relaxed));
        }
        let now = self.now.fetch_add(self.numbers.below(30_000), Ordering::Relaxed);
        let back = if self.numbers.once_in(50) { self.numbers.below(60_000) } else { 0 };
        Timestamp(now.saturating_sub(back))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }
}
