//! When compactions run: normally by the soft trigger, and by the hard check only as a fallback.

use std::sync::Arc;

use threadfold::{
    Message,
    message::CompactionReason,
    session::{SessionError, SessionEvent},
};
use threadfold_testing::TestClock;

use super::provider::{Provider, Read, lines, reading_rounds, reasons, tokens, unreported};
use crate::support::bench::events;

const WINDOW: u64 = 100_000;

/// The percentage of compactions that the soft trigger started, and their number.
fn soft(reported: &[Result<SessionEvent, SessionError>]) -> (usize, usize) {
    let reasons = reasons(reported);
    let soft = reasons.iter().filter(|reason| **reason == CompactionReason::Threshold).count();
    (soft * 100 / reasons.len().max(1), reasons.len())
}

#[test]
fn in_a_fast_loop_no_request_is_far_over_the_threshold() {
    for step in [0, 10] {
        let provider = Provider::new(|_, place| reading_rounds(place, 200));
        let mut session = provider.session(Some(WINDOW), |builder| {
            let builder = builder.clock(Arc::new(TestClock::ticking(0, step))).max_rounds(300);
            builder.tool(Arc::new(Read(WINDOW * 6 / 100)))
        });
        let reported = events(&mut session, "Read it all.");
        assert!(reported.iter().all(Result::is_ok), "{:?}", reported.last());
        let fullest = provider.conversation().iter().map(tokens).max().unwrap();
        assert!(fullest <= WINDOW * 88 / 100, "{step} ms: {} %", fullest * 100 / WINDOW);
        let (share, count) = soft(&reported);
        assert!(share >= 90 && count > 10, "{step} ms: {share} % of {count}");
        assert_eq!(unreported(&reported), Vec::<String>::new());
    }
}

#[test]
fn in_a_long_session_the_soft_trigger_starts_nearly_all_compactions() {
    for (step, rounds, answer) in [(0, 0, 3_000), (500, 2, 300), (20_000, 1, 2_000), (10, 4, 50)] {
        let provider = Provider::new(move |_, place| match reading_rounds(place, rounds) {
            call if call.tool_uses().next().is_some() => call,
            _ => Message::assistant(lines(answer)),
        });
        let mut session = provider.session(Some(WINDOW), |builder| {
            builder.clock(Arc::new(TestClock::ticking(0, step))).tool(Arc::new(Read(4_000)))
        });
        let mut reported = Vec::new();
        for turn in 0..150 {
            reported.extend(events(&mut session, &format!("Turn {turn}. {}", lines(200))));
        }
        assert!(reported.iter().all(Result::is_ok));
        let (share, count) = soft(&reported);
        assert!(share >= 90 && count > 5, "{rounds} calls a turn: {share} % of {count}");
        assert_eq!(provider.fault(WINDOW), None);
    }
}
