//! The host: builds the session, says things to it, interferes, and looks at what it has become.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, ContentBlock, ContextWindow, Message, ModelAgent, Role, Session,
    auto::{AutoPolicy, UnknownUsage},
    legality,
    message::{Timestamp, ToolResult},
    model::Clock,
    retention::RetentionPolicy,
    session::{Events, UndoCompactionError},
    store::{Journal, MemoryArchive, StoreError},
    strategy::{Chunked, Digest, FoldBatches, Ladder, TrimToolResults},
    testing::WakefulSleeper,
};

use super::{
    WINDOW,
    kept::Kept,
    listener::{Heard, Listener, polled},
    numbers::Numbers,
    tally::Tally,
    tool::Write,
    wild::Wild,
};

/// How many answers a turn may have.
pub(super) const MAX_ROUNDS: u32 = 12;

/// So many short messages in a row may go unanswered because they cannot fit.
const MAX_REFUSED: u32 = 3;

/// A session, and whoever uses it.
pub(super) struct Host {
    seed: u64,
    session: Session,
    listener: Listener,
    clock: Arc<Wandering>,
    refused: u32,
}

impl Host {
    pub(super) fn new(seed: u64) -> Result<Self, String> {
        let numbers = Arc::new(Numbers::new(seed));
        let store = Arc::new(Kept::new(Arc::clone(&numbers)));
        let model = Wild::new(Arc::clone(&numbers), Arc::clone(&store), WINDOW);
        let clock = Arc::new(Wandering { now: AtomicU64::new(0), numbers: Arc::clone(&numbers) });
        let listener = Listener::new(numbers, store, Arc::new(model));
        let session = session(seed, &listener, &clock)?;
        Ok(Self { seed, session, listener, clock, refused: 0 })
    }

    /// Does one thing, and looks at what came of it.
    pub(super) fn turn(&mut self, turn: u64) -> Result<(), String> {
        let numbers = Arc::clone(&self.listener.numbers);
        self.listener.tally.turns += 1;
        match numbers.below(100) {
            0..3 => self.listen(false, |session| session.send("/compact the lines"))?,
            3 => self.listen(false, |session| session.compact(None))?,
            4..7 => self.listen(false, |session| session.send("@compact Go on."))?,
            7..12 => self.undo()?,
            12 => self.listen(false, |session| session.send_message(odd(&numbers)))?,
            13 => self.listen(false, |session| session.send(numbers.words(10_000)))?,
            14 if numbers.once_in(2) => self.resume()?,
            _ => self.listen(true, |session| session.send(format!("Go on with part {turn}.")))?,
        }
        self.look()
    }

    /// Looks at the whole once more, and returns what happened.
    pub(super) fn finish(mut self) -> Result<Tally, String> {
        self.resume()?;
        self.look()?;
        let tally = &mut self.listener.tally;
        tally.resumed -= 1;
        tally.store_failures = self.listener.store.failures();
        tally.events = self.listener.store.len();
        Ok(self.listener.tally)
    }

    fn listen(
        &mut self,
        short: bool,
        ask: impl FnOnce(&mut Session) -> Events<'_>,
    ) -> Result<(), String> {
        let handle = self.session.handle();
        let heard = self.listener.listen(ask(&mut self.session), &handle)?;
        // Whatever came before, a short message must get to the model again before long.
        match heard {
            Heard::Refused if short && self.listener.requests() == 0 => self.refused += 1,
            Heard::Done => self.refused = 0,
            Heard::Refused | Heard::Failed | Heard::Aborted | Heard::Dropped => {}
        }
        if self.refused > MAX_REFUSED {
            let words = &self.listener.refusal;
            return Err(format!("short messages do not get to the model any more: {words}"));
        }
        Ok(())
    }

