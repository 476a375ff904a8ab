//! threadfold's side.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    Message, ModelAgent, Thread,
    compact::Size,
    drive::{self, Conversation, Models},
    log::{Event, EventLog},
    message::Timestamp,
    store::Journal,
    strategy::{Brief, RangeForm, Snapshot, Summarize},
    tokens::ByteEstimate,
};

use crate::{
    TAIL,
    model::AtOnce,
    table::{Asked, Measured, shared},
    yardstick::{row, thread},
};

/// The old part goes to the model as the messages that it is.
pub(crate) const AS_MESSAGES: RangeForm = RangeForm::Messages;

/// ... as text, which is what the peer sends.
pub(crate) const AS_TEXT: RangeForm = RangeForm::Text;

/// How often the clock is not looked at: one turn takes less than a look.
const TURNS: u32 = 1_000;

/// A turn: one message more, and how full the context is.
pub(crate) fn turn(messages: &[Message], repetitions: usize) -> Measured {
    let more: Vec<Message> = messages.iter().cycle().take(TURNS as usize).cloned().collect();
    let live = || -> (Thread, Vec<Message>) { (shared(messages), more.clone()) };
    let turns = row("threadfold: push, context_usage", repetitions, live, |(mut live, more)| {
        let mut seen = 0;
        for message in more {
            live.push(message);
            seen += live.context_usage().pending;
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

/// Proposes and applies, on a thread that nobody else holds, and drops what goes.
pub(crate) fn compact(
    name: &'static str,
    messages: &[Message],
    range: RangeForm,
    repetitions: usize,
) -> Measured {
    // Made anew, and not cloned: a clone shares its texts, and dropping it would cost nothing.
    let own = || thread::thread(messages.len()).into_iter().collect();
    let model = AtOnce::new();
    row(name, repetitions, own, |live: Thread| compacted(live, &model, range)).into()
}

/// Compacts thread and log of a conversation. What goes stays in the log.
pub(crate) fn compact_logged(messages: &[Message], repetitions: usize) -> Measured {
    let (model, strategy) = (AtOnce::new(), strategy(AS_MESSAGES));
    let work = |(mut agent, mut journal): (ModelAgent, Journal)| {
        let mut held = Conversation::new(&mut agent, &mut journal);
        let (brief, models) = (Brief::default(), Models::one(&model));
        let done = block_on(drive::compact(&mut held, &strategy, &brief, models, &mut |_| {}));
        let left = done.expect("a summary").report.after.messages;
        assert!(left < 2 * TAIL, "it keeps a tail: {left}");
        (agent, journal)
    };
    let name = "threadfold: compact, with a log";
    row(name, repetitions, || conversation(messages), work).into()
}

/// What it asks the model, and what it leaves.
pub(crate) fn asked(name: &'static str, messages: &[Message], range: RangeForm) -> Asked {
    let model = AtOnce::listening();
    let before = Size::of(messages, &ByteEstimate::TRIGGER);
    let after = compacted(shared(messages), &model, range).size();
    let mut heard = model.heard();
    if range == AS_TEXT {
        // One text, which tells of all that come before the tail and the question.
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

fn compacted(mut live: Thread, model: &AtOnce, range: RangeForm) -> Thread {
    let (strategy, brief, thread) = (strategy(range), Brief::default(), Snapshot::of(&live));
    let models = Models::one(model);
    let driven = block_on(drive::propose(&strategy, &thread, &brief, models, &mut |_| {}));
    // As long as it is held, applying copies the handles of the messages.
    drop(thread);
    live.apply(&driven.expect("a summary").proposal.plan).expect("the same thread");
    let left = live.messages().len();
    assert!(left < 2 * TAIL, "it keeps a tail: {left}");
    live
}

fn strategy(range: RangeForm) -> Summarize {
    Summarize { messages: TAIL, range, ..Summarize::default() }
}

fn conversation(messages: &[Message]) -> (ModelAgent, Journal) {
    let mut log = EventLog::new("main".parse().expect("an id"));
    for message in messages {
        log.append(Timestamp(0), Event::MessageAppended(message.clone())).expect("it fits");
    }
    let agent = ModelAgent::new(Arc::new(AtOnce::new()));
    (agent.with_thread(shared(messages)), Journal::new(log))
}
