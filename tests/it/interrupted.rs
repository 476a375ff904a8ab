//! Futures dropped at every await, failing stores and interleaved writers: the state stays
//! consistent, and the next call continues.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures::executor::block_on;
use threadfold::{
    Answer, ContentBlock, Message, Model, ModelAgent, Request, Role, Session, Usage, async_trait,
    drive::{self, CompactionError, Conversation, Models},
    log::{CompactionRecord, Event, EventLog, LogId, LoggedEvent},
    message::{
        BatchId, CompactionReason, ModelError, ModelErrorKind, StopReason, ThreadId, Timestamp,
    },
    session::{Reply, SessionError},
    store::{Journal, Loaded, MemoryStore, StoreError, ThreadStore},
    strategy::{Brief, CompactionStrategy, Rolling, Summarize},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::{faulty_store, notation};

use crate::support::polls::{pending_once, poll};

/// Polls a future this many times and drops it. Returns its outcome if it completed.
fn asked<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return Some(outcome);
        }
    }
    None
}

/// A wrapper that waits before and after each operation.
#[derive(Debug, Default)]
struct Slow<T>(T);

#[async_trait]
impl<S: ThreadStore> ThreadStore for Slow<S> {
    async fn append(
        &self,
        thread: &ThreadId,
        _: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        pending_once().await;
        let outcome = self.0.append(thread, None, expected_len, events).await;
        pending_once().await;
        outcome
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        pending_once().await;
        let outcome = self.0.load(thread).await;
        pending_once().await;
        outcome
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.0.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0.delete(thread).await
    }
}

#[async_trait]
impl<M: Model> Model for Slow<M> {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        pending_once().await;
        let outcome = self.0.complete(request).await;
        pending_once().await;
        outcome
    }
}

fn id() -> ThreadId {
    "t".parse().unwrap()
}

fn said(text: &str) -> Event {
    Event::MessageAppended(Message::user(text))
}

fn stored(store: &dyn ThreadStore) -> EventLog {
    block_on(store.load(&id())).unwrap().log
}

/// Appends an event as another writer of the same thread, again if the store fails.
fn interleave(store: &dyn ThreadStore) -> LoggedEvent {
    let Loaded { log: mut theirs, id: log, .. } = block_on(store.load(&id())).unwrap();
    let event = theirs.append(Timestamp(9), said("theirs")).unwrap().clone();
    let last = || stored(store).events().last().cloned();
    while last().as_ref() != Some(&event) {
        let _ = block_on(store.append(&id(), log, event.seq, std::slice::from_ref(&event)));
    }
    event
}

type Shelf = Slow<Arc<dyn ThreadStore>>;

/// A journal with one stored event and three others, over a store with these faults.
fn journal(faults: &[Option<usize>]) -> (Arc<Shelf>, Journal) {
    let faults = [&[None], faults].concat();
    let store = Arc::new(Slow(
        Arc::new(faulty_store(MemoryStore::default(), &faults)) as Arc<dyn ThreadStore>
    ));
    let mut journal = block_on(Journal::open(store.clone(), id())).unwrap();
    journal.append(Timestamp(1), said("a")).unwrap();
    block_on(journal.flush()).unwrap();
    for text in ["b", "c", "d"] {
        journal.append(Timestamp(2), said(text)).unwrap();
    }
    (store, journal)
}

/// The outcomes of the appends, in order.
const FAULTS: [&[Option<usize>]; 6] = [
    &[],
    &[Some(0)],
    &[Some(1), Some(0)],
    &[Some(2), Some(1)],
    &[Some(3)],
    // The last append is made after the length was read.
    &[Some(1), None, Some(1)],
];

#[test]
fn a_dropped_or_failed_flush_is_completed_by_the_next() {
    for faults in FAULTS {
        for times in 0..12 {
            let (store, mut journal) = journal(faults);
            let log = journal.log().clone();
            for _ in 0..faults.len() {
                let _ = asked(journal.flush(), times);
                let there = stored(&*store);
                assert!(log.events().starts_with(there.events()), "{faults:?} {times}");
                assert_eq!(journal.log(), &log);
            }
            // After these failures at most one more write fails.
            let _ = block_on(journal.flush());
            let _ = block_on(journal.flush());
            block_on(journal.flush()).unwrap();
            assert_eq!(stored(&*store), log, "{faults:?} {times}");
            assert_eq!(journal.unstored(), []);
        }
    }
}

