//! A provider that counts differently from the thread's estimate: the session learns the ratio, and
//! compacts to the provider's count.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use futures::executor::block_on;
use threadfold::{
    Answer, ContextWindow, Message, ModelAgent, Request, Session, TokenCounter, Usage, async_trait,
    auto::AutoPolicy,
    message::StopReason,
    model::{Model, ModelError},
    session::{CompactionEvent, SessionEvent},
    store::MemoryStore,
    strategy::KeepRecent,
    tokens::ByteEstimate,
};

const WINDOW: u64 = 20_000;

/// A provider that counts this many tenths of the estimate, and may report its count.
#[derive(Debug)]
struct Provider {
    tenths: AtomicU64,
    says: bool,
    counted: Mutex<Vec<u64>>,
}

impl Provider {
    fn new(tenths: u64, says: bool) -> Arc<Self> {
        Arc::new(Self { tenths: tenths.into(), says, counted: Mutex::default() })
    }

    fn count(&self, estimated: u64) -> u64 {
        (estimated * self.tenths.load(Ordering::Relaxed)).div_ceil(10)
    }
}

#[async_trait]
impl Model for Provider {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let count = self.count(ByteEstimate::TRIGGER.request(&request));
        self.counted.lock().unwrap().push(count);
        let answer = Message::assistant("A line of an answer. ".repeat(30));
        let output = self.count(ByteEstimate::TRIGGER.message(&answer));
        let usage = self.says.then(|| Usage::new(count, output));
        Ok(Answer::new(answer, StopReason::EndTurn, usage))
    }
}

/// The provider's counts of the last request before each compaction and the first after it.
fn around_compactions(tenths: u64, says: bool) -> Vec<(u64, u64)> {
    let provider = Provider::new(tenths, says);
    let agent =
        ModelAgent::new(Arc::<Provider>::clone(&provider)).with_window(ContextWindow::new(WINDOW));
    let mut session = Session::builder(agent)
        .system("Answer at length.")
        .strategy(Arc::new(KeepRecent { messages: 1_000, ..KeepRecent::default() }))
        .policy(AutoPolicy::default())
        .build()
        .unwrap();
    let mut around = Vec::new();
    for _ in 0..200 {
        let mut events = session.send("A line of a question. ".repeat(10));
        let mut compacted = false;
        while let Some(event) = block_on(events.next()) {
            let event = event.unwrap();
            compacted |=
                matches!(event, SessionEvent::Compaction(CompactionEvent::Completed { .. }));
        }
        if let ([.., before, after], true) = (&provider.counted.lock().unwrap()[..], compacted) {
            around.push((*before, *after));
        }
    }
    assert!(around.len() > 2, "{tenths}: {around:?}");
    around
}

#[test]
fn a_compaction_meets_the_target_by_the_count_of_the_provider() {
    for tenths in [10, 11, 13, 16, 19] {
        for (before, after) in around_compactions(tenths, true) {
            let (most, target) = (WINDOW * 8 / 10, WINDOW / 2);
            assert!(before < most && most - before < 2_000, "{tenths}: {before} before");
            assert!(after < target * 103 / 100, "{tenths}: {after} after");
            assert!(after > target * 85 / 100, "{tenths}: {after} after");
        }
    }
}

#[test]
fn a_provider_with_lower_counts_gives_room_up_to_a_third_more_than_the_estimate() {
    for (tenths, most) in [(8, WINDOW / 2), (5, WINDOW / 3)] {
        for (_, after) in around_compactions(tenths, true) {
            let least = most * 85 / 100;
            assert!((least..=most * 103 / 100).contains(&after), "{tenths}: {after}");
        }
    }
}

#[test]
fn without_a_reported_count_the_estimate_is_used() {
    for (_, after) in around_compactions(13, false) {
        assert!(after > WINDOW / 2, "{after}");
    }
}

#[test]
fn a_session_that_is_opened_again_knows_that_the_provider_counts_more() {
    for (tenths, is_learnt) in [(16, true), (7, false)] {
        let provider = Provider::new(tenths, true);
        let store = Arc::new(MemoryStore::default());
        let open = || {
            let agent = ModelAgent::new(Arc::<Provider>::clone(&provider));
            let builder = Session::builder(agent.with_window(ContextWindow::new(WINDOW)))
                .strategy(Arc::new(KeepRecent { messages: 10, ..KeepRecent::default() }))
                .store(store.clone())
                .thread("main".parse().unwrap());
            block_on(builder.open()).unwrap()
        };
        let mut session = open();
        for _ in 0..30 {
            block_on(async { session.send("A line of a question. ".repeat(10)).await }).unwrap();
        }
        block_on(async { session.send("/compact").await }).unwrap();
        let compaction = session.log().standing().last().unwrap().id;
        drop(session);
        // No answer of the provider belongs to the thread as it is now.
        let mut session = open();
        block_on(session.undo_compaction(compaction)).unwrap();
        let estimated = ByteEstimate::TRIGGER.messages(session.messages());
        let known = session.context_tokens() * 10 / estimated;
        assert!(if is_learnt { known >= 15 } else { known == 10 }, "{tenths}: {known}");
    }
}

#[test]
fn what_an_undo_brings_back_is_measured_as_it_was_counted() {
    let provider = Provider::new(16, true);
    let agent =
        ModelAgent::new(Arc::<Provider>::clone(&provider)).with_window(ContextWindow::new(WINDOW));
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut session = Session::builder(agent).strategy(Arc::new(keep)).build().unwrap();
    let say = |session: &mut Session, times| {
        for _ in 0..times {
            block_on(async { session.send("A line of a question. ".repeat(10)).await }).unwrap();
        }
    };
    say(&mut session, 20);
    block_on(async { session.send("/compact").await }).unwrap();
    let compaction = session.log().standing().last().unwrap().id;
    // What is said next is of lighter text.
    provider.tenths.store(7, Ordering::Relaxed);
    say(&mut session, 20);
    block_on(session.undo_compaction(compaction)).unwrap();
    let estimated = ByteEstimate::TRIGGER.messages(session.messages());
    let known = session.context_tokens() * 10 / estimated;
    assert!(known >= 15, "{known}");
}
