//! The conformance suite for thread stores.

use futures::future::join_all;

use super::law::{Law, Result, named, same};
use crate::{
    ledger::Ledger,
    log::{Event, EventLog, LogBase, LogId, LoggedEvent},
    message::{Json, Message, ThreadId, Timestamp},
    retention::Facts,
    store::{Loaded, StoreError, ThreadStore},
};

/// Tests a store: appended events are loaded unchanged; appends that expect another length or do
/// not continue the log are refused and store nothing; threads are independent; of concurrent
/// appends exactly one succeeds; deleted threads are gone. If the store keeps bases, it keeps only
/// a base of the stored log. If it keeps an index of words, a search finds every word.
///
/// `make` is called once for each law and must return an empty store.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{store::MemoryStore, testing::conformance};
///
/// block_on(conformance::store(|| Box::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn store(mut make: impl FnMut() -> Box<dyn ThreadStore>) -> Result<()> {
    unknown_is_empty(&*make()).await?;
    loads_unchanged(&*make()).await?;
    loads_big_events(&*make()).await?;
    conflicts(&*make()).await?;
    wrong_numbers(&*make()).await?;
    threads_are_apart(&*make()).await?;
    one_writer_wins(&*make()).await?;
    bases_belong(&*make()).await?;
    words_are_found(&*make()).await?;
    deleted_is_gone(&*make()).await
}

/// Tests stores whose writes fail: after a failed append a prefix of the log is stored, and appends
/// can continue from there.
///
/// `make` gets the index of a point of failure and returns an empty store that fails there, or
/// `None` after the last one. The suite appends one event, then three, then those of the three that
/// were not stored; so the second append should fail.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::store::MemoryStore;
/// use threadfold::testing::{faulty_store, conformance};
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

async fn unknown_is_empty(store: &dyn ThreadStore) -> Result<()> {
    let thread = named("nobody")?;
    let law = Law::UnknownIsEmpty;
    expect_stored(store, law, "a new store", &thread, &[]).await?;
    same(law, "the end of an unknown thread", &Ok(vec![]), &store.load_from(&thread, 0).await)?;
    same(law, "deleting an unknown thread", &Ok(()), &store.delete(&thread).await)?;
    let law = Law::EmptyStoresNothing;
    same(law, "no events at 0", &Ok(()), &store.append(&thread, None, 0, &[]).await)?;
    expect_stored(store, law, "no events at 0", &thread, &[]).await?;
    same(law, "no events at 0, list", &Ok(vec![]), &store.list().await)
}

async fn loads_unchanged(store: &dyn ThreadStore) -> Result<()> {
    let (thread, events) = (named("t1")?, events(0, 12));
    let mut stored = 0;
    for size in [1, 2, 0, 5, 4] {
        let batch = part(&events, stored, size);
        let input = format!("{size} events at {stored}");
        let appended = store.append(&thread, None, stored as u64, batch).await;
        same(Law::StoredComesBack, &input, &Ok(()), &appended)?;
        stored += size;
        expect_stored(store, Law::StoredComesBack, &input, &thread, part(&events, 0, stored))
            .await?;
    }
    for from in 0..14 {
        let rest = Ok(part(&events, from, usize::MAX).to_vec());
        let found = store.load_from(&thread, from as u64).await;
        same(Law::TailIsRest, format!("the events from {from} on"), &rest, &found)?;
    }
    same(Law::ListNamesAll, "one thread", &Ok(vec![thread]), &store.list().await)
}

async fn loads_big_events(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::StoredComesBack);
    let text = "a\n\r\n\"\\\u{0}\u{2028}\u{1f600}".repeat(1 << 16);
    let events =
        [0, 1].map(|seq| appended(seq, Event::MessageAppended(Message::user(text.as_str()))));
    let outcome = store.append(&thread, None, 0, &events).await;
    same(law, "two events of a million bytes", &Ok(()), &outcome)?;
    expect_stored(store, law, "two events of a million bytes", &thread, &events).await
}

async fn conflicts(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::ConflictWritesNothing);
    let early = store.append(&thread, None, 5, &events(5, 1)).await;
    same(law, "5 expected of none", &Err(conflict(5, 0)), &early)?;
    same(law, "5 expected of none, list", &Ok(vec![]), &store.list().await)?;
    let kept = events(0, 2);
    same(law, "two events", &Ok(()), &store.append(&thread, None, 0, &kept).await)?;
    for expected in [0, 1, 3, u64::from(u32::MAX), u64::MAX - 1] {
        for count in [0, 1, 2] {
            let batch = events(expected, count);
            let input = format!("{expected} expected of 2, {count} events");
            let outcome = store.append(&thread, None, expected, &batch).await;
            let law = if count == 0 { Law::EmptyStoresNothing } else { law };
            same(law, &input, &Err(conflict(expected, 2)), &outcome)?;
            expect_stored(store, law, &input, &thread, &kept).await?;
        }
    }
    Ok(())
}