#[test]
fn a_flush_never_writes_after_events_of_another_writer() {
    for faults in FAULTS {
        for times in 0..12 {
            let (store, mut journal) = journal(faults);
            let log = journal.log().clone();
            let _ = asked(journal.flush(), times);
            let theirs = interleave(&*store);
            let before = stored(&*store);
            if journal.unstored().is_empty() {
                // All events of this journal were written before, so there is nothing to write.
                continue;
            }
            for _ in 0..2 {
                let outcome = block_on(journal.flush());
                assert!(matches!(outcome, Err(StoreError::Conflict { .. })), "{outcome:?}");
            }
            assert_eq!(stored(&*store), before);
            assert_eq!(before.events().last(), Some(&theirs));
            assert_eq!(journal.log(), &log);
        }
    }
}

#[test]
fn a_flush_to_a_store_that_lost_events_is_a_conflict_and_writes_nothing() {
    let (store, mut journal) = journal(&[]);
    block_on(journal.flush()).unwrap();
    journal.append(Timestamp(3), said("e")).unwrap();
    let kept = &journal.log().events()[..2];
    let stored_id = block_on(store.load(&id())).unwrap().id;
    block_on(store.delete(&id())).unwrap();
    block_on(store.append(&id(), stored_id, 0, kept)).unwrap();
    let outcome = block_on(journal.flush());
    assert!(matches!(outcome, Err(StoreError::Conflict { expected: 4, found: 2 })), "{outcome:?}");
    assert_eq!((stored(&*store).len(), journal.unstored().len()), (2, 1));
}

#[test]
fn an_event_that_a_store_returns_in_another_form_is_recognised() {
    // The reason is a known word, in an unknown form.
    let mut answer = Message::assistant("done");
    answer.make_mut().stop_reason = Some(StopReason::Other("end_turn".into()));
    let folder = std::env::temp_dir().join(format!("threadfold-again-{}", std::process::id()));
    let files = threadfold::store::JsonlStore::open(&folder).unwrap();
    let store = Arc::new(faulty_store(files, &[Some(1)]));
    let mut journal = block_on(Journal::open(store.clone(), id())).unwrap();
    journal.append(Timestamp(1), Event::MessageAppended(answer)).unwrap();
    journal.append(Timestamp(2), said("b")).unwrap();
    assert!(matches!(block_on(journal.flush()), Err(StoreError::Medium { .. })));
    let outcome = block_on(journal.flush());
    let found = stored(&*store).len();
    std::fs::remove_dir_all(folder).unwrap();
    outcome.unwrap();
    assert_eq!(found, 2);
}

/// A thread with its log and its store, which is slow.
struct Kept {
    journal: Journal,
    store: Arc<Slow<MemoryStore>>,
}

impl Kept {
    fn new() -> Self {
        let store = Arc::new(Slow::<MemoryStore>::default());
        let mut kept =
            Self { journal: block_on(Journal::open(store.clone(), id())).unwrap(), store };
        kept.rounds(0..9);
        kept
    }

    fn rounds(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let text = format!(
                "# user\nGo on with part {number}.\n# assistant\nPart {number} is done. {}\n",
                "It took some words to say so. ".repeat(9)
            );
            for message in notation::parse(&text).unwrap() {
                let event = Event::MessageAppended(message);
                self.journal.append(Timestamp(number as u64), event).unwrap();
            }
        }
        block_on(self.journal.flush()).unwrap();
    }

    async fn compact(
        &mut self,
        strategy: &dyn CompactionStrategy,
        model: &dyn Model,
    ) -> Result<CompactionRecord, CompactionError> {
        let reason = CompactionReason::Threshold;
        let brief = Brief { now: Timestamp(99), reason, ..Brief::default() };
        let mut conversation = Conversation::new(&mut self.journal);
        drive::compact(&mut conversation, strategy, &brief, Models::one(model), &mut |_, _| {})
            .await
    }

    /// Checks the invariants: thread and log agree, the store has a prefix of the log, and the
    /// batches that the thread shows are those of the log.
    fn assert_consistent(&self, what: &str) {
        let log = self.journal.log();
        assert_eq!(log.replay(), self.journal.thread().messages()[..], "{what}");
        assert!(log.events().starts_with(stored(&*self.store).events()), "{what}");
        let summaries = self.journal.thread().messages().iter().flat_map(Message::summaries);
        let mut shown: Vec<BatchId> =
            summaries.flat_map(|summary| &summary.batches).map(|batch| batch.id).collect();
        let mut logged: Vec<BatchId> =
            log.batches().unwrap().iter().map(|batch| batch.id).collect();
        shown.sort_unstable();
        logged.sort_unstable();
        assert_eq!(shown, logged, "{what}");
        assert_eq!(logged.is_empty(), log.standing().next().is_none(), "{what}");
    }

    /// The process ends, and another one continues from the stored log.
    fn crash(self) -> Self {
        let Self { store, .. } = self;
        let journal = block_on(Journal::open(store.clone(), id())).unwrap();
        Self { journal, store }
    }
}