    /// Takes the last compaction back, or begins to.
    fn undo(&mut self) -> Result<(), String> {
        let Some(id) = self.session.log().standing().next_back().map(|record| record.id) else {
            return Ok(());
        };
        let polls = self.listener.numbers.steep(40) + 1;
        let mut undoing = pin!(self.session.undo_compaction(id));
        for _ in 0..polls {
            match polled(|context| undoing.as_mut().poll(context))? {
                Poll::Pending => {}
                Poll::Ready(
                    Ok(()) | Err(UndoCompactionError::Store(StoreError::Medium { .. })),
                ) => {
                    break;
                }
                Poll::Ready(Err(error)) => return Err(format!("cannot take {id} back: {error}")),
            }
        }
        self.listener.tally.undone += 1;
        Ok(())
    }

    /// Throws the session away and takes it up again from the store, as after a crash.
    fn resume(&mut self) -> Result<(), String> {
        self.session = session(self.seed, &self.listener, &self.clock)?;
        self.listener.open = None;
        self.listener.tally.resumed += 1;
        Ok(())
    }

    /// Looks at thread, log and store.
    fn look(&mut self) -> Result<(), String> {
        self.listener.look()?;
        let (log, messages) = (self.session.log(), self.session.messages());
        let replayed = log.replay().map_err(|error| error.to_string())?;
        if replayed != messages[..] {
            return Err("the log does not come to the thread".into());
        }
        if let Some(violation) = legality::violations(messages).first() {
            return Err(format!("the thread is illegal: {violation}"));
        }
        let store = &self.listener.store;
        match store.differs(messages) {
            Some(fault) if store.len() == log.len() => Err(fault),
            _ if store.len() > log.len() => Err("the store has more than the log".into()),
            Some(_) | None => Ok(()),
        }
    }
}

/// A session over what the store holds.
fn session(seed: u64, listener: &Listener, clock: &Arc<Wandering>) -> Result<Session, String> {
    let model = Arc::clone(&listener.model);
    let agent = ModelAgent::new(model).with_window(ContextWindow::new(WINDOW));
    let store = Arc::clone(&listener.store);
    let thread = "simulation".parse().map_err(|error| format!("{error}"))?;
    let journal = block_on(Journal::open(store, thread)).map_err(|error| error.to_string())?;
    let unknown_usage = if seed % 8 < 4 { UnknownUsage::Estimate } else { UnknownUsage::Skip };
    let after_turn = seed % 16 > 12;
    let builder = Session::builder(agent)
        .journal(journal)
        .archive(Arc::new(MemoryArchive::default()))
        .strategy(strategy(seed))
        .system("Work.")
        .tool(Arc::new(Write(Arc::clone(&listener.numbers))))
        .compact_context_tool()
        .compact_tool()
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .sleeper(Arc::new(WakefulSleeper::default()))
        .seed(seed)
        .max_rounds(MAX_ROUNDS)
        // An audit reads everything that was said, which in a thread without end takes its time.
        .retention(seed.is_multiple_of(4).then(RetentionPolicy::default))
        .policy(AutoPolicy { unknown_usage, after_turn, ..AutoPolicy::default() });
    let builder = if seed.is_multiple_of(3) { builder.reminder("Write lines.") } else { builder };
    builder.build().map_err(|error| error.to_string())
}

/// The default ladder for half of the seeds, others for the rest.
fn strategy(seed: u64) -> Arc<dyn CompactionStrategy> {
    let first: Arc<dyn CompactionStrategy> = match seed % 4 {
        0 | 1 => return Arc::new(Ladder::default()),
        2 => Arc::new(FoldBatches::default()),
        _ => Arc::new(Chunked::default()),
    };
    let (trim, digest) = (TrimToolResults::default(), Digest::default());
    Arc::new(Ladder::new([first, Arc::new(trim), Arc::new(digest)]))
}

/// A message that no person types.
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

/// A clock that goes on by some seconds with every look, and now and then back.
#[derive(Debug)]
struct Wandering {
    now: AtomicU64,
    numbers: Arc<Numbers>,
}

impl Clock for Wandering {
    fn now(&self) -> Timestamp {
        let now = self.now.fetch_add(self.numbers.below(30_000), Ordering::Relaxed);
        let back = if self.numbers.once_in(50) { self.numbers.below(60_000) } else { 0 };
        Timestamp(now.saturating_sub(back))
    }
}
