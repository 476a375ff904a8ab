//! The conformance suite for thread stores.

use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use threadfold::{
    log::{Event, LogId, LoggedEvent},
    message::{Json, Message, ThreadId, Timestamp},
    store::{Loaded, StoreError, ThreadStore},
};

use super::{
    cases::{Step, cases, outcome},
    law::{Law, Result, named, same},
};

/// Tests a store: appended events are loaded unchanged; appends that expect another length or do
/// not continue the log are refused and store nothing; threads are independent; exactly one of
/// several concurrent appends succeeds; deleted threads are gone. If the store keeps bases, it
/// keeps only a base of the stored log.
///
/// `make` is called once for each case and must return an empty store.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::store::MemoryStore;
/// use threadfold_testing::conformance;
///
/// block_on(conformance::store(|| Box::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn store(mut make: impl FnMut() -> Box<dyn ThreadStore>) -> Result<()> {
    for case in cases(CASES)? {
        let store = make();
        for step in case {
            let Some(found) = run(&*store, &step).await else { break };
            step.check(found)?;
        }
    }
    loads_big_events(&*make()).await?;
    one_writer_wins(&*make()).await
}

/// Tests stores whose writes fail: after a failed append a prefix of the log is stored, and appends
/// can continue from there.
///
/// `make` gets the index of a point of failure and returns an empty store that fails there, or
/// `None` after the last one. The suite appends one event, then three, and then the rest of these
/// three; so the second append should fail.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::store::MemoryStore;
/// use threadfold_testing::{faulty_store, conformance};
///
/// block_on(conformance::failing_store(|place| {
///     let faults = [None, Some(place)];
///     (place <= 3).then(|| Box::new(faulty_store(MemoryStore::default(), &faults)) as _)
/// }))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn failing_store(
    mut make: impl FnMut(usize) -> Option<Box<dyn ThreadStore>>,
) -> Result<()> {
    for point in 0.. {
        let Some(store) = make(point) else { break };
        leaves_prefix(&*store, point).await?;
    }
    Ok(())
}

const CASES: &str = include_str!("../../testdata/conformance/store.jsonl");

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// Appends the events with these numbers to a log with this id and length.
    Append(Option<LogId>, u64, Vec<u64>),
    /// Returns the number of stored events.
    Load,
    /// Returns the numbers of the events from this one on.
    LoadFrom(u64),
    List,
    Delete,
    /// Saves a base of this log and of this number of events.
    SaveBase(LogId, u64),
    LoadBase,
    LoadFacts(LogId, u64),
    /// Ends the case if the store keeps no bases.
    NeedsBases,
}

/// Returns the outcome of an operation; `None` if this store does not support the rest of the case.
async fn run(store: &dyn ThreadStore, step: &Step<Operation>) -> Option<Value> {
    let Step { thread, operation, .. } = step;
    Some(match operation {
        Operation::Append(log, len, seqs) => {
            let events = events(thread, seqs.iter().copied());
            outcome(store.append(thread, *log, *len, &events).await)
        }
        Operation::Load => stored(store, thread).await,
        Operation::LoadFrom(seq) => {
            let found = store.load_from(thread, *seq).await;
            outcome(found.map(|found| {
                let seqs: Vec<u64> = found.iter().map(|event| event.seq).collect();
                let is_same = found == events(thread, seqs.iter().copied());
                if is_same { json!(seqs) } else { format!("{found:?}").into() }
            }))
        }
        Operation::List => outcome(store.list().await),
        Operation::Delete => outcome(store.delete(thread).await),
        Operation::SaveBase(log, seq) => {
            let [base, facts] = ["base", "facts"].map(|text| format!("{text} {seq} of {log}"));
            outcome(store.save_base(thread, *log, *seq, &base, &facts).await)
        }
        Operation::LoadBase => outcome(store.load_base(thread).await),
        Operation::LoadFacts(log, seq) => outcome(store.load_facts(thread, *log, *seq).await),
        Operation::NeedsBases => match store.load_base(thread).await {
            Ok(None) => return None,
            kept => outcome(kept.map(drop)),
        },
    })
}

/// Returns the JSON of the number of stored events, or of the stored events themselves if they
/// differ from those of the suite.
pub(super) async fn stored(store: &dyn ThreadStore, thread: &ThreadId) -> Value {
    outcome(store.load(thread).await.map(|found| {
        let expected = (thread, &events(thread, 0..found.log.len())[..], None);
        let is_same = (found.log.thread_id(), found.log.events(), found.torn) == expected;
        if is_same { json!(found.log.len()) } else { format!("{found:?}").into() }
    }))
}

async fn loads_big_events(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::StoredComesBack);
    let text = "a\n\r\n\"\\\u{0}\u{2028}\u{1f600}".repeat(1 << 16);
    let events = [0, 1].map(|seq| said(seq, &text));
    let outcome = store.append(&thread, None, 0, &events).await;
    same(law, "two events of a million bytes", &Ok(()), &outcome)?;
    expect_stored(store, law, "two events of a million bytes", &thread, &events).await
}