fn fold() -> Rolling {
    Rolling { keep_recent: 4, ..Rolling::default() }
}

#[test]
fn a_compaction_dropped_at_any_await_leaves_a_consistent_state() {
    let failing = ScriptedModel::default();
    let models: [(&dyn Model, bool); 4] =
        [(&ExtractiveModel, false), (&ExtractiveModel, true), (&failing, false), (&failing, true)];
    for (model, crashes) in models {
        let (mut done, mut changes) = (false, Vec::new());
        for times in 0..1_000 {
            let what = format!("{model:?}, asked {times} times, crashes: {crashes}");
            let mut kept = Kept::new();
            let before = kept.journal.log().len();
            done = asked(kept.compact(&fold(), &Slow(model)), times).is_some();
            kept.assert_consistent(&what);
            changes.push(kept.journal.log().since(before).len());
            if crashes {
                kept = kept.crash();
                kept.assert_consistent(&what);
            }
            kept.rounds(20..29);
            block_on(kept.compact(&fold(), &ExtractiveModel)).unwrap();
            kept.assert_consistent(&what);
            assert_eq!(stored(&*kept.store), *kept.journal.log(), "{what}");
            if done {
                break;
            }
        }
        // Nothing is logged until the one event of the compaction.
        assert!(done && changes.is_sorted(), "{changes:?}");
        assert!(changes.len() > 3 && changes.ends_with(&[1]), "{changes:?}");
    }
}

/// A session over a slow store, with a model that answers this.
fn session(script: Vec<Scripted>, store: Arc<dyn ThreadStore>) -> Session {
    let journal = block_on(Journal::open(store, id())).unwrap();
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script)));
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    Session::builder(agent).journal(journal).strategy(Arc::new(summarize)).build().unwrap()
}

/// An answer that cost this many tokens.
fn cost(text: &str, tokens: u64) -> Scripted {
    let message = Message::new(Role::Assistant, vec![ContentBlock::text(text)]);
    let usage = Some(Usage::new(tokens, 1));
    Scripted::Answer(Answer::new(message, StopReason::EndTurn, usage))
}

fn say(session: &mut Session, text: &str) -> Result<Reply, SessionError> {
    block_on(session.send(text).into_future())
}

#[test]
fn a_handle_shows_the_thread_after_a_compaction_that_was_dropped_while_it_was_stored() {
    let mut committed = 0;
    for polls in 0..40 {
        let store = Arc::new(Slow(Arc::new(MemoryStore::default()) as Arc<dyn ThreadStore>));
        let answers = (0..8).map(|n| Scripted::from(format!("Answer {n}: {}", "word ".repeat(60))));
        let script = answers.chain(["They talked.".into(), "Fine.".into(), "Well.".into()]);
        let mut session = session(script.collect(), store);
        for round in 0..8 {
            say(&mut session, &format!("Question {round}?")).unwrap();
        }
        let handle = session.handle();
        let mut stream = session.send("/compact");
        let (_, over) = poll(&mut stream, polls);
        drop(stream);
        committed += usize::from(!over && session.log().standing().count() > 0);
        say(&mut session, "Go on.").unwrap();
        assert_eq!(handle.messages()[..], session.messages()[..], "after {polls} polls");
    }
    assert!(committed > 0, "no compaction was dropped behind its commit");
}

