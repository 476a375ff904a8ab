//! threadfold's side.

use futures::executor::block_on;
use threadfold::{
    Message, Thread,
    auto::Pressure,
    compact::Size,
    drive::{self, Conversation, Models},
    log::{Event, EventLog},
    message::Timestamp,
    store::Journal,
    strategy::{Brief, Snapshot, Summarize},
    tokens::ByteEstimate,
};

use yardstick::{row, thread};

use crate::{
    measured::{Asked, Measured, TAIL, shared},
    model::AtOnce,
};

/// The model gets the old part as messages.
pub(crate) const AS_MESSAGES: bool = false;

/// The model gets the old part as text, as from the peer.
pub(crate) const AS_TEXT: bool = true;

/// The number of turns between two readings of the clock, because a reading takes longer than a
/// turn.
const TURNS: u32 = 1_000;

/// A turn: appends a message and reads the size of the context.
pub(crate) fn turn(messages: &[Message], repetitions: usize) -> Measured {
    let more: Vec<Message> = messages.iter().cycle().take(TURNS as usize).cloned().collect();
    let live = || -> (Thread, Vec<Message>) { (shared(messages), more.clone()) };
    let turns = row("threadfold: push, pressure", repetitions, live, |(mut live, more)| {
        let mut seen = 0;
        for message in more {
            live.push(message);
            seen += Pressure::of(&live).since;
        }
        (seen, live)
    });
    Measured::each_of(turns, TURNS)
}

/// A walk over the whole thread.
pub(crate) fn walk(messages: &[Message], repetitions: usize) -> Measured {
    let size = |()| Size::of(messages, &ByteEstimate::TRIGGER);
    row("threadfold: Size::of", repetitions, || (), size).into()
}

/// Proposes and applies a compaction to a thread without other handles, and drops what it removes.
pub(crate) fn compact(
    name: &'static str,
    messages: &[Message],
    as_text: bool,
    repetitions: usize,
) -> Measured {
    // Built again and not cloned, because a clone shares its texts, so dropping it would take no
    // time.
    let own = || thread::thread(messages.len()).into_iter().collect();
    let model = AtOnce::new();
    row(name, repetitions, own, |live: Thread| compacted(live, &model, as_text)).into()
}

/// Compacts the thread and the log of a conversation. The removed messages stay in the log.
pub(crate) fn compact_logged(messages: &[Message], repetitions: usize) -> Measured {
    let (model, strategy) = (AtOnce::new(), strategy(AS_MESSAGES));
    let work = |mut journal: Journal| {
        let mut held = Conversation::new(&mut journal);
        let (brief, models) = (Brief::default(), Models::one(&model));
        let done = block_on(drive::compact(&mut held, &strategy, &brief, models, &mut |_, _| {}));
        let left = done.expect("a summary").report.after.messages;
        assert!(left < 2 * TAIL, "it keeps a tail: {left}");
        journal
    };
    let name = "threadfold: compact, with a log";
    row(name, repetitions, || conversation(messages), work).into()
}

/// Returns the request to the model and the remaining thread.
pub(crate) fn asked(name: &'static str, messages: &[Message], as_text: bool) -> Asked {
    let model = AtOnce::listening();
    let before = Size::of(messages, &ByteEstimate::TRIGGER);
    let after = compacted(shared(messages), &model, as_text).size();
    let mut heard = model.heard();
    if as_text {
        // One text with all messages before the tail and the question.
        heard.messages = 0;
    }
    Asked {
        name,
        heard,
        tokens: before.tokens,
        messages_after: after.messages,
        tokens_after: after.tokens,
    }
}

fn compacted(mut live: Thread, model: &AtOnce, as_text: bool) -> Thread {
    let (strategy, brief, thread) = (strategy(as_text), Brief::default(), Snapshot::of(&live));
    let models = Models::one(model);
    let proposal = block_on(drive::propose(&strategy, &thread, &brief, models, &mut |_, _| {}));
    // While this handle lives, applying copies the handles of the messages.
    drop(thread);
    live.apply(&proposal.expect("a summary").plan).expect("the same thread");
    let left = live.messages().len();
    assert!(left < 2 * TAIL, "it keeps a tail: {left}");
    live
}

fn strategy(as_text: bool) -> Summarize {
    Summarize { messages: TAIL, as_text, ..Summarize::default() }
}

fn conversation(messages: &[Message]) -> Journal {
    let mut log = EventLog::new("main".parse().expect("an id"));
    for message in messages {
        log.append(Timestamp(0), Event::MessageAppended(message.clone())).expect("it fits");
    }
    let journal = Journal::new(log);
    // The measured work begins with a thread that is there.
    let _ = journal.thread();
    journal
}
