//! The worker under a real engine: kills during turns and compactions, errors, two messages at
//! once.
//!
//! The tests start an engine from npm. If none can be started they are skipped with a line that
//! gives the reason, unless `THREADFOLD_REQUIRE_RESTATE` is set. `THREADFOLD_KILLS` is the number
//! of kills, `THREADFOLD_SEED` decides their moments.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
)]

mod support;

use std::{collections::HashSet, env, time::Duration};

use durable::service::{Answered, Call, Service};
use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use support::{DELAY, bench, bench_with, until};
use threadfold::{EventLog, Message, Role, legality, log::Event, message::ToolResult};

/// The messages of a thread, in order.
#[derive(Debug, PartialEq)]
enum Said {
    Answer(Message),
    Result(ToolResult),
}

/// A kill: the number of calls that had arrived, and the keys of the calls whose results the engine
/// had.
struct Kill {
    calls: usize,
    acknowledged: HashSet<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_repeats_only_the_call_that_was_in_flight() {
    let Some(mut bench) = bench().await else { return };
    let variable = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (most, seed) = (variable("THREADFOLD_KILLS").unwrap_or(10), variable("THREADFOLD_SEED"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.unwrap_or(7));
    let (mut kills, mut turns) = (Vec::new(), 0);
    while turns == 0 || (kills.len() as u64) < most {
        let turn = tokio::spawn(bench.say("killed", "Read 40 parts."));
        while !turn.is_finished() && (kills.len() as u64) < most {
            // Wait until the worker works again. Every second worker dies right after an answer,
            // every third one in a compaction.
            let before = kills.last().map_or(0, |kill: &Kill| kill.calls);
            until(|| turn.is_finished() || bench.service.progress().0 > before).await;
            tokio::time::sleep(Duration::from_millis(random.next_u64() % 400)).await;
            if kills.len() % 3 == 2 {
                let compacts = || bench.service.latest().is_some_and(|key| is_of_compaction(&key));
                until(|| turn.is_finished() || compacts()).await;
            }
            if kills.len().is_multiple_of(2) {
                let answered = bench.service.progress().1;
                until(|| turn.is_finished() || bench.service.progress().1 > answered).await;
            }
            if turn.is_finished() {
                break;
            }
            bench.worker.kill();
            let calls = bench.service.calls().len();
            kills.push(Kill { calls, acknowledged: bench.acknowledged().await });
            bench.worker.start();
        }
        until(|| turn.is_finished()).await;
        let answer = turn.await.unwrap().unwrap();
        assert!(answer.starts_with("Round 41 "), "{answer}");
        turns += 1;
    }
    let calls = bench.service.calls();
    let asked = asked_once_each(&calls, &kills);
    let log = bench.log("killed").await;
    check_log(&log, &asked, turns);
    report(&log, &calls, &asked, &kills);
}

/// Returns the calls grouped by key. Each call is repeated until it is answered and acknowledged,
/// and never after that.
fn asked_once_each<'c>(calls: &'c [Call], kills: &[Kill]) -> Vec<&'c [Call]> {
    let asked: Vec<&[Call]> = calls.chunk_by(|one, next| one.key == next.key).collect();
    // The worker makes the next call only after the engine has acknowledged the previous one.
    let keys: HashSet<&str> = asked.iter().map(|calls| calls[0].key.as_str()).collect();
    assert_eq!(keys.len(), asked.len(), "a call was repeated after it was acknowledged");
    for kill in kills {
        let later = calls[kill.calls..].iter().find(|call| kill.acknowledged.contains(&call.key));
        assert!(later.is_none(), "the engine had this before the kill: {later:?}");
    }
    let repeated = calls.len() - asked.len();
    assert!(repeated <= kills.len(), "{repeated} calls were repeated by {} kills", kills.len());
    asked
}

/// Checks that the log holds each answer that counts once, in order, and that the thread is legal.
fn check_log(log: &EventLog, asked: &[&[Call]], turns: usize) {
    let counted = asked.iter().filter_map(|calls| match calls.last()?.answer.as_ref() {
        Some(Answered::Answer(turn)) => Some(Said::Answer(turn.as_ref().unwrap().message.clone())),
        Some(Answered::Result(result)) => Some(Said::Result(result.clone())),
        Some(Answered::Summary) => None,
        None => panic!("never answered: {:?}", calls[0].key),
    });
    let counted: Vec<Said> = counted.collect();
    assert_eq!(said(log), counted);
    let typed = appended(log).filter(|message| message.is_typed()).count();
    assert_eq!(typed, turns, "each text of the user is there once");

    let thread = log.replay();
    assert_eq!(legality::violations(&thread), []);
    assert_eq!(legality::open_calls(&thread), [] as [&str; 0], "every call has its result");
    let violations = asked.iter().flat_map(|calls| calls.iter()).map(|call| call.violations);
    assert_eq!(violations.sum::<usize>(), 0, "every request was legal");
    // The replay of the log equals the thread that the worker held.
    let last = asked.last().unwrap().last().unwrap();
    assert_eq!(thread.split_last().unwrap().1, last.messages);
    let failed =
        log.events().iter().any(|logged| matches!(logged.event, Event::CompactionFailed(_)));
    assert!(!failed && log.standing().count() >= turns, "every turn is compacted at least once");
}

