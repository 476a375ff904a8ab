//! A token counter of the host that panics at each of its calls in turn. After every operation, the
//! thread, its index and the log are either all changed or all unchanged.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::executor::block_on;
use threadfold::{
    Message, ModelAgent, Replacement, Session, Thread, TokenCounter,
    compact::{CompactOptions, Size},
    strategy::KeepRecent,
    testing::ScriptedModel,
    tokens::ByteEstimate,
};

/// A counter that panics at one of its calls.
#[derive(Debug, Default)]
struct Panicking {
    /// How many calls are left before the one that panics; 0 for never.
    left: AtomicU64,
}

impl Panicking {
    fn after(&self, calls: u64) {
        self.left.store(calls, Ordering::Relaxed);
    }
}

impl TokenCounter for Panicking {
    fn text(&self, text: &str) -> u64 {
        if self.left.load(Ordering::Relaxed) > 0 && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Unwinds without the panic hook of the process, which would print every panic.
            panic::resume_unwind(Box::new("the counter panics"));
        }
        ByteEstimate::TRIGGER.text(text)
    }
}

/// Runs the work with a counter that panics at its first call, at its second, and so on, until it
/// no longer panics. Returns the number of panics.
fn at_every_call(mut run: impl FnMut(u64) -> bool) -> u64 {
    (1..10_000).take_while(|calls| run(*calls)).count() as u64
}

/// Whether the work panicked.
fn panics(run: impl FnOnce()) -> bool {
    panic::catch_unwind(AssertUnwindSafe(run)).is_err()
}

fn say(session: &mut Session, text: &str) {
    block_on(async { session.send(text).await }).unwrap();
}

/// Checks that the index of a thread equals one built afresh from its messages.
fn assert_indexed(thread: &Thread) {
    let mut fresh = Thread::default();
    fresh.extend(thread.messages().iter().cloned());
    assert_eq!(thread.size(), fresh.size());
    assert_eq!(thread.open_calls(), fresh.open_calls());
    assert_eq!(thread.size(), Size::of(thread.messages(), &ByteEstimate::TRIGGER));
    for (id, _) in thread.messages().iter().flat_map(checkpoints) {
        assert_eq!(thread.checkpoint(id), fresh.checkpoint(id));
    }
}

fn checkpoints(message: &Message) -> Vec<(threadfold::message::CheckpointId, usize)> {
    let marker = |(block, end): (&threadfold::ContentBlock, usize)| {
        if let threadfold::ContentBlock::Checkpoint(marker) = block {
            Some((marker.id, end))
        } else {
            None
        }
    };
    message.content.iter().zip(1..).filter_map(marker).collect()
}

#[test]
fn a_thread_whose_counter_panics_is_unchanged() {
    let operations: [fn(&mut Thread); 3] = [
        |thread| thread.push(Message::user("four")),
        |thread| thread.extend(["four", "five"].map(Message::user)),
        |thread| {
            let plan =
                thread.plan(&[Replacement::new("So far.")], &CompactOptions::default()).unwrap();
            let _ = thread.apply(&plan).unwrap();
        },
    ];
    for operation in operations {
        let panicked = at_every_call(|calls| {
            let counter = Arc::new(Panicking::default());
            let mut thread = Thread::new(counter.clone());
            thread.extend(["one", "two", "three"].map(Message::user));
            let before = thread.messages().clone();
            counter.after(calls);
            let panicked = panics(|| operation(&mut thread));
            counter.after(0);
            if panicked {
                assert_eq!(thread.messages(), &before);
            } else {
                assert_ne!(*thread.messages(), before);
            }
            assert_indexed(&thread);
            panicked
        });
        assert!(panicked > 0);
    }
}

#[test]
fn thread_and_log_of_a_session_agree_if_its_counter_panics() {
    let panicked = at_every_call(|calls| {
        let counter = Arc::new(Panicking::default());
        let model = ScriptedModel::new(["Hello!", "Yes.", "Fine.", "Good."]);
        let agent = ModelAgent::new(Arc::new(model));
        let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
        let builder = Session::builder(agent).strategy(Arc::new(strategy));
        let mut session = builder.counter(counter.clone()).build().unwrap();
        say(&mut session, "Hi.");
        counter.after(calls);
        let panicked = panics(|| {
            say(&mut session, "Is it so?");
            say(&mut session, "/compact");
            let id = session.log().standing().last().unwrap().id;
            block_on(session.undo_compaction(id)).unwrap();
        });
        counter.after(0);
        assert_eq!(session.log().replay(), session.messages()[..], "call {calls}");
        say(&mut session, "Go on.");
        assert_eq!(session.log().replay(), session.messages()[..], "call {calls}");
        panicked
    });
    assert!(panicked > 10, "{panicked}");
}
