//! The features of a session for user interfaces: complete tool events, a handle that answers while
//! a turn runs, queued texts that are never lost, observers, and a breakdown of the context.

use std::{
    panic,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use threadfold::{
    ContentBlock, ContextWindow, Message, Session,
    session::{CompactionEvent, SessionEvent},
    strategy::KeepRecent,
    testing::Scripted,
};

use crate::support::bench::{Bench, bench, calls, say};

type Seen = Arc<Mutex<Vec<String>>>;

/// The kind of an event, as in its JSON.
fn kind(event: &SessionEvent) -> String {
    let json = serde_json::to_value(event).unwrap();
    let status = json["status"].as_str().map(|status| format!(" {status}")).unwrap_or_default();
    format!("{}{status}", json["type"].as_str().unwrap())
}

/// The turn that `begin` starts, with the number of messages that the handle shows after each
/// event.
fn shown(bench: &mut Bench, text: &str) -> Vec<(String, usize)> {
    let handle = bench.session.handle();
    let mut events = bench.session.send(text);
    let mut shown = Vec::new();
    while let Some(event) = block_on(events.next()) {
        shown.push((kind(&event.unwrap()), handle.messages().len()));
    }
    shown
}

#[test]
fn a_tool_event_carries_the_call_and_its_result() {
    let call = calls(&[("a", "quick", "{\"n\":1}")]);
    let mut bench = bench([Scripted::from(call), "Done.".into()], |builder| builder);
    let mut events = bench.session.send("Go.");
    let (mut streamed, mut input, mut result) = (String::new(), None, None);
    while let Some(event) = block_on(events.next()) {
        match event.unwrap() {
            SessionEvent::ToolInputDelta { id, name, text } => {
                assert_eq!((id.as_str(), name.as_str()), ("a", "quick"));
                streamed.push_str(&text);
            }
            SessionEvent::ToolStarted { input: whole, .. } => input = Some(whole.to_string()),
            SessionEvent::ToolFinished { content, is_error: false, .. } => result = Some(content),
            _ => {}
        }
    }
    assert_eq!((streamed.as_str(), input.as_deref()), ("{\"n\":1}", Some("{\"n\":1}")));
    assert_eq!(result.unwrap(), [ContentBlock::text("quick {\"n\":1}")]);
}

#[test]
fn a_handle_shows_the_thread_and_the_tokens_while_the_turn_runs() {
    let call = Scripted::from(calls(&[("a", "quick", "{}")]));
    let mut bench = bench([call, "Done.".into()], |builder| builder);
    let handle = bench.session.handle();
    assert_eq!((handle.messages().len(), handle.is_busy()), (0, false));
    let rows = [
        ("tool_input_delta", 1),
        ("tool_input_delta", 1),
        ("tool_started", 2),
        ("tool_finished", 2),
        // The results were appended before the next answer came.
        ("text_delta", 3),
        ("turn_ended", 4),
    ];
    let shown = shown(&mut bench, "Go.");
    assert_eq!(shown, rows.map(|(kind, messages)| (kind.to_owned(), messages)));
    assert_eq!(handle.messages()[..], bench.session.messages()[..]);
    assert_eq!(handle.token_usage(), bench.session.token_usage());
    assert!(handle.token_usage().context_tokens > 0);

    let kinds: Vec<String> = handle.recent_events().iter().map(kind).collect();
    // The pieces of an input are joined.
    assert_eq!(kinds, rows[1..].iter().map(|(kind, _)| kind.to_owned()).collect::<Vec<_>>());
}

#[test]
fn a_handle_shows_compactions_and_undone_ones() {
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench = bench(["One.", "Two."], |builder| builder.strategy(Arc::new(keep)));
    let handle = bench.session.handle();
    say(&mut bench.session, "First.").unwrap();
    say(&mut bench.session, "Second.").unwrap();
    say(&mut bench.session, "/compact").unwrap();
    assert_eq!((handle.messages().len(), bench.session.messages().len()), (2, 2));
    let id = bench.session.log().standing().last().unwrap().id;
    block_on(bench.session.undo_compaction(id)).unwrap();
    assert_eq!((handle.messages().len(), bench.session.messages().len()), (4, 4));
}

#[test]
fn a_text_queued_at_any_event_is_taken_by_this_turn_or_the_next() {
    // The text is queued after the event of this number, or before the first.
    for after in 0..4 {
        let mut bench = bench(["One.", "Two."], |builder| builder);
        let handle = bench.session.handle();
        let mut said = (after == 0).then(|| handle.queue("Again."));
        let mut events = bench.session.send("Go.");
        let mut count = 0;
        while let Some(event) = block_on(events.next()) {
            event.unwrap();
            count += 1;
            if count == after {
                said = Some(handle.queue("Again."));
            }
        }
        drop(events);
        let said = said.unwrap_or_else(|| handle.queue("Again."));
        let waits = handle.queued() == 1;
        assert_eq!(!said && after > 0, waits, "{after}: {said:?}");
        if waits {
            let reply = block_on(bench.session.run_queued().into_future()).unwrap();
            assert_eq!(reply.text, "Two.");
        }
        assert_eq!((handle.queued(), bench.session.messages().len()), (0, 4), "{after}");
    }
}

#[test]
fn a_queued_text_is_in_one_place_wherever_its_turn_is_dropped() {
    let said = |n| {
        let answer = Message::assistant("I read it and it is a parser. ".repeat(30));
        [Message::user(format!("Question {n}?")), answer]
    };
    let old: Vec<Message> = (0..8).flat_map(said).collect();
    // The thread must be compacted before there is room for it.
    let long = "And this log, please: 17 lines of it. ".repeat(250);
    let (mut waited, mut after) = (0, 0);
    loop {
        let mut bench = bench(["Fine."; 9], |builder| {
            builder.messages(old.clone()).window(ContextWindow::new(6_000))
        });
        let handle = bench.session.handle();
        let mut events = bench.session.send("Go.");
        assert!(block_on(events.next()).is_some());
        assert!(handle.queue(long.as_str()));
        let mut is_over = false;
        for _ in 0..after {
            let event = block_on(events.next());
            is_over |= event.is_none();
            event.transpose().unwrap();
        }
        drop(events);
        let is_sent =
            bench.session.messages().iter().flat_map(|it| it.texts()).any(|it| *it == *long);
        assert_eq!(usize::from(is_sent) + handle.queued(), 1, "after {after} events");
        waited += handle.queued();
        if is_over {
            break;
        }
        after += 1;
    }
    assert!(waited > 3, "{waited} of {after}");
}

#[test]
fn a_text_queued_for_a_turn_that_is_dropped_waits() {
    let mut bench = bench(["One.", "Two.", "Three."], |builder| builder);
    let handle = bench.session.handle();
    assert_eq!((handle.queue(" \n"), handle.queued()), (false, 0), "blank");
    let mut events = bench.session.send("Go.");
    assert!(block_on(events.next()).is_some());
    assert!(handle.queue("Again."));
    drop(events);
    assert!(!handle.queue("And again."));
    let reply = block_on(bench.session.run_queued().into_future()).unwrap();
    assert_eq!((reply.text.as_str(), handle.queued()), ("Three.", 0));
    let none = block_on(bench.session.run_queued().into_future()).unwrap();
    assert_eq!((none.text.as_str(), none.stop_reason), ("", None));
}

fn observed(
    seen: &Seen,
    session: threadfold::session::SessionBuilder,
) -> threadfold::session::SessionBuilder {
    let seen = Arc::clone(seen);
    session.observe(move |event| {
        let line = event.map_or_else(|error| format!("error: {error}"), kind);
        seen.lock().unwrap().push(line);
    })
}

#[test]
fn an_observer_sees_every_event_when_it_happens() {
    let seen = Seen::default();
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench = bench(["One.", "Two.", "Three."], |builder| {
        observed(&seen, builder.strategy(Arc::new(keep)))
    });
    let take = || std::mem::take(&mut *seen.lock().unwrap());
    say(&mut bench.session, "First.").unwrap();
    say(&mut bench.session, "Second.").unwrap();
    assert_eq!(take(), ["text_delta", "turn_ended", "text_delta", "turn_ended"]);

    // Observers see an adopted compaction at once, and not again when the next stream delivers it.
    let prepared = block_on(bench.session.prepare_compaction());
    block_on(bench.session.adopt(prepared)).unwrap();
    assert_eq!(take(), ["compaction started", "compaction completed"]);
    let mut events = bench.session.send("Third.");
    let first = block_on(events.next()).unwrap().unwrap();
    assert!(matches!(first, SessionEvent::Compaction(CompactionEvent::Started { .. })));
    drop(events);
    assert_eq!(take(), ["aborted"], "a dropped stream ends the turn");

    say(&mut bench.session, "Fourth.").unwrap();
    take();
    let error = say(&mut bench.session, "Nobody answers.").unwrap_err();
    assert_eq!(
        take(),
        [format!("error: {error}")],
        "an error ends the turn, and nothing else does"
    );
}

#[test]
fn a_panic_of_an_observer_does_no_harm() {
    let seen = Seen::default();
    let mut bench = bench(["One."], |builder| {
        observed(&seen, builder.observe(|_| panic::panic_any("an observer")))
    });
    assert_eq!(say(&mut bench.session, "Go.").unwrap().text, "One.");
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn a_fork_has_observers_of_its_own() {
    let seen = Seen::default();
    let mut bench = bench(["One.", "Two."], |builder| observed(&seen, builder));
    say(&mut bench.session, "Go.").unwrap();
    let mut fork: Session =
        block_on(bench.session.fork_before("other".parse().unwrap(), 0)).unwrap().build().unwrap();
    say(&mut fork, "Go elsewhere.").unwrap();
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert_eq!(fork.messages()[1].content[0], Message::assistant("Two.").content[0]);
}