fn appended(log: &EventLog) -> impl Iterator<Item = &Message> {
    log.events().iter().filter_map(|logged| {
        if let Event::MessageAppended(message) = &logged.event { Some(message) } else { None }
    })
}

fn said(log: &EventLog) -> Vec<Said> {
    let mut said = Vec::new();
    for message in appended(log).filter(|message| !message.is_typed()) {
        match message.role {
            Role::Assistant => said.push(Said::Answer(message.clone())),
            Role::User | Role::System => {
                said.extend(message.tool_results().cloned().map(Said::Result))
            }
        }
    }
    said
}

fn report(log: &EventLog, calls: &[Call], asked: &[&[Call]], kills: &[Kill]) {
    let answered = calls.iter().filter(|call| call.answer.is_some()).count();
    let latest = kills.iter().filter_map(|kill| calls.get(kill.calls.checked_sub(1)?));
    let compacting = latest.filter(|call| is_of_compaction(&call.key)).count();
    println!(
        "{} kills, {compacting} of them in a compaction; {} steps in {} calls: {} repeated because they \
         were in flight at a kill, {} of these had been answered but not acknowledged; {} compactions",
        kills.len(),
        asked.len(),
        calls.len(),
        calls.len() - asked.len(),
        answered - asked.len(),
        log.standing().count(),
    );
    assert!(compacting > 0, "no kill was in a compaction");
}

fn is_of_compaction(key: &str) -> bool {
    key.contains("/compaction/")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_turn_is_logged_and_the_next_one_works() {
    let Some(bench) = bench().await else { return };
    assert!(bench.say("refused", " ").await.unwrap_err().contains("the text is blank"));
    let error = bench.say("refused", "Read on.").await.unwrap_err();
    assert!(error.contains("refused: how many parts?"), "{error}");
    let answer = bench.say("refused", "Read 2 parts.").await.unwrap();
    assert!(answer.starts_with("Round 3 "), "{answer}");
    let log = bench.log("refused").await;
    let typed: Vec<&Message> = appended(&log).filter(|message| message.is_typed()).collect();
    assert_eq!(typed, [&Message::user("Read on."), &Message::user("Read 2 parts.")]);
    assert_eq!(legality::violations(&log.replay()), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_messages_become_sequential_turns() {
    let Some(bench) = bench().await else { return };
    let (one, two) =
        tokio::join!(bench.say("both", "Read 2 parts."), bench.say("both", "Read 3 parts."));
    assert!(one.unwrap().starts_with("Round 3 ") && two.unwrap().starts_with("Round 4 "));
    let log = bench.log("both").await;
    let results = said(&log).iter().filter(|said| matches!(said, Said::Result(_))).count();
    assert_eq!((said(&log).len() - results, results), (7, 8));
    assert_eq!(legality::violations(&log.replay()), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_turn_leaves_no_call_open() {
    let Some(bench) = bench().await else { return };
    // The third answer is the result of the second of two calls.
    bench.cancel("cancelled", "Read 40 parts.", 2).await;
    let answer = bench.say("cancelled", "Read 2 parts.").await.unwrap();
    assert!(answer.starts_with("Round "), "{answer}");
    let log = bench.log("cancelled").await;
    let cancelled = |said: &Said| matches!(said, Said::Result(result) if result.is_error);
    assert!(said(&log).iter().any(cancelled));
    assert_eq!(legality::violations(&log.replay()), []);
    assert!(bench.service.calls().iter().all(|call| call.violations == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_refused_as_too_long_is_compacted_and_sent_again() {
    // The real window is smaller than the worker believes.
    let Some(bench) = bench_with(Service::new(DELAY).with_window(4_000)).await else { return };
    let answer = bench.say("long", "Read 20 parts.").await.unwrap();
    assert!(answer.starts_with("Round 21 "), "{answer}");
    let calls = bench.service.calls();
    let refused = calls.iter().filter(|call| matches!(call.answer, Some(Answered::Answer(Err(_)))));
    let log = bench.log("long").await;
    assert!(refused.count() > 0 && log.standing().count() > 0);
    assert_eq!(legality::violations(&log.replay()), []);
}