async fn wrong_numbers(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law, kept) = (named("t1")?, Law::PlacesRunOn, events(0, 2));
    same(law, "two events", &Ok(()), &store.append(&thread, None, 0, &kept).await)?;
    let rows: [(&[u64], u64, u64); 5] =
        [(&[3], 2, 3), (&[1], 2, 1), (&[2, 4], 3, 4), (&[2, 2], 3, 2), (&[2, 3, 0], 4, 0)];
    for (numbers, expected, found) in rows {
        let batch: Vec<LoggedEvent> = numbers.iter().flat_map(|seq| events(*seq, 1)).collect();
        let input = format!("events {numbers:?} at 2");
        let outcome = store.append(&thread, None, 2, &batch).await;
        same(law, &input, &Err(StoreError::Place { expected, found }), &outcome)?;
        expect_stored(store, law, &input, &thread, &kept).await?;
    }
    Ok(())
}

async fn threads_are_apart(store: &dyn ThreadStore) -> Result<()> {
    let law = Law::ThreadsAreApart;
    let names = ["t", "t-", "t-1", "t.1", "t1", "t_", "x"].into_iter().map(named);
    let names: Vec<ThreadId> = names.collect::<Result<_, _>>()?;
    for seq in 0..2 {
        for thread in &names {
            let event = notice(seq, format!("event {seq} of {thread}"));
            let outcome = store.append(thread, None, seq, &[event]).await;
            same(law, format!("event {seq} of {thread}"), &Ok(()), &outcome)?;
        }
    }
    same(Law::ListNamesAll, "threads", &Ok(names.clone()), &store.list().await)?;
    same(law, "deleting t-", &Ok(()), &store.delete(&named("t-")?).await)?;
    for thread in &names {
        let both = [0, 1].map(|seq| notice(seq, format!("event {seq} of {thread}")));
        let kept = if thread.as_str() == "t-" { &[][..] } else { &both };
        expect_stored(store, law, format!("{thread}, t- deleted"), thread, kept).await?;
    }
    Ok(())
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
        let lost = Err(conflict(expected, expected + 2));
        let mut losers = outcomes.iter().filter(|outcome| outcome.is_err());
        losers.try_for_each(|outcome| same(law, &input, &lost, outcome))?;
        kept.extend_from_slice(batch);
        expect_stored(store, law, input, &thread, &kept).await?;
    }
    Ok(())
}

async fn bases_belong(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law, events) = (named("t1")?, Law::BaseBelongs, events(0, 14));
    let (ours, theirs) = (LogId(7), LogId(8));
    let stored = part(&events, 0, 12);
    same(law, "12 events", &Ok(()), &store.append(&thread, Some(ours), 0, stored).await)?;
    let kept = base(law, &thread, ours, stored)?;
    let save = async |base: &LogBase| match base.texts() {
        Some((log, text, facts)) => store.save_base(&thread, log, base.seq(), &text, facts).await,
        None => Ok(()),
    };
    same(law, "its base", &Ok(()), &save(&kept).await)?;
    let (_, text, facts) = kept.texts().ok_or_else(|| law.breach("a base", "texts", "none"))?;
    let found = store.load_base(&thread).await;
    // A store need not keep bases.
    if matches!(found, Ok(None)) {
        return Ok(());
    }
    for (what, id, events) in [
        ("the same base", ours, stored),
        ("a base of another log", theirs, stored),
        ("a base of more events than are stored", ours, &events),
        ("an earlier base", ours, part(&events, 0, 6)),
    ] {
        let base = base(law, &thread, id, events)?;
        same(law, what, &Ok(()), &save(&base).await)?;
        same(law, what, &Ok(Some(text.clone())), &store.load_base(&thread).await)?;
    }
    for (what, id, seq, expected) in [
        ("its facts", ours, 12, Some(facts.to_owned())),
        ("the facts of another log", theirs, 12, None),
        ("the facts of an earlier base", ours, 6, None),
    ] {
        same(law, what, &Ok(expected), &store.load_facts(&thread, id, seq).await)?;
    }
    same(law, "deleting the log", &Ok(()), &store.delete(&thread).await)?;
    let stored = part(&events, 0, 13);
    same(law, "another log", &Ok(()), &store.append(&thread, Some(theirs), 0, stored).await)?;
    same(law, "the base of the log before", &Ok(()), &save(&kept).await)?;
    same(law, "another log", &Ok(None), &store.load_base(&thread).await)?;
    let facts = store.load_facts(&thread, ours, 12).await;
    same(law, "the facts of the log before", &Ok(None), &facts)
}

fn base(law: Law, thread: &ThreadId, id: LogId, events: &[LoggedEvent]) -> Result<LogBase> {
    let mut log = EventLog::new(thread.clone());
    for event in events {
        let appended = log.append_logged(event.clone());
        appended.map_err(|error| law.breach("a base", "a log", error))?;
    }
    let base = LogBase::of(&log, Some(id), &Ledger::default(), &Facts::default());
    base.ok_or_else(|| law.breach("a base", "a base", "none"))
}

