//! Strategies that degrade unnoticed, and caches lost to small edits.

use super::*;

#[test]
fn the_rung_that_made_the_plan_is_reported_and_logged() {
    let broken = Played::new(chats).summing_up(|_| fails(ModelErrorKind::Other));
    for (model, did_it) in [(Played::new(chats), "summarize"), (broken, "digest")] {
        let rungs: [Arc<dyn CompactionStrategy>; 3] = [
            Arc::new(summarize()),
            Arc::new(TrimToolResults::default()),
            Arc::new(Digest::default()),
        ];
        let mut bench = bench(9_000, model, |b| b.strategy(Arc::new(Ladder::new(rungs))));
        let reported = compactions(&bench.chat(90));
        let records = bench.records();
        assert!(!records.is_empty());
        let rungs: Vec<_> = reported
            .into_iter()
            .filter_map(|event| match event {
                CompactionEvent::Completed { id, rungs, .. } => Some((id, rungs)),
                _ => None,
            })
            .collect();
        let logged: Vec<_> = records.into_iter().map(|record| (record.id, record.rungs)).collect();
        assert_eq!(rungs, logged);
        for (_, rungs) in rungs {
            let last = rungs.last().unwrap();
            assert_eq!((last.strategy.as_str(), last.failure.as_ref()), (did_it, None));
            let failed = &rungs[..rungs.len() - 1];
            assert!(failed.iter().all(|rung| rung.failure.is_some()));
        }
    }
}

#[test]
fn a_blank_summary_is_an_error_that_is_reported_and_logged() {
    let strategies: [Arc<dyn CompactionStrategy>; 3] = [
        Arc::new(summarize()),
        Arc::new(Chunked::default()),
        Arc::new(Rolling { keep_recent: 4, ..Rolling::default() }),
    ];
    for strategy in strategies {
        for blank in [Scripted::Blank, Scripted::Empty] {
            let name = strategy.name().to_owned();
            let model = Played::new(chats).summing_up(move |request| {
                let answer = answer_of(ScriptedModel::repeating([blank.clone()]), request);
                answer.map_or_else(Scripted::Error, Scripted::Answer)
            });
            let mut bench = bench(20_000, model, |b| b.strategy(strategy.clone()));
            bench.chat(12);
            let before = bench.session.messages().clone();
            let reported = compactions(&bench.events("/compact"));
            let Some(CompactionEvent::Failed { error, .. }) = reported.last() else {
                panic!("{name}: {reported:?}")
            };
            assert_eq!(*bench.session.messages(), before, "{name}");
            let logged =
                bench.session.log().events().iter().rev().find_map(|logged| match &logged.event {
                    Event::CompactionFailed(failure) => Some(failure.error.clone()),
                    _ => None,
                });
            assert_eq!(logged.as_ref(), Some(error), "{name}");
        }
    }
}

#[test]
fn an_empty_answer_for_a_batch_leaves_an_extract_and_a_note() {
    let sums = AtomicU64::default();
    let model = Played::new(chats).summing_up(move |request| {
        // The second batch comes back empty.
        match sums.fetch_add(1, Ordering::Relaxed) {
            1 => "\n".into(),
            _ => answer_of(ExtractiveModel, request).map_or_else(Scripted::Error, Scripted::Answer),
        }
    });
    let strategy = Rolling { keep_recent: 4, chunk_messages: 10, ..Rolling::default() };
    let mut bench = bench(20_000, model, |b| b.strategy(Arc::new(strategy)));
    bench.chat(20);
    let reported = compactions(&bench.events("/compact"));
    let Some(CompactionEvent::Completed { report, .. }) = reported.last() else {
        panic!("{reported:?}")
    };
    let note =
        "summarised without a model: chunk 2 of 4 (the summary was still blank after chunk 2)";
    assert_eq!(report.notes[..], [note]);
    let batches = bench.session.log().batches().unwrap();
    let is_extract = |text: &str| text.starts_with("(An extract: no model summarised this.)");
    let extracts: Vec<bool> = batches.iter().map(|batch| is_extract(&batch.text)).collect();
    assert_eq!(extracts, [false, true, false, false]);
    bench.assert_sound();
}

