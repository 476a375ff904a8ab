//! Compactions in a loop, and second compactions directly after the first.

use super::*;

#[test]
fn compactions_that_do_not_lower_the_count_are_suspended_with_a_notice() {
    // A provider that always reports the same count.
    let model = Played::new(|_| counted("Well.", Usage::new(9_000, 10)));
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let policy = policy();
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(keep)).policy(policy));
    let events = bench.chat(30);
    assert_eq!(begun_and_done(&events), (1, 1), "the context never grows");
    assert_eq!(rests(&events), 1, "and observers get a notice");
    bench.assert_sound();
}

#[test]
fn a_system_prompt_over_the_threshold_causes_one_notice_and_no_compaction() {
    let policy = policy();
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let prompt = "Be very kind to everybody. ".repeat(900);
    let mut bench = bench(10_000, Played::new(|_| "Well.".into()), |b| {
        b.system(prompt).strategy(Arc::new(keep)).policy(policy)
    });
    let events = bench.chat(20);
    assert_eq!((begun_and_done(&events), rests(&events)), ((0, 0), 1));
    bench.assert_sound();
}

#[test]
fn a_summary_longer_than_its_source_is_not_requested_repeatedly() {
    let count = |request: &Request| if request.messages.len() < 20 { 500 } else { 9_000 };
    let model = Played::new(move |request| counted("Well.", Usage::new(count(request), 10)))
        .summing_up(|_| "word ".repeat(20_000).into());
    let strategy = Arc::new(summarize());
    let mut bench = bench(10_000, model, |b| b.strategy(strategy));
    let events = bench.chat(40);
    let (begun, done) = begun_and_done(&events);
    // Forty turns take some minutes of simulated time; each pause is twice as long as the one
    // before.
    assert!((3..=8).contains(&begun), "{begun} of 40: {:?}", ends(&events));
    assert_eq!((done, bench.model.summaries().len()), (0, begun));
    assert_eq!(bench.session.messages().len(), 80, "nothing has changed");
    assert!(rests(&events) >= 1);
    bench.assert_sound();
}

#[test]
fn a_request_that_the_strategy_cannot_make_fit_is_still_sent() {
    let store = Arc::<MemoryStore>::default();
    let mut before = opened(store.clone(), 100_000, 1_000, Played::new(chats), |b| b);
    before.chat(40);
    let model = Played::new(chats).summing_up(|_| " ".into());
    let strategy = Arc::new(Summarize { summary_tokens: 100, tokens: Some(800), ..summarize() });
    let mut bench = opened(store, 5_000, 1_000, model, |b| b.strategy(strategy));
    let events = bench.events("And now?");
    assert_eq!(begun_and_done(&events), (1, 1), "{events:?}");
    let tried: Vec<String> =
        bench.records()[0].rungs.iter().map(|rung| rung.strategy.to_string()).collect();
    assert_eq!(tried, ["summarize", "trim-tool-results", "digest"]);
    assert_eq!(bench.model.asked().len(), 1);
    assert!(typed("And now?", bench.session.messages()));
    bench.assert_sound();
}

// The request for the summary is too long.

#[test]
fn the_usage_of_the_summary_call_is_not_counted_for_the_thread() {
    let model = Played::new(chats).summing_up(|_| counted("They talked.", Usage::new(9_500, 400)));
    let policy = policy();
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(summarize())).policy(policy));
    bench.chat(12);
    let events = bench.events("/compact");
    assert_eq!(begun_and_done(&events), (1, 1));
    assert!(bench.session.context_tokens() < 2_000, "{}", bench.session.context_tokens());
    assert_eq!(begun_and_done(&bench.chat(3)), (0, 0));
    assert_eq!(bench.records()[0].usage, Usage::new(9_500, 400), "it is billed, and that is all");
}

#[test]
fn a_manual_compaction_is_not_followed_by_an_automatic_one() {
    let model = Played::new(|request| {
        let long = request.messages.len() > 14;
        let tokens = if long { 9_000 } else { ByteEstimate::TRIGGER.request(request) };
        counted("Well.", Usage::new(tokens, 10))
    });
    let policy = policy();
    let keep = KeepRecent { messages: 1, ..KeepRecent::default() };
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(keep)).policy(policy));
    bench.chat(8);
    assert!(bench.session.context_tokens() >= 8_000, "the next request would be over");
    assert_eq!(begun_and_done(&bench.events("/compact")), (1, 1));
    assert!(
        bench.session.context_tokens() < 1_000,
        "the count from before the compaction is dropped"
    );
    assert_eq!(begun_and_done(&bench.chat(5)), (0, 0));
    bench.assert_sound();
}

#[test]
fn a_thread_over_the_threshold_is_not_compacted_again_before_a_new_count() {
    // The tenth answer is counted as too much, then five are not counted at all.
    let answers = AtomicU64::default();
    let model = Played::new(move |_| {
        let tokens = match answers.fetch_add(1, Ordering::Relaxed) + 1 {
            10 | 16 => 9_000,
            11..=15 => 0,
            _ => 500,
        };
        counted("Well.", Usage::new(tokens, 0))
    });
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let policy = AutoPolicy::default();
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(keep)).policy(policy));
    let begun: Vec<usize> = (1..=20).map(|_| begun_and_done(&bench.chat(1)).0).collect();
    let at: Vec<usize> = (1..=20).filter(|turn| begun[turn - 1] > 0).collect();
    assert_eq!(at, [11, 17], "in these turns");
    bench.assert_sound();
}

// Calls and results.
