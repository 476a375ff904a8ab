//! When a thread is compacted: the boundaries under `testdata/auto/`, and properties that hold in
//! any order.
//!
//! A case is `--- policy` in JSON, `--- divisor` (the characters per token in the sizes of its
//! rows; 1 if the provider counts), `--- compares` (`at least` or `more than`), `--- rows`, each
//! for a machine of its own, and `--- script`, lines for one machine, which begin with the second.
//! A size is in characters and rounded up to tokens; one that ends with `t` is in tokens, and so
//! are windows, limits and reported counts. A compaction is expected with its target, and after
//! `up to` with its limit; a row `requested` expects only the target.

use std::collections::HashMap;

use proptest::{option, prelude::*, sample::select};
use threadfold::{
    ContextWindow,
    auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure, Refusal, Threshold},
    message::{CompactionReason, Timestamp},
};
use threadfold_testing::shared::cases;

use crate::support::tries::tries;

#[test]
fn the_trigger_passes_its_boundaries() {
    let mut wrong = Vec::new();
    for case in cases::read("testdata/auto").unwrap() {
        let policy: AutoPolicy = serde_json::from_str(case.section("policy").unwrap()).unwrap();
        let divisor: u64 = case.section("divisor").unwrap().trim().parse().unwrap();
        let strict = matches!(policy.threshold, Threshold::MessagesOver(_));
        let compares = if strict { "more than\n" } else { "at least\n" };
        assert_eq!(case.section("compares"), Some(compares), "{}", case.name);
        let mut count = 0;
        for row in case.sections_of("rows").flat_map(|(_, rows)| rows.lines()) {
            let mut auto = AutoCompactor::new(policy).unwrap();
            let found = said(&mut auto, 0, row, divisor);
            if found != expected(row) {
                wrong.push(format!("{}: {row}: found {found}", case.name));
            }
            count += 1;
        }
        for (name, script) in case.sections_of("script") {
            let mut auto = AutoCompactor::new(policy).unwrap();
            for line in script.lines() {
                let (second, row) = line.split_once(' ').unwrap();
                let found = said(&mut auto, second.parse().unwrap(), row, divisor);
                if found != expected(row) {
                    wrong.push(format!("{}, {name}: {line}: found {found}", case.name));
                }
                count += 1;
            }
        }
        assert!(count > 0, "{} checks nothing", case.name);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn expected(row: &str) -> String {
    row.split_once(" -> ").unwrap().1.to_owned()
}

fn said(auto: &mut AutoCompactor, second: u64, row: &str, divisor: u64) -> String {
    let now = Timestamp(second * 1_000);
    let (row_input, _) = row.split_once(" -> ").unwrap();
    if let Some(sizes) = row_input.strip_prefix("requested ") {
        return format!("target {}", shown(auto.requested_target(pressure(sizes, divisor))));
    }
    match auto.handle(now, input(row_input, divisor)) {
        None => "nothing".to_owned(),
        Some(Output::Compact { reason, target, limit }) => {
            let limit = row.contains(" up to ").then(|| format!(" up to {}", shown(limit)));
            format!("compact {} {}{}", name(&reason), shown(target), limit.unwrap_or_default())
        }
        Some(Output::Suspended { tokens, threshold }) => {
            format!("suspended {tokens} {threshold}")
        }
        Some(Output::Paused { failures, until }) => {
            format!("paused {failures} {}", until.0 / 1_000)
        }
        Some(Output::UnknownWindow) => "unknown window".to_owned(),
        Some(Output::ShortAnswer { tokens, output, window }) => {
            format!("short answer {tokens} {output} {window}")
        }
        Some(Output::SendAgain) => "send again".to_owned(),
        Some(Output::TakeBack) => "take back".to_owned(),
        Some(Output::CannotFit { floor, tokens, limit }) => {
            format!("cannot fit {floor} {tokens} {limit}")
        }
        Some(other) => panic!("{other:?}"),
    }
}

fn shown(tokens: Option<u64>) -> String {
    tokens.map_or("none".to_owned(), |it| it.to_string())
}

fn name(reason: &CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Threshold => "threshold",
        CompactionReason::Overflow => "overflow",
        CompactionReason::ModelSwitch => "model_switch",
        CompactionReason::Manual { .. } => "manual",
        _ => "other",
    }
}

fn input(row: &str, divisor: u64) -> Input {
    let (kind, rest) = row.split_once(' ').unwrap_or((row, ""));
    let pressure = || pressure(rest, divisor);
    let sizes = sizes(rest);
    let plain = |name| sizes.get(name).map(|size| size.parse::<u64>().unwrap());
    let reason = || match rest {
        "threshold" => CompactionReason::Threshold,
        "overflow" => CompactionReason::Overflow,
        "model_switch" => CompactionReason::ModelSwitch,
        "manual" => CompactionReason::Manual { instructions: None },
        _ => panic!("{row}"),
    };
    match kind {
        "send" => Input::BeforeRequest(pressure()),
        "ended" => Input::TurnEnded(pressure()),
        "overflowed" => {
            let (limit, output) = (plain("limit"), plain("reserved"));
            let refusal = Refusal { limit, found: plain("found"), output };
            Input::Overflowed { pressure: pressure(), refusal }
        }
        "compacted" => Input::Compacted { reason: reason() },
        "failed" => Input::Failed { reason: reason() },
        _ => panic!("{row}"),
    }
}

fn sizes(rest: &str) -> HashMap<&str, &str> {
    rest.split_whitespace().filter_map(|word| word.split_once('=')).collect()
}

fn pressure(rest: &str, divisor: u64) -> Pressure {
    let sizes = sizes(rest);
    let known = [
        "window", "reported", "since", "thread", "overhead", "pending", "output", "newest",
        "limit", "reserved", "found", "cuttable", "said",
    ];
    assert!(sizes.keys().all(|size| known.contains(size)), "{rest}");
    let plain = |name| sizes.get(name).map(|size| size.parse::<u64>().unwrap());
    let size = |name| match sizes.get(name).map(|size| (size.strip_suffix('t'), size)) {
        None => 0,
        Some((Some(tokens), _)) => tokens.parse().unwrap(),
        Some((None, characters)) => characters.parse::<u64>().unwrap().div_ceil(divisor),
    };
    Pressure {
        window: plain("window").map(ContextWindow::new),
        reported: plain("reported"),
        since: size("since"),
        thread: size("thread"),
        overhead: size("overhead"),
        pending: size("pending"),
        output: size("output"),
        newest: size("newest"),
        cuttable: size("cuttable"),
        said: size("said"),
        sum_rule: false,
    }
}

fn any_policy() -> impl Strategy<Value = AutoPolicy> {
    let threshold = prop_oneof![
        (0.0..=1.0).prop_map(Threshold::Fraction),
        (0_u64..300_000).prop_map(Threshold::Tokens),
        (0_u64..300_000).prop_map(Threshold::Remaining),
        (0.0..=1.0).prop_map(Threshold::MessagesOver),
    ];
    let target = prop_oneof![
        (0.0..=1.0).prop_map(Threshold::Fraction),
        (0_u64..300_000).prop_map(Threshold::Tokens),
    ];
    let usage = any::<bool>();
    let numbers = (0_u64..50_000, 0_u64..100_000, 0_u32..4, 0_u32..4);
    (any::<bool>(), any::<bool>(), threshold, target, usage, numbers).prop_map(
        |(enabled, after_turn, threshold, target, estimates_usage, numbers)| AutoPolicy {
            enabled,
            threshold,
            target,
            output_reserve: numbers.0,
            min_growth: numbers.1 as f64 / 100_000.0,
            estimates_usage,
            max_consecutive_failures: numbers.2,
            max_reactive: numbers.3,
            after_turn,
            ..AutoPolicy::default()
        },
    )
}

fn any_pressure() -> impl Strategy<Value = Pressure> {
    let window = option::weighted(0.9, select(vec![0, 1, 8_192, 100_000, 200_000, u64::MAX]));
    let size = || prop_oneof![4 => 0_u64..150_000, 1 => Just(0), 1 => Just(u64::MAX)];
    let part = || prop_oneof![8 => 0_u64..20_000, 1 => Just(u64::MAX)];
    let counts = (option::of(size()), part(), size(), part(), part(), 0.0..=1.0);
    (window, counts).prop_map(|(window, (reported, since, thread, overhead, pending, newest))| {
        Pressure {
            window: window.map(ContextWindow::new),
            reported,
            since,
            thread,
            overhead,
            pending,
            output: 0,
            newest: (thread as f64 * newest) as u64,
            cuttable: 0,
            said: 0,
            sum_rule: false,
        }
    })
}

fn any_input() -> impl Strategy<Value = Input> {
    let reason = || {
        select(vec![
            CompactionReason::Threshold,
            CompactionReason::Overflow,
            CompactionReason::ModelSwitch,
            CompactionReason::Manual { instructions: None },
            CompactionReason::AgentTool,
            CompactionReason::Background,
            CompactionReason::Idle,
        ])
    };
    let pressure = any_pressure;
    let limit = option::of(select(vec![0, 1, 50_000, 400_000, u64::MAX]));
    prop_oneof![
        8 => pressure().prop_map(Input::BeforeRequest),
        2 => pressure().prop_map(Input::TurnEnded),
        2 => (pressure(), limit).prop_map(|(pressure, limit)| Input::Overflowed {
            pressure, refusal: Refusal { limit, ..Refusal::default() }
        }),
        2 => reason().prop_map(|reason| Input::Compacted { reason }),
        2 => reason().prop_map(|reason| Input::Failed { reason }),
    ]
}

/// The pressure after a compaction to this target, before the provider counts again.
fn after(pressure: Pressure, target: u64) -> Pressure {
    Pressure { reported: None, since: 0, thread: target, ..pressure }
}

proptest! {
    #![proptest_config(tries(2_000))]

    #[test]
    fn for_every_input_a_request_is_finally_sent_or_refused(
        policy in any_policy(), inputs in prop::collection::vec(any_input(), 0..30),
        last in any_pressure(), limit in option::of(1_u64..300_000), fails in any::<bool>()
    ) {
        let mut auto = AutoCompactor::new(policy).unwrap();
        for (index, input) in inputs.into_iter().enumerate() {
            auto.handle(Timestamp((index as u64 * 7_919_000) % 100_000), input);
        }
        // The provider refuses every request, and no compaction removes anything.
        let mut asked = 0;
        let mut input = Input::BeforeRequest(last);
        loop {
            asked += 1;
            prop_assert!(asked < 20, "the machine asks for compactions without end");
            match auto.handle(Timestamp(50_000), input) {
                Some(Output::CannotFit { .. } | Output::TakeBack) => break,
                Some(Output::Compact { reason, .. }) => {
                    let answer =
                        if fails { Input::Failed { reason } } else { Input::Compacted { reason } };
                    auto.handle(Timestamp(50_000), answer);
                    input = Input::BeforeRequest(last);
                }
                _ => {
                    let refusal = Refusal { limit, ..Refusal::default() };
                    input = Input::Overflowed { pressure: last, refusal };
                }
            }
        }
    }

    #[test]
    fn no_request_is_refused_for_a_count_alone(
        policy in any_policy(), inputs in prop::collection::vec(any_input(), 0..30),
        last in any_pressure(), spare in 0_u64..50_000
    ) {
        // By its estimate it fits.
        let thread = last.thread.clamp(1, 150_000);
        let (overhead, pending) = (last.overhead.min(20_000), last.pending.min(20_000));
        let last = Pressure { thread, overhead, pending, newest: last.newest.min(thread), ..last };
        let window = ContextWindow::new(last.estimate() + policy.output_reserve + spare);
        let last = Pressure { window: Some(window), ..last };
        let mut auto = AutoCompactor::new(policy).unwrap();
        let refused = |input: &Input| matches!(input, Input::Overflowed { .. });
        for (index, input) in inputs.into_iter().filter(|input| !refused(input)).enumerate() {
            auto.handle(Timestamp((index as u64 * 7_919_000) % 100_000), input);
        }
        for _ in 0..10 {
            match auto.handle(Timestamp(50_000), Input::BeforeRequest(last)) {
                Some(Output::Compact { reason, .. }) => {
                    auto.handle(Timestamp(50_000), Input::Failed { reason });
                }
                output => {
                    let through = matches!(
                        output,
                        None | Some(Output::Suspended { .. } | Output::Paused { .. } | Output::UnknownWindow | Output::ShortAnswer { .. })
                    );
                    prop_assert!(through, "{output:?}");
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "it is never let through");
    }

    #[test]
    fn a_target_is_reachable_fits_the_window_and_silences_the_trigger(
        policy in any_policy(), pressure in any_pressure()
    ) {
        let policy = AutoPolicy { estimates_usage: true, ..policy };
        let mut auto = AutoCompactor::new(policy).unwrap();
        let output = auto.handle(Timestamp(0), Input::BeforeRequest(pressure));
        let Some(Output::Compact { reason, target: Some(target), limit }) = output else {
            return Ok(());
        };
        prop_assert!(limit.is_some_and(|limit| target <= limit), "{target} is over {limit:?}");
        prop_assert!(pressure.newest <= target, "{target} is less than the newest turn");
        let after = after(pressure, target);
        let window = pressure.window.unwrap().tokens();
        let room = window.saturating_sub(policy.output_reserve);
        // A reserve alone makes no request impossible.
        let needed = pressure.floor().saturating_add(window / 16);
        let room = if needed > room { window } else { room };
        prop_assert!(after.tokens() <= room, "{target} does not fit");
        if reason == CompactionReason::Threshold {
            let again = AutoCompactor::new(policy).unwrap()
                .handle(Timestamp(0), Input::BeforeRequest(after));
            prop_assert!(matches!(again, None | Some(Output::ShortAnswer { .. })), "{:?}", again);
        }
    }
}