// Caches.

#[test]
fn below_the_threshold_no_message_is_changed() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(|request| {
            if request.messages.last().unwrap().is_typed() {
                calls(&[(1, 60)])
            } else {
                chats(request)
            }
        });
        let policy = AutoPolicy { after_turn: true, ..policy() };
        let mut bench =
            bench(100_000, model, |b| b.strategy(strategy).policy(policy).reminder("Be short."));
        let events = bench.chat(40);
        assert_eq!(begun_and_done(&events), (0, 0), "{name}");
        let asked = bench.model.asked();
        for (one, next) in asked.iter().zip(asked.iter().skip(1)) {
            assert!(one.messages.len() < next.messages.len(), "{name}");
            let same = one.messages.iter().zip(next.messages.iter()).all(|(a, b)| a.ptr_eq(b));
            assert!(
                same,
                "{name}: the messages of an earlier request are unchanged in the next one"
            );
            assert_eq!((&one.system, &one.tools), (&next.system, &next.tools), "{name}");
        }
    }
}

#[test]
fn crossing_the_threshold_twice_without_growth_causes_one_compaction() {
    // From the threshold on every turn is over it; about ten clock readings make one turn.
    let over = AtomicBool::default();
    let model = Played::new(move |request| {
        let tokens = ByteEstimate::TRIGGER.request(request);
        let is_over = over.fetch_or(request.messages.len() > 8, Ordering::Relaxed);
        counted("Well.", Usage::new(if is_over { 9_000 } else { tokens }, 10))
    });
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench = timed(10_000, 100, model, |b| b.strategy(Arc::new(keep)));
    let events = bench.chat(40);
    let at: Vec<u64> = compactions(&events)
        .into_iter()
        .filter_map(|event| match event {
            CompactionEvent::Completed { at, .. } => Some(at.0),
            _ => None,
        })
        .collect();
    assert_eq!(at.len(), 1, "40 turns are {at:?}");
    bench.assert_sound();
    let mut slow = timed(10_000, 20_000, Played::new(chats), |b| b.strategy(Arc::new(keep)));
    let events = slow.chat(150);
    assert!(begun_and_done(&events).1 >= 2, "after growth it may come again");
}

#[test]
fn messages_before_the_first_edit_are_sent_byte_for_byte_as_before() {
    let model = Played::new(|request| {
        // Tools are used only late.
        let typed = request.messages.last().unwrap().is_typed();
        if typed && request.messages.len() > 24 { calls(&[(1, 60)]) } else { chats(request) }
    });
    let strategy = Arc::new(TrimToolResults::default());
    let policy = AutoPolicy { enabled: false, ..AutoPolicy::default() };
    let mut bench = bench(100_000, model, |b| b.strategy(strategy).policy(policy));
    bench.chat(40);
    let before = bench.last_asked();
    assert_eq!(begun_and_done(&bench.events("/compact")), (1, 1));
    bench.say("Go on.").unwrap();
    let after = bench.model.asked().into_iter().find(|r| typed("Go on.", &r.messages)).unwrap();
    let first = bench.records()[0].plan.first_touched();
    assert!(first >= 24, "{first}");
    let shared = before.messages.iter().zip(after.messages.iter()).take(first);
    assert!(
        shared.clone().count() == first && shared.clone().all(|(one, other)| one.ptr_eq(other))
    );
    let body = |request: &Request| {
        Dialect::Anthropic.encode(request, &EncodeOptions::default()).body.as_str().to_owned()
    };
    let (before, after) = (body(&before), body(&after));
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let messages = shared.map(|(message, _)| texts(std::slice::from_ref(message)).len());
    assert!(same > messages.sum(), "{same} bytes are the same");
}

// Unattended runs.
