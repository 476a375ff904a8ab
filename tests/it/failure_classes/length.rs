//! Calls that are too long themselves, and requests that are checked too late.

use super::*;

#[test]
fn a_thread_too_long_for_its_summariser_is_summarised_in_chunks() {
    let store = Arc::<MemoryStore>::default();
    let mut before = opened(store.clone(), 200_000, 1_000, Played::new(chats), |b| b);
    before.chat(150);
    assert!(before.session.context_tokens() > 2 * 8_000);
    // The same thread under a model with a much smaller window, by the default strategy.
    let model = Played::new(chats).summing_up(sums_up_in_prose);
    let mut bench = opened(store, 8_000, 1_000, model, |b| b);
    let events = bench.events("And now?");
    assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{events:?}");
    assert!(bench.model.summaries().len() > 2, "in pieces");
    let record = bench.records().pop().unwrap();
    let rungs: Vec<(&str, bool)> =
        record.rungs.iter().map(|rung| (rung.strategy.as_str(), rung.failure.is_none())).collect();
    assert_eq!(rungs, [("summarize", false), ("chunked", true)], "{:?}", record.rungs);
    // Every request with a piece of the thread has fitted.
    bench.assert_sound();
}

#[test]
fn a_summariser_that_refuses_every_length_does_not_stop_the_turn() {
    let model = Played::new(chats).summing_up(|_| overflow(None));
    let mut bench = bench(9_000, model, |b| b);
    let events = bench.chat(60);
    let (begun, done) = begun_and_done(&events);
    assert!(begun >= 1 && begun == done, "{begun} {done}");
    for record in bench.records() {
        let last = record.rungs.last().unwrap();
        assert_eq!((last.strategy.as_str(), last.failure.as_ref()), ("digest", None));
    }
    bench.assert_sound();
}

#[test]
fn a_long_prompt_does_not_make_the_summary_request_too_long() {
    let strategies = strategies().into_iter().take(3);
    for strategy in strategies {
        let name = strategy.name().to_owned();
        let model = Played::new(chats).summing_up(sums_up_in_prose);
        let mut bench = bench(16_000, model, |b| b.strategy(strategy));
        bench.chat(60);
        let long = "and this was pasted into the prompt ".repeat(900);
        let events = bench.events(format!("Begin. {long} End."));
        assert!(begun_and_done(&events).1 >= 1, "{name}: {:?}", ends(&events));
        assert!(events.iter().all(Result::is_ok), "{name}: {events:?}");
        for request in bench.model.summaries() {
            let asked = texts(&request.messages);
            assert!(name == "rolling" || asked.contains("Begin. ") && asked.contains(" End."));
        }
        // The agent itself gets the whole of it.
        assert!(texts(&bench.last_asked().messages).contains(&long), "{name}");
        bench.assert_sound();
    }
}

#[test]
fn a_window_learned_from_a_refusal_applies_to_summary_requests() {
    // The window is unknown, and becomes small after some time.
    let window = Arc::new(AtomicU64::new(u64::MAX));
    let refused = Arc::new(AtomicU64::default());
    let guarded = |answers: fn(&Request) -> Scripted| {
        let (window, refused) = (window.clone(), refused.clone());
        move |request: &Request| {
            let limit = window.load(Ordering::Relaxed);
            if ByteEstimate::TRIGGER.request(request) <= limit {
                return answers(request);
            }
            refused.fetch_add(1, Ordering::Relaxed);
            overflow(Some(limit))
        }
    };
    let model = Arc::new(Played::new(guarded(chats)).summing_up(guarded(sums_up_in_prose)));
    let session = Session::builder(ModelAgent::new(model.clone()))
        .clock(Arc::new(TestClock::default()))
        .policy(policy())
        .build()
        .unwrap();
    let mut bench = Bench { session, model, tool: Write::default(), window: u64::MAX };
    bench.chat(150);
    assert!(bench.session.context_tokens() > 2 * 8_000);
    assert_eq!(begun_and_done(&bench.chat(1)), (0, 0));
    window.store(8_000, Ordering::Relaxed);
    let before = bench.model.requests().len();
    let events = bench.chat(1);
    assert_eq!(reasons(&events), [CompactionReason::Overflow]);
    assert_eq!(begun_and_done(&events), (1, 1));
    assert!(bench.model.summaries().len() > 2, "in pieces");
    assert_eq!(refused.load(Ordering::Relaxed), 1, "only the request of the turn is refused");
    for request in bench.model.requests().iter().skip(before + 1) {
        assert!(ByteEstimate::TRIGGER.request(request) <= 8_000);
    }
    bench.assert_sound();
}

// Looking only when a turn is over.

#[test]
fn a_turn_with_many_tool_calls_is_compacted_in_time() {
    let refused = Arc::new(AtomicU64::default());
    let (count, works) = (refused.clone(), writes(60, 40));
    let model = Played::new(move |request| {
        if ByteEstimate::TRIGGER.request(request) > 12_000 {
            count.fetch_add(1, Ordering::Relaxed);
            return overflow(Some(12_000));
        }
        works(request)
    });
    let mut bench = bench(12_000, model.summing_up(sums_up_in_prose), |b| b);
    let events = bench.events("Write all parts.");
    let last = events.last().unwrap();
    assert!(matches!(last, Ok(SessionEvent::TurnEnded { rounds: 61, .. })), "{last:?}");
    assert!(begun_and_done(&events).1 >= 2, "{:?}", compactions(&events));
    assert_eq!(refused.load(Ordering::Relaxed), 0, "no provider had to say so");
    bench.assert_sound();
}

#[test]
fn the_prompt_to_be_sent_is_counted() {
    let mut bench = bench(10_000, Played::new(chats), |b| b.strategy(Arc::new(summarize())));
    bench.chat(50);
    let filled = bench.session.context_tokens();
    assert!(filled < 8_000 && begun_and_done(&bench.chat(1)).0 == 0);
    let long = "and what is there to say about this ".repeat(150);
    let events = bench.events(long.clone());
    assert_eq!(reasons(&events), [CompactionReason::Threshold]);
    assert_eq!(begun_and_done(&events), (1, 1));
    assert!(typed(&long, &bench.last_asked().messages));
    bench.assert_sound();
}

// A wrong window, or a wrong count.
