//! Listens to a session. Every stream is polled by hand, so that it can be dropped anywhere, and so
//! that a stream that nothing would ever wake is found.

use std::{
    collections::HashSet,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::Stream;
use threadfold::{
    Message, TokenCounter,
    drive::{CompactionError, CompactionErrorKind},
    legality,
    message::{CompactionId, CompactionReason},
    session::{CompactionEvent, SessionError, SessionEvent, SessionHandle},
    store::StoreError,
    tokens::ByteEstimate,
};
use threadfold_testing::shared::simulation::Numbers;

use super::{
    fault::{Fault, Kind},
    kept::Kept,
    tally::Tally,
    wild::{MAX_ROUNDS, MAX_SENDS, Wild},
};

/// The maximum number of polls of a stream.
const MAX_POLLS: u64 = 200_000;

/// The maximum number of requests for summaries of a compaction, even with a result of ten windows.
const MAX_SUMMARIES: u64 = 2_000;

/// The reason of compactions by the soft trigger.
const SOFT: &str = "threshold";

/// Receives the events of a session, and checks that they are allowed.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) numbers: Arc<Numbers>,
    pub(super) store: Arc<Kept>,
    pub(super) model: Arc<Wild>,
    pub(super) tally: Tally,
    /// The compaction that has started and not ended, in any stream.
    pub(super) open: Option<(CompactionId, &'static str)>,
    /// The compactions that have ended.
    pub(super) over: HashSet<CompactionId>,
    /// The text of the last refusal.
    pub(super) refusal: String,
    /// The tokens of the message that was sent. Queued texts come before it.
    asked: u64,
    /// The tokens of what was typed before and is not answered.
    unread: u64,
    /// The same, with the message of this turn.
    newest: u64,
    /// Requests since the turn began.
    requests: u64,
    /// Requests for summaries since the last compaction began.
    summaries: u64,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// With the end of its turn, or with the result line of a command.
    Done,
    /// With an error that is allowed.
    Failed,
    /// Because the window cannot hold the request.
    Refused,
    /// With an abort.
    Aborted,
    /// It was dropped.
    Dropped,
}

impl Listener {
    pub(super) fn new(numbers: Arc<Numbers>, store: Arc<Kept>, model: Arc<Wild>) -> Self {
        Self {
            numbers,
            store,
            model,
            tally: Tally::default(),
            open: None,
            over: HashSet::new(),
            refusal: String::new(),
            asked: 0,
            unread: 0,
            newest: 0,
            requests: 0,
            summaries: 0,
        }
    }

    /// Listens to the end of a turn for this message, or drops the stream at a random point. In a
    /// calm world it listens to the end.
    pub(super) fn listen(
        &mut self,
        typed: &Message,
        calm: bool,
        events: impl Stream<Item = Result<SessionEvent, SessionError>>,
        handle: &SessionHandle,
    ) -> Result<Heard, Fault> {
        let patience = (!calm && self.numbers.once_in(8)).then(|| self.numbers.steep(600));
        let abort_at = (!calm && self.numbers.once_in(15)).then(|| self.numbers.steep(200));
        self.asked = ByteEstimate::TRIGGER.message(typed);
        // What was typed before and was not answered stays too.
        let before = handle.messages();
        let unread = before.iter().skip(legality::unread_from(&before));
        let unread = unread.filter(|message| message.is_typed());
        self.unread = unread.map(|message| ByteEstimate::TRIGGER.message(message)).sum();
        self.newest = self.asked + self.unread;
        let (mut events, mut heard, mut count) = (pin!(events), Heard::Done, 0);
        (self.requests, self.summaries) = (0, 0);
        self.model.begin();
        for poll in 0..MAX_POLLS {
            if patience == Some(poll) {
                self.tally.dropped += 1;
                return Ok(Heard::Dropped);
            }
            let event = polled(|context| events.as_mut().poll_next(context))?;
            self.look()?;
            match event {
                Poll::Pending => continue,
                Poll::Ready(None) => return self.ended(heard),
                Poll::Ready(Some(_)) if heard != Heard::Done => {
                    return Err("something came after the end".into());
                }
                Poll::Ready(Some(event)) => heard = self.hear(event, calm)?,
            }
            count += 1;
            if !calm {
                self.interfere(handle, heard == Heard::Done && abort_at == Some(count));
            }
        }
        Err(format!("a stream without an end, after {count} events").into())
    }

    fn interfere(&mut self, handle: &SessionHandle, abort: bool) {
        if self.numbers.once_in(150) {
            handle.queue(self.numbers.words(30));
        }
        if abort {
            handle.abort();
        }
    }

    fn ended(&self, heard: Heard) -> Result<Heard, Fault> {
        match self.open {
            Some((id, _)) if heard != Heard::Aborted => {
                Err(Fault::new(Kind::Told, format!("{id} began and has no end")))
            }
            Some(_) | None => Ok(heard),
        }
    }

    /// Checks the observations of the model and the store.
    pub(super) fn look(&mut self) -> Result<(), Fault> {
        let seen = self.model.take_seen();
        self.tally.requests += seen.requests;
        self.tally.summaries += seen.summaries;
        self.tally.overflows += seen.overflows;
        self.requests += seen.requests;
        self.summaries += seen.summaries;
        self.tally.max_requests = self.tally.max_requests.max(self.requests);
        self.tally.max_summaries = self.tally.max_summaries.max(self.summaries);
        let stored = || self.store.fault().map(|what| Fault::new(Kind::Log, what));
        if let Some(fault) = seen.fault.or_else(stored) {
            return Err(fault);
        }
        if self.requests > u64::from(MAX_ROUNDS) * MAX_SENDS {
            return Err(format!("{} requests in one turn", self.requests).into());
        }
        if self.summaries > MAX_SUMMARIES {
            return Err(format!("{} requests for one summary", self.summaries).into());
        }
        Ok(())
    }

    /// The number of requests since the turn began.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    fn hear(
        &mut self,
        event: Result<SessionEvent, SessionError>,
        calm: bool,
    ) -> Result<Heard, Fault> {
        match event {
            Ok(SessionEvent::Compaction(event)) => self.hear_compaction(event, calm)?,
            Ok(SessionEvent::QueuedMessage { text, .. }) => {
                self.tally.queued += 1;
                self.requests = 0;
                self.unread += ByteEstimate::TRIGGER.message(&Message::user(text));
                self.newest = self.unread;
                self.model.begin();
            }
            // The next message is the sent one, or is announced as queued.
            Ok(SessionEvent::TurnEnded { .. }) => (self.unread, self.newest) = (0, self.asked),
            Ok(SessionEvent::Aborted) => {
                self.tally.aborted += 1;
                return Ok(Heard::Aborted);
            }
            Ok(_) => {}
            Err(error) => return self.hear_error(error),
        }
        Ok(Heard::Done)
    }

    fn hear_compaction(&mut self, event: CompactionEvent, calm: bool) -> Result<(), Fault> {
        let told = |what: String| Err(Fault::new(Kind::Told, what));
        if let CompactionEvent::Started { id, reason, .. } = &event {
            self.summaries = 0;
            return match self.open.replace((*id, reason_name(reason))) {
                Some((before, _)) => told(format!("{id} begins before {before} has an end")),
                None if self.over.contains(id) => told(format!("{id} begins after its end")),
                None => Ok(()),
            };
        }
        let Some((id, reason)) = self.open.filter(|(id, _)| *id == event.id()) else {
            return told(format!("{:?} is open, but: {event:?}", self.open));
        };
        if event.is_end() {
            self.open = None;
            self.over.insert(id);
        }
        match event {
            CompactionEvent::Completed { .. } => {
                *self.tally.compactions.entry(reason).or_default() += 1;
                self.tally.calm += u64::from(calm);
                self.tally.calm_soft += u64::from(calm && reason == SOFT);
            }
            CompactionEvent::Failed { .. } => self.tally.failed += 1,
            CompactionEvent::Cancelled { .. } => self.tally.cancelled += 1,
            CompactionEvent::Progress { .. } | CompactionEvent::SummaryDelta { .. } => {}
            CompactionEvent::Started { .. } | _ => return told(format!("{id} begins again")),
        }
        Ok(())
    }

    fn hear_error(&mut self, error: SessionError) -> Result<Heard, Fault> {
        self.refusal = error.to_string();
        let heard = match &error {
            SessionError::Model(error) if !error.is_overflow() => Heard::Failed,
            SessionError::Blank => Heard::Failed,
            SessionError::Store(StoreError::Medium { .. }) => return Ok(Heard::Failed),
            SessionError::CannotFit { .. }
            | SessionError::Model(_)
            | SessionError::Compaction(CompactionError {
                kind: CompactionErrorKind::Strategy(_),
                ..
            }) => Heard::Refused,
            _ => return Err(format!("an error that cannot be: {}", self.refusal).into()),
        };
        match heard {
            Heard::Refused if self.model.must_fit(self.newest) => {
                let what = format!("{} tokens were typed: {}", self.newest, self.refusal);
                return Err(Fault::new(Kind::Locked, what));
            }
            Heard::Refused => self.tally.refused += 1,
            _ => self.tally.model_failures += 1,
        }
        Ok(heard)
    }
}

/// Polls once. An error if the result is pending and nothing will wake the task.
pub(super) fn polled<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Result<Poll<T>, String> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let polled = poll(&mut Context::from_waker(&waker));
    match polled.is_pending() && !woken.0.load(Ordering::Acquire) {
        true => Err("nobody will wake what is pending".into()),
        false => Ok(polled),
    }
}

/// Whether the task was woken.
#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

fn reason_name(reason: &CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Threshold => SOFT,
        CompactionReason::Overflow => "overflow",
        CompactionReason::Manual { .. } => "by a person",
        CompactionReason::AgentTool => "by the agent",
        CompactionReason::ModelSwitch => "another window",
        CompactionReason::Background => "in the background",
        CompactionReason::Idle => "while idle",
    }
}
