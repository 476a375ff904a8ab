//! Providers that refuse a request for its length, and answers that the window cuts off.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use threadfold::{
    Answer, Message, Request, TokenCounter, Usage,
    auto::AutoPolicy,
    log::Event,
    message::{CompactionReason, ModelError, StopReason},
    strategy::Digest,
    testing::Scripted,
    tokens::ByteEstimate,
    wire::classify_error,
};

use super::provider::{Provider, Read, lines, reading_rounds, reasons, tokens, unreported};
use crate::support::bench::{events, say, within};

const WINDOW: u64 = 200_000;

/// Anthropic's error if prompt and reserved output together do not fit.
fn with_output(input: u64, output: u64) -> Option<ModelError> {
    let body = format!(
        "{{\"type\":\"error\",\"error\":{{\"type\":\"invalid_request_error\",\"message\":\"input \
         length and `max_tokens` exceed context limit: {input} + {output} > {WINDOW}, decrease \
         input length or `max_tokens` and try again\"}}}}"
    );
    (input + output > WINDOW).then(|| classify_error(400, body.as_bytes()))
}

#[test]
fn the_tokens_reserved_for_the_answer_are_learned_from_the_refusal() {
    for reserve in [WINDOW / 5, 64_000] {
        let provider = Provider::new(|_, place| reading_rounds(place, 1))
            .refusing(move |size| with_output(size, reserve));
        let mut session =
            provider.session(Some(WINDOW), |builder| builder.tool(Arc::new(Read(9_000))));
        let mut reported = Vec::new();
        for turn in 0..150 {
            reported.extend(events(&mut session, &format!("Turn {turn}.")));
        }
        let errors: Vec<_> = reported.iter().filter_map(|event| event.as_ref().err()).collect();
        assert!(errors.is_empty(), "{reserve}: {errors:?}");
        assert!(provider.refused() <= 2, "{reserve}: {} refusals", provider.refused());
        assert!(reasons(&reported).len() > 5, "{reserve}: {:?}", reasons(&reported));
        assert_eq!(unreported(&reported), Vec::<String>::new());
    }
}

#[test]
fn an_answer_cut_by_the_window_is_requested_again_after_a_compaction() {
    let cut = Message::assistant("Half an");
    let spent = Usage::new(14_000, 77);
    let cut = Answer::new(cut, StopReason::ContextWindowExceeded, Some(spent));
    let past: Vec<Scripted> = (0..4).map(|_| Scripted::from(lines(2_000))).collect();
    let answers = [Scripted::from(cut), "They read the log.".into(), "The whole answer.".into()];
    let mut bench = within(20_000, past.into_iter().chain(answers), |builder| builder);
    for turn in 0..4 {
        say(&mut bench.session, format!("Part {turn}, please.")).unwrap();
    }
    let asked = bench.model.requests().len();
    let reply = say(&mut bench.session, "And what follows?").unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.stop_reason),
        ("The whole answer.", Some(StopReason::EndTurn))
    );
    let requests = bench.model.requests();
    let (first, again) = (&requests[asked], requests.last().unwrap());
    assert!(tokens(again) < tokens(first), "{} and {}", tokens(first), tokens(again));
    assert!(!bench.last_sent().contains("Half an"));
    // Nobody reads the first answer, but it is paid for.
    let log = bench.session.log();
    let billed = log.events().iter().filter_map(|logged| match &logged.event {
        Event::Spent { usage } => Some(*usage),
        _ => None,
    });
    assert_eq!(billed.collect::<Vec<_>>(), [spent]);
    assert!(log.billed().total().output >= 77);
    let standing: Vec<_> =
        bench.session.log().standing().map(|record| record.reason.clone()).collect();
    assert_eq!(standing, [CompactionReason::Overflow]);
    bench.assert_whole();
}

#[test]
fn a_turn_is_completed_although_each_of_its_requests_is_refused_once() {
    const SMALL: u64 = 20_000;
    const ROUNDS: usize = 6;
    // The provider has more tokens than the estimate, and does not report them.
    let counted = |size: u64| size * 5 / 2;
    let refusals = Arc::new(AtomicU64::new(0));
    let provider = Provider::new(|_, place| reading_rounds(place, ROUNDS))
        .without_usage()
        .refusing({
            let refusals = Arc::clone(&refusals);
            move |size| {
                let (found, limit) = (counted(size), SMALL);
                let body = format!(
                    "{{\"error\":{{\"message\":\"prompt is too long: {found} tokens > {limit} maximum\"}}}}"
                );
                let refused = found > limit;
                refusals.fetch_add(u64::from(refused), Ordering::Relaxed);
                refused.then(|| classify_error(400, body.as_bytes()))
            }
        });
    let mut session = provider.session(Some(SMALL), |builder| {
        builder.tool(Arc::new(Read(9_000))).policy(AutoPolicy::default())
    });
    assert_eq!(say(&mut session, "Read it all.").unwrap().text, "I read it.");
    assert!(refusals.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_text_that_nearly_fills_an_unknown_window_is_answered() {
    const SMALL: u64 = 12_000;
    for spare in [150, 200, 400] {
        let body = br#"{"error": {"message": "prompt is too long"}}"#;
        let provider = Provider::new(|_, _| Message::assistant(lines(1_500)))
            .refusing(|size| (size > SMALL).then(|| classify_error(400, body)));
        let digest = Arc::new(Digest::default());
        let mut session = provider.session(None, |builder| builder.strategy(digest));
        for turn in 0..4 {
            say(&mut session, format!("Part {turn}, please.")).unwrap();
        }
        let around = Request { messages: Arc::default(), ..provider.requests()[0].clone() };
        let most = SMALL - spare - tokens(&around);
        let text = "word ".repeat(most as usize * 3 / 5);
        assert!(ByteEstimate::TRIGGER.message(&Message::user(text.clone())).abs_diff(most) < 20);
        let sent = say(&mut session, text);
        assert!(sent.is_ok(), "{spare}: {sent:?}");
    }
}
