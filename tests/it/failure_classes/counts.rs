//! Wrong windows and wrong counts.

use super::*;

#[test]
fn a_count_of_zero_is_no_measure() {
    let works = writes(60, 40);
    let model = Played::new(move |request| match works(request) {
        Scripted::Answer(turn) => with_usage(turn, Usage::default()),
        answer => answer,
    });
    // The trigger waits until a provider counts; a request that does not fit is compacted in any
    // case.
    let policy = AutoPolicy { estimates_usage: false, ..AutoPolicy::default() };
    let mut bench = bench(12_000, model, |b| b.policy(policy));
    let events = bench.events("Write all parts.");
    assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{events:?}");
    let reasons = reasons(&events);
    assert!(reasons.len() >= 2, "{reasons:?}");
    assert!(reasons.iter().all(|reason| *reason == CompactionReason::Overflow), "{reasons:?}");
    bench.assert_sound();
}

#[test]
fn a_count_that_sums_all_calls_does_not_cause_repeated_compactions() {
    for policy in [AutoPolicy::default(), policy()] {
        let sum = AtomicU64::default();
        let model = Played::new(move |request| {
            let tokens = ByteEstimate::TRIGGER.request(request);
            let input = sum.fetch_add(tokens, Ordering::Relaxed) + tokens;
            counted("Well.", Usage::new(input, 10))
        });
        let mut bench = bench(20_000, model, |b| b.strategy(Arc::new(summarize())).policy(policy));
        let events = bench.chat(150);
        assert!(begun_and_done(&events).0 <= 6, "{:?}", reasons(&events));
        bench.assert_sound();
    }
}

#[test]
fn a_count_larger_than_the_window_refuses_no_request() {
    for input in [20_001, 200_000, u64::MAX] {
        for output in [0, 10, u64::MAX] {
            let model = Played::new(move |_| counted("Well.", Usage::new(input, output)));
            let policy = policy();
            let mut bench = bench(20_000, model, |b| b.policy(policy));
            let events = bench.chat(20);
            assert_eq!(begun_and_done(&events), (0, 0), "{input} and {output}");
            bench.assert_sound();
        }
    }
}

#[test]
fn a_count_at_the_edge_of_the_window_with_nothing_to_compact_refuses_no_request() {
    for input in [19_000, 19_980, 19_999] {
        let model = Played::new(move |_| counted("Well.", Usage::new(input, 1)));
        let policy = policy();
        let mut bench = bench(20_000, model, |b| b.policy(policy));
        // The thread is too short for any strategy to remove something.
        let events = bench.chat(4);
        assert_eq!(begun_and_done(&events).1, 0, "{:?}", compactions(&events));
        bench.assert_sound();
    }
}

#[test]
fn a_window_smaller_than_assumed_is_learned_from_the_refusal() {
    let refused = Arc::new(AtomicU64::default());
    let count = refused.clone();
    let model = Played::new(move |request| {
        if ByteEstimate::TRIGGER.request(request) > 6_000 {
            count.fetch_add(1, Ordering::Relaxed);
            return overflow(Some(6_000));
        }
        chats(request)
    });
    // A refused request is too long for a summarizer that reads it in one call, too.
    let mut bench = bench(200_000, model, |b| b);
    let events = bench.chat(100);
    assert_eq!(refused.load(Ordering::Relaxed), 1, "once, and never again");
    assert!(begun_and_done(&events).1 >= 2);
    assert_eq!(reasons(&events)[..2], [CompactionReason::Overflow, CompactionReason::Threshold]);
    bench.assert_sound();
}

// A second compaction directly after the first.