#[test]
fn the_tokens_of_an_empty_answer_and_of_a_failed_request_are_billed() {
    let usage = Usage::new(70, 0);
    let mut failed = ModelError::new(ModelErrorKind::Other, "no");
    failed.usage = usage;
    let script = vec![cost("", 900), Scripted::Error(failed), cost("Yes.", 20)];
    let mut session = session(script, Arc::new(MemoryStore::default()));
    let empty = say(&mut session, "One?").unwrap();
    assert_eq!((empty.text.as_str(), empty.usage.input), ("", 900));
    assert_eq!(session.log().billed().total().input, 900);
    say(&mut session, "Two?").unwrap_err();
    assert_eq!(session.log().billed().total().input, 970);
}

#[test]
fn a_pause_without_content_ends_the_turn() {
    let empty = Answer::new(Message::new(Role::Assistant, Vec::new()), StopReason::PauseTurn, None);
    let mut session = session(vec![empty.into(), "No.".into()], Arc::new(MemoryStore::default()));
    let reply = say(&mut session, "One?").unwrap();
    assert_eq!((reply.text.as_str(), reply.stop_reason), ("", Some(StopReason::PauseTurn)));
}

#[test]
fn a_prompt_that_was_taken_out_does_not_come_back_from_the_store() {
    let refused = || {
        let kind = ModelErrorKind::Overflow { limit: None, found: None, output: None };
        Scripted::Error(ModelError::new(kind, "too long"))
    };
    let answer = || format!("Two. {}", "Words. ".repeat(600)).into();
    let opened = |store: &Arc<Slow<Arc<dyn ThreadStore>>>| {
        let script = [answer()].into_iter().chain((0..9).map(|_| refused()));
        let mut session = session(script.collect(), store.clone());
        say(&mut session, "One?").unwrap();
        session
    };
    let shelf = || Arc::new(Slow(Arc::new(MemoryStore::default()) as Arc<dyn ThreadStore>));
    let store = shelf();
    let mut session = opened(&store);
    say(&mut session, "What they refuse?").unwrap_err();
    assert_eq!(session.messages().len(), 2, "the prompt was taken out");
    assert_eq!(stored(store.as_ref()).replay(), session.messages()[..]);
    // Wherever it is dropped, a handle shows the prompt as long as the session does.
    let shows = |messages: &[Message]| format!("{messages:?}").contains("What they refuse?");
    for polls in 0..40 {
        let mut session = opened(&shelf());
        let handle = session.handle();
        let _ = poll(&mut session.send("What they refuse?"), polls);
        assert_eq!(shows(&handle.messages()), shows(session.messages()), "after {polls} polls");
    }
}

#[test]
fn what_a_cancelled_compaction_cost_is_in_its_failure() {
    let store = Arc::new(Slow(Arc::new(MemoryStore::default()) as Arc<dyn ThreadStore>));
    let mut seen = 0;
    for polls in 0..40 {
        let answers = (0..8).map(|n| cost(&format!("Answer {n}: {}", "word ".repeat(60)), 1));
        let script = answers.chain([cost(" ", 500), cost("Fine.", 1), cost("Well.", 1)]);
        let mut session = session(script.collect(), store.clone());
        for round in 0..8 {
            say(&mut session, &format!("Question {round}?")).unwrap();
        }
        let mut stream = session.send("/compact");
        let _ = poll(&mut stream, polls);
        drop(stream);
        say(&mut session, "Go on.").unwrap();
        let paid = session.log().billed().compaction.input;
        let asked = session.log().events().iter().any(|logged| {
            matches!(&logged.event, Event::CompactionFailed(failure) if failure.usage.input > 0)
        });
        assert_eq!(asked, paid > 0, "after {polls} polls");
        seen += usize::from(asked);
        block_on(store.delete(&id())).unwrap();
    }
    assert!(seen > 0);
}

#[test]
fn a_journal_without_messages_takes_those_of_the_builder() {
    let mut journal = Journal::new(EventLog::new(id()));
    journal.append(Timestamp(1), Event::RuleAdded { text: "Use tabs.".into() }).unwrap();
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Yes."])));
    let before = [Message::user("Hi."), Message::assistant("Hello.")];
    let session = Session::builder(agent).journal(journal).messages(before).build().unwrap();
    assert_eq!(session.messages().len(), 2);
}