async fn one_writer_wins(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::OneWriterWins);
    let mut kept: Vec<LoggedEvent> = Vec::new();
    for round in 0..8_u64 {
        let expected = kept.len() as u64;
        let batches = (0..8).map(|writer| {
            [0, 1].map(|index| notice(expected + index, format!("{writer} in round {round}")))
        });
        let batches: Vec<_> = batches.collect();
        let appends = batches.iter().map(|batch| store.append(&thread, None, expected, batch));
        let outcomes = join_all(appends).await;
        let mut winners = outcomes.iter().zip(&batches).filter(|(outcome, _)| outcome.is_ok());
        let (winner, others) = (winners.next(), winners.count());
        let input = format!("eight appends at {expected} at once");
        let Some((_, batch)) = winner.filter(|_| others == 0) else {
            return Err(law.breach(input, "one that is carried out", format!("{outcomes:?}")));
        };
        let lost = Err(StoreError::Conflict { expected, found: expected + 2 });
        let mut losers = outcomes.iter().filter(|outcome| outcome.is_err());
        losers.try_for_each(|outcome| same(law, &input, &lost, outcome))?;
        kept.extend_from_slice(batch);
        expect_stored(store, law, input, &thread, &kept).await?;
    }
    Ok(())
}

async fn leaves_prefix(store: &dyn ThreadStore, point: usize) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::FailureLeavesBeginning);
    let events = events(&thread, 0..4);
    let input = format!("failure {point}");
    // A store may have no point of failure in this append, so the append may succeed.
    for (from, size) in [(0, 1), (1, 3)] {
        let outcome = store.append(&thread, None, from as u64, part(&events, from, size)).await;
        let found = loaded(store, law, &input, &thread).await?.log;
        let (whole, found) = (from + size, found.events());
        let least = if outcome.is_ok() { whole } else { from };
        let beginning = found == part(&events, 0, found.len());
        if !beginning || !(least..=whole).contains(&found.len()) {
            let expected = format!("the first {least} to {whole} of {events:?}");
            return Err(law.breach(input, expected, format!("{found:?} after {outcome:?}")));
        }
        let rest = part(&events, found.len(), whole - found.len());
        if !rest.is_empty() {
            let outcome = store.append(&thread, None, found.len() as u64, rest).await;
            same(law, &input, &Ok(()), &outcome)?;
        }
    }
    expect_stored(store, law, input, &thread, &events).await
}

/// Checks the stored events of a thread.
async fn expect_stored(
    store: &dyn ThreadStore,
    law: Law,
    input: impl std::fmt::Display,
    thread: &ThreadId,
    events: &[LoggedEvent],
) -> Result<()> {
    let input = input.to_string();
    let found = loaded(store, law, &input, thread).await?;
    if (found.log.thread_id(), found.log.events(), found.torn) == (thread, events, None) {
        return Ok(());
    }
    Err(law.breach(input, format!("{thread}: {events:?}"), format!("{found:?}")))
}

async fn loaded(
    store: &dyn ThreadStore,
    law: Law,
    input: &str,
    thread: &ThreadId,
) -> Result<Loaded> {
    store.load(thread).await.map_err(|error| law.breach(input, "the log", error))
}

fn part(events: &[LoggedEvent], from: usize, size: usize) -> &[LoggedEvent] {
    let rest = events.get(from..).unwrap_or_default();
    rest.get(..size).unwrap_or(rest)
}

fn appended(seq: u64, event: Event) -> LoggedEvent {
    LoggedEvent { seq, at: Timestamp(1_709_164_799_042 + seq % 7), event }
}

fn notice(seq: u64, text: String) -> LoggedEvent {
    appended(seq, Event::LocalNotice { text: text.into() })
}

fn said(seq: u64, text: &str) -> LoggedEvent {
    appended(seq, Event::MessageAppended(Message::user(text)))
}

/// Returns the events of a thread with these numbers. A number and its thread determine an event.
pub(super) fn events(thread: &ThreadId, seqs: impl IntoIterator<Item = u64>) -> Vec<LoggedEvent> {
    seqs.into_iter().map(|seq| event(thread, seq)).collect()
}

fn event(thread: &ThreadId, seq: u64) -> LoggedEvent {
    let text = format!("event {seq} of {thread}");
    match seq % 6 {
        0 => said(seq, &text),
        1 => appended(seq, Event::MessageAppended(Message::assistant(text))),
        2 => parsed(seq, r#"{"painted":{"b":1.0,"a":[1e2,"\u00e4"]}}"#),
        3 => parsed(seq, r#""painted""#),
        4 => parsed(seq, r#"{"truncated":{"from":"all"}}"#),
        _ => {
            let data = Json::parse(r#"{"z":1.50,"a":null}"#).unwrap_or_default();
            appended(seq, Event::Host { kind: "approved".into(), data })
        }
    }
}

/// An event of an unknown kind, or a malformed one of a known kind.
fn parsed(seq: u64, event: &str) -> LoggedEvent {
    let line = format!(r#"{{"seq":{seq},"at":{seq},"event":{event}}}"#);
    serde_json::from_str(&line).unwrap_or_else(|error| notice(seq, error.to_string()))
}