async fn deleted_is_gone(store: &dyn ThreadStore) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::DeletedIsGone);
    for round in 0..2 {
        let input = format!("deleted {round} times before");
        let events = events(0, 3 - round);
        same(law, &input, &Ok(()), &store.append(&thread, None, 0, &events).await)?;
        expect_stored(store, law, &input, &thread, &events).await?;
        same(law, &input, &Ok(()), &store.delete(&thread).await)?;
        expect_stored(store, law, &input, &thread, &[]).await?;
        same(law, input, &Ok(vec![]), &store.list().await)?;
    }
    Ok(())
}

async fn leaves_prefix(store: &dyn ThreadStore, point: usize) -> Result<()> {
    let (thread, law, events) = (named("t1")?, Law::FailureLeavesBeginning, events(0, 4));
    let input = format!("failure {point}");
    // The store may have fewer points of failure, so the append may succeed.
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

fn conflict(expected: u64, found: u64) -> StoreError {
    StoreError::Conflict { expected, found }
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

/// `count` events from this number on, of several kinds in turn.
fn events(from: u64, count: u64) -> Vec<LoggedEvent> {
    (from..from.saturating_add(count)).map(event).collect()
}

/// An event of the kind of this number.
fn event(seq: u64) -> LoggedEvent {
    match seq % 6 {
        0 => appended(seq, Event::MessageAppended(Message::user(format!("question {seq}")))),
        1 => appended(seq, Event::MessageAppended(Message::assistant(format!("answer {seq}")))),
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

/// The words of four messages.
const WORDS: [&[&str]; 4] = [
    &["lamp", "src", "parse", "rs", "src/parse.rs", "17.lamp"],
    &["gr\u{f6}\u{df}e", "\u{7aef}", "__x"],
    &["lamp", "std::fs", "a->b", "c\\d", "or", "lampe"],
    &[],
];

/// Tests the word index of an empty store, if it has one.
pub(super) async fn words_are_found(store: &dyn ThreadStore) -> Result<()> {
    let Some(index) = store.word_index() else { return Ok(()) };
    let (thread, other, law) = (named("t1")?, named("t1-")?, Law::WordsAreFound);
    let (ours, theirs) = (Some(LogId(7)), Some(LogId(8)));
    same(law, "an unknown thread", &Ok(None), &index.indexed(&thread, ours).await)?;
    for thread in [&thread, &other] {
        same(law, "events", &Ok(()), &store.append(thread, ours, 0, &worded()).await)?;
    }
    same(law, "a new log", &Ok(Some((0, 0))), &index.indexed(&thread, ours).await)?;
    same(law, "another log", &Ok(None), &index.indexed(&thread, theirs).await)?;
    for (what, thread, log, from, to, added) in [
        ("of another log", &thread, theirs, 0, 2, false),
        ("after a gap", &thread, ours, 1, 2, false),
        ("the first two", &thread, ours, 0, 2, true),
        ("the same again", &thread, ours, 0, 2, false),
        ("the next two", &thread, ours, 2, 4, true),
        ("another thread", &other, ours, 0, 1, true),
    ] {
        let messages = messages(from, to);
        let outcome = index.add(thread, log, from..to, from, &messages).await;
        same(law, what, &Ok(added), &outcome)?;
    }
    same(law, "four messages", &Ok(Some((4, 4))), &index.indexed(&thread, ours).await)?;
    for (number, words) in (0..).zip(WORDS) {
        for word in words {
            let found = index.find(&thread, &[(*word).to_owned()]).await;
            let expected = if *word == "lamp" { vec![0, 2] } else { vec![number] };
            same(law, format!("{word:?}"), &Ok(expected), &found)?;
        }
    }
    for (words, expected) in [
        (&[][..], vec![]),
        (&["amp", "1"], vec![]),
        (&["\u{7aef}", "absent", "lamp"], vec![0, 1, 2]),
    ] {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        same(law, format!("{words:?}"), &Ok(expected), &index.find(&thread, &words).await)?;
    }
    let [first, _, third, _] = worded();
    let read = index.read(&thread, &[0, 2, 9]).await;
    same(law, "messages 0, 2 and 9", &Ok(vec![(0, first), (2, third)]), &read)?;
    same(law, "deleting the log", &Ok(()), &store.delete(&thread).await)?;
    same(law, "another log", &Ok(()), &store.append(&thread, theirs, 0, &worded()).await)?;
    same(law, "another log", &Ok(Some((0, 0))), &index.indexed(&thread, theirs).await)?;
    let lamp = ["lamp".to_owned()];
    same(law, "another log", &Ok(vec![]), &index.find(&thread, &lamp).await)?;
    same(law, "the other thread", &Ok(vec![0]), &index.find(&other, &lamp).await)
}

fn messages(from: u64, to: u64) -> Vec<(u64, Vec<String>)> {
    let range = (0..).zip(WORDS).filter(|(number, _)| (from..to).contains(number));
    range.map(|(seq, words)| (seq, words.iter().map(ToString::to_string).collect())).collect()
}

/// An event for each entry of [`WORDS`].
fn worded() -> [LoggedEvent; 4] {
    let mut seq = 0..;
    WORDS.map(|words| {
        let (seq, text) = (seq.next().unwrap_or_default(), words.join(" "));
        let event = Event::MessageAppended(Message::user(text));
        LoggedEvent { seq, at: Timestamp(seq), event }
    })
}
