//! Tracing spans of compactions, as a subscriber sees them.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    future::Future,
    pin::pin,
    sync::{Arc, LazyLock, Mutex},
    task::{Context, Waker},
};

use futures::executor::block_on;
use threadfold::{
    Answer, CompactionStrategy, ContextWindow, Message, Model, ModelAgent, Request, Session, Usage,
    async_trait,
    compact::Prices,
    drive::{self, Conversation, Models, telemetry},
    log::{Event, LogId, LoggedEvent},
    message::{CompactionReason, Delta, ModelErrorKind, StopReason, ThreadId, Timestamp},
    model::ModelError,
    session::{CompactionEvent, SessionEvent},
    store::{Journal, Loaded, MemoryStore, StoreError, ThreadStore},
    strategy::{Brief, Digest, KeepRecent, ModelCall, Summarize},
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::{TestClock, faulty_store};
use tracing::{
    Dispatch, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::NoSubscriber,
};

use crate::support::{polls::pending_once, traces};

/// A word that no span may contain.
const SECRET: &str = "zebra";

/// One span: its name, its fields as texts, and how many handles it has.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    target: String,
    fields: BTreeMap<&'static str, String>,
    handles: usize,
    entered: usize,
}

/// A subscriber that records all spans, and which one is entered.
#[derive(Clone, Debug, Default)]
struct Spans(Arc<Mutex<(Vec<Seen>, Vec<u64>)>>);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = self.0.entry(field.name()).or_default();
        assert!(text.is_empty(), "{field} is recorded twice");
        write!(text, "{value:?}").unwrap();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

impl Spans {
    fn change<T>(&self, id: &Id, change: impl FnOnce(&mut Seen) -> T) -> T {
        let index = usize::try_from(id.into_u64()).unwrap() - 1;
        change(&mut self.0.lock().unwrap().0[index])
    }

    fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().0.clone()
    }

    fn one(&self) -> Seen {
        let all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        let seen = all[0].clone();
        assert_eq!((seen.name, seen.target.as_str()), (telemetry::SPAN, telemetry::TARGET));
        assert_eq!(seen.handles, 0, "it is closed");
        assert!(self.0.lock().unwrap().1.is_empty(), "no work is in the span");
        for value in seen.fields.values() {
            assert!(!value.contains(SECRET), "{value}");
        }
        seen
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let mut seen = Seen {
            name: metadata.name(),
            target: metadata.target().to_owned(),
            handles: 1,
            ..Seen::default()
        };
        attributes.record(&mut Fields(&mut seen.fields));
        let spans = &mut self.0.lock().unwrap().0;
        spans.push(seen);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.change(id, |seen| values.record(&mut Fields(&mut seen.fields)));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        panic!("{event:?}");
    }

    fn enter(&self, id: &Id) {
        self.change(id, |seen| seen.entered += 1);
        self.0.lock().unwrap().1.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        assert_eq!(self.0.lock().unwrap().1.pop(), Some(id.into_u64()));
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.change(id, |seen| seen.handles += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        self.change(&id, |seen| {
            seen.handles -= 1;
            seen.handles == 0
        })
    }
}

/// A model that is asked in a span, waits, and must still be in it.
#[derive(Debug)]
struct Inside {
    model: ScriptedModel,
    spans: Spans,
}

impl Inside {
    fn assert_inside(&self) {
        assert!(!self.spans.0.lock().unwrap().1.is_empty(), "the model is asked outside a span");
    }
}

#[async_trait]
impl Model for Inside {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.assert_inside();
        pending_once().await;
        self.assert_inside();
        self.model.complete(request).await
    }
}

/// A store that waits before and after it writes.
#[derive(Debug, Default)]
struct Slow(MemoryStore);

#[async_trait]
impl ThreadStore for Slow {
    async fn append(
        &self,
        thread: &ThreadId,
        _: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        pending_once().await;
        self.0.append(thread, None, expected_len, events).await?;
        pending_once().await;
        Ok(())
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.0.load(thread).await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.0.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0.delete(thread).await
    }
}

fn summarize() -> Summarize {
    Summarize { messages: 2, user_messages: 0, ..Summarize::default() }
}

fn turn(text: &str, usage: Usage) -> Answer {
    Answer::new(Message::assistant(text), StopReason::EndTurn, Some(usage))
}

/// A thread of ten messages and its journal.
fn kept(store: impl ThreadStore + 'static) -> Journal {
    let id = "thread-1".parse().unwrap();
    let mut journal = block_on(Journal::open(Arc::new(store), id)).unwrap();
    for number in 0..5 {
        let question = Message::user(format!("{SECRET} {number} {}", "word ".repeat(50)));
        for message in [question, Message::assistant(format!("{SECRET} done"))] {
            journal.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
        }
    }
    journal
}

fn brief() -> Brief {
    let reason = CompactionReason::Manual { instructions: Some(SECRET.into()) };
    Brief { reason, now: Timestamp(2), ..Brief::default() }
}

/// Runs the work with these spans as the subscriber of the thread.
///
/// With a single subscriber, the thread that first reaches a span decides whether it is recorded,
/// and that may be the thread of another test without one. With two subscribers both are asked.
fn subscribed<T>(spans: &Spans, run: impl FnOnce() -> T) -> T {
    static OTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));
    LazyLock::force(&OTHER);
    traces::with(spans.clone(), run)
}

/// Compacts with this answer, polls this many times, and returns the span and whether the work
/// ended.
fn compacted(answer: impl Into<Scripted>, times: usize) -> (Seen, bool) {
    let spans = Spans::default();
    let ended = subscribed(&spans, || {
        let mut journal = kept(MemoryStore::default());
        let model = Inside { model: ScriptedModel::new([answer.into()]), spans: spans.clone() };
        let mut conversation = Conversation::new(&mut journal);
        let (strategy, brief, clock) = (summarize(), brief(), TestClock::default());
        let models = Models { clock: Some(&clock), ..Models::one(&model) };
        let mut observe = |_: &ModelCall, _: Option<&Delta>| {};
        let work = drive::compact(&mut conversation, &strategy, &brief, models, &mut observe);
        let mut work = pin!(work);
        let mut context = Context::from_waker(Waker::noop());
        (0..times).any(|_| {
            let over = work.as_mut().poll(&mut context).is_ready();
            assert!(tracing::Span::current().is_none(), "between two polls no work is in the span");
            over
        })
    });
    (spans.one(), ended)
}

/// The fields of every span of [`compacted`] at its start.
fn begun(seen: &Seen) -> BTreeMap<&'static str, String> {
    let rows = [
        (telemetry::OPERATION_NAME, "compact"),
        (telemetry::CONVERSATION_ID, "thread-1"),
        (telemetry::COMPACTION_ID, "0"),
        (telemetry::STRATEGY, "summarize"),
        (telemetry::REASON, "manual"),
        (telemetry::MESSAGES_BEFORE, "10"),
        (telemetry::TOKENS_BEFORE, seen.fields[telemetry::TOKENS_BEFORE].as_str()),
    ];
    rows.map(|(name, value)| (name, value.to_owned())).into()
}

fn with(
    mut fields: BTreeMap<&'static str, String>,
    rows: &[(&'static str, &str)],
) -> BTreeMap<&'static str, String> {
    fields.extend(rows.iter().map(|(name, value)| (*name, (*value).to_owned())));
    fields
}

#[test]
fn a_completed_compaction_is_one_span() {
    let (seen, ended) = compacted(turn("They talked.", Usage::new(900, 12)), 99);
    assert!(ended);
    let after = &seen.fields[telemetry::TOKENS_AFTER];
    let expected = with(
        begun(&seen),
        &[
            (telemetry::OUTCOME, "completed"),
            (telemetry::MESSAGES_AFTER, "3"),
            (telemetry::TOKENS_AFTER, after),
            (telemetry::CALLS, "1"),
            (telemetry::INPUT_TOKENS, "900"),
            (telemetry::OUTPUT_TOKENS, "12"),
        ],
    );
    assert_eq!(seen.fields, expected);
    let tokens = |name| seen.fields[name].parse::<u64>().unwrap();
    assert!(tokens(telemetry::TOKENS_AFTER) < tokens(telemetry::TOKENS_BEFORE));
    assert!(seen.entered >= 2, "before and after the wait");
}

#[test]
fn a_span_has_the_cost_of_its_compaction_and_the_savings_of_the_previous_one() {
    let prices: Prices =
        serde_json::from_str(r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}"#)
            .unwrap();
    let spans = Spans::default();
    let (first, gain) = subscribed(&spans, || {
        let mut journal = kept(MemoryStore::default());
        let answer = |journal: &mut Journal, tokens| {
            let mut answer = Message::assistant("word ".repeat(200));
            answer.make_mut().usage = Some(Usage::new(tokens, 50));
            journal.append(Timestamp(2), Event::MessageAppended(answer)).unwrap();
        };
        answer(&mut journal, 900);
        let compact = |journal: &mut Journal, messages| {
            let mut conversation = Conversation::new(journal).with_prices(Some(prices));
            let strategy = KeepRecent { messages, ..KeepRecent::default() };
            let (brief, models, mut observe) =
                (brief(), Models::default(), |_: &ModelCall, _: Option<&Delta>| {});
            let work = drive::compact(&mut conversation, &strategy, &brief, models, &mut observe);
            block_on(work).unwrap()
        };
        let first = compact(&mut journal, 6);
        answer(&mut journal, 500);
        let gain = journal.log().net_gain(first.id, &prices).unwrap().gain;
        compact(&mut journal, 2);
        (first, gain)
    });
    let seen = spans.all();
    let cost = first.report.cost.unwrap();
    let rows = [
        (0, telemetry::TOKENS_REBILLED, cost.tokens_rebilled.to_string()),
        (0, telemetry::COST, (cost.model_calls + cost.rebill).to_string()),
        (0, telemetry::SAVED_PER_REQUEST, cost.saved_per_request.to_string()),
        (1, telemetry::PREVIOUS_GAIN, gain.to_string()),
    ];
    for (span, name, expected) in rows {
        assert_eq!(seen[span].fields.get(name), Some(&expected), "{name}: {seen:?}");
    }
    assert!(gain != 0 && !seen[0].fields.contains_key(telemetry::PREVIOUS_GAIN));
}

#[test]
fn a_failed_compaction_is_one_span_with_the_kind_of_its_error_only() {
    let error = ModelError::new(ModelErrorKind::Refused, format!("I will not say {SECRET}"));
    let (seen, ended) = compacted(error, 99);
    assert!(ended);
    let expected = with(
        begun(&seen),
        &[
            (telemetry::OUTCOME, "failed"),
            (telemetry::ERROR_TYPE, "refused"),
            (telemetry::CALLS, "1"),
            (telemetry::INPUT_TOKENS, "0"),
            (telemetry::OUTPUT_TOKENS, "0"),
        ],
    );
    assert_eq!(seen.fields, expected);
}

#[test]
fn a_dropped_compaction_is_one_cancelled_span() {
    let (seen, ended) = compacted(turn("They talked.", Usage::default()), 1);
    assert!(!ended);
    assert_eq!(seen.fields, with(begun(&seen), &[(telemetry::OUTCOME, "cancelled")]));
}

#[test]
fn a_compaction_that_was_not_stored_is_completed_with_an_error() {
    let spans = Spans::default();
    subscribed(&spans, || {
        let store = faulty_store(MemoryStore::default(), &[Some(0), Some(0)]);
        let mut journal = kept(store);
        let mut conversation = Conversation::new(&mut journal);
        let strategy = KeepRecent { messages: 2, ..KeepRecent::default() };
        let (brief, models) = (brief(), Models::default());
        block_on(drive::compact(&mut conversation, &strategy, &brief, models, &mut |_, _| {}))
            .unwrap_err();
    });
    let seen = spans.one();
    assert_eq!(seen.fields[telemetry::OUTCOME], "completed");
    assert_eq!(seen.fields[telemetry::ERROR_TYPE], "store");
}

#[test]
fn the_outcome_agrees_with_the_log_wherever_the_future_is_dropped() {
    let error = || ModelError::new(ModelErrorKind::Refused, "no").into();
    for answer in [|| turn("They talked.", Usage::default()).into(), error as fn() -> Scripted] {
        let mut outcomes = Vec::new();
        for times in 1..9 {
            let spans = Spans::default();
            let in_log = subscribed(&spans, || {
                let mut journal = kept(Slow::default());
                block_on(journal.flush()).unwrap();
                let model = Inside { model: ScriptedModel::new([answer()]), spans: spans.clone() };
                let mut conversation = Conversation::new(&mut journal);
                let (strategy, brief, clock) = (summarize(), brief(), TestClock::default());
                let models = Models { clock: Some(&clock), ..Models::one(&model) };
                let mut observe = |_: &ModelCall, _: Option<&Delta>| {};
                {
                    let work =
                        drive::compact(&mut conversation, &strategy, &brief, models, &mut observe);
                    let mut work = pin!(work);
                    let mut context = Context::from_waker(Waker::noop());
                    let _ = (0..times).any(|_| work.as_mut().poll(&mut context).is_ready());
                }
                match journal.log().events().last().map(|logged| &logged.event) {
                    Some(Event::Compacted(_)) => "completed",
                    Some(Event::CompactionFailed(_)) => "failed",
                    _ => "cancelled",
                }
            });
            let outcome = spans.one().fields[telemetry::OUTCOME].clone();
            assert_eq!(outcome, in_log, "dropped after {times} polls");
            outcomes.push(outcome);
        }
        assert!(outcomes.iter().any(|outcome| outcome == "cancelled"));
        assert!(outcomes.iter().any(|outcome| outcome != "cancelled"));
    }
}

#[test]
fn without_anything_to_compact_there_is_no_span() {
    let spans = Spans::default();
    subscribed(&spans, || {
        let mut journal = kept(MemoryStore::default());
        let mut conversation = Conversation::new(&mut journal);
        let strategy = KeepRecent { messages: 99, ..KeepRecent::default() };
        let (brief, models) = (brief(), Models::default());
        block_on(drive::compact(&mut conversation, &strategy, &brief, models, &mut |_, _| {}))
            .unwrap_err();
    });
    assert_eq!(spans.all().len(), 0);
}

/// A session after some turns, with this strategy.
fn session(answers: Vec<Scripted>, strategy: impl CompactionStrategy + 'static) -> Session {
    let mut script: Vec<Scripted> = (0..6).map(|n| format!("{SECRET} {n}").into()).collect();
    script.extend(answers);
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script)));
    let mut session = Session::builder(agent.with_window(ContextWindow::new(200_000)))
        .strategy(Arc::new(strategy))
        .clock(Arc::new(TestClock::default()))
        .build()
        .unwrap();
    for number in 0..6 {
        let text = format!("{SECRET} {number} {}", "word ".repeat(50));
        block_on(session.send(text).into_future()).unwrap();
    }
    session
}

/// The outcomes of the spans while a session does something.
fn outcomes(work: impl FnOnce()) -> Vec<(String, Option<String>)> {
    let spans = Spans::default();
    subscribed(&spans, work);
    for seen in spans.all() {
        assert_eq!((seen.name, seen.handles), (telemetry::SPAN, 0));
        assert!(seen.fields.values().all(|value| !value.contains(SECRET)), "{seen:?}");
    }
    let outcome = |seen: &Seen| {
        let error = seen.fields.get(telemetry::ERROR_TYPE).cloned();
        (seen.fields[telemetry::OUTCOME].clone(), error)
    };
    spans.all().iter().map(outcome).collect()
}

#[test]
fn every_compaction_of_a_session_is_one_span() {
    let mut done = session(vec!["They talked.".into()], summarize());
    let reported = outcomes(|| {
        block_on(done.send(format!("/compact {SECRET}")).into_future()).unwrap();
    });
    assert_eq!(reported, [("completed".to_owned(), None)]);

    let error = ModelError::new(ModelErrorKind::Authentication, SECRET);
    let mut failed = session(vec![error.into()], summarize());
    let reported = outcomes(|| {
        block_on(failed.send("/compact").into_future()).unwrap();
    });
    assert_eq!(reported, [("failed".to_owned(), Some("authentication".to_owned()))]);

    // A digest calls no model, and the turn after it is in no span.
    let mut digest = session(vec!["Yes.".into()], Digest { messages: 2, ..Digest::default() });
    let reported = outcomes(|| {
        block_on(digest.send("@compact And?").into_future()).unwrap();
    });
    assert_eq!(reported, [("completed".to_owned(), None)]);
}

#[test]
fn a_session_whose_stream_is_dropped_has_a_cancelled_span_and_the_next_one_is_another() {
    let mut session = session(vec!["They talked.".into(), "Again.".into()], summarize());
    let reported = outcomes(|| {
        let mut events = session.send("/compact");
        block_on(events.next()).unwrap().unwrap();
        drop(events);
        assert!(tracing::Span::current().is_none());
        block_on(session.send("/compact").into_future()).unwrap();
    });
    let reported: Vec<_> = reported.iter().map(|(outcome, _)| outcome.as_str()).collect();
    assert_eq!(reported, ["cancelled", "completed"]);
}

#[test]
fn a_compaction_without_a_call_is_a_span_from_its_start_event_on() {
    let spans = Spans::default();
    subscribed(&spans, || {
        let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["One.", "Two."])));
        let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
        let mut session = Session::builder(agent).strategy(Arc::new(keep)).build().unwrap();
        for text in ["Hi.", "And?"] {
            block_on(async { session.send(text).await }).unwrap();
        }
        let mut events = session.compact(None);
        let first = block_on(events.next()).unwrap().unwrap();
        let is_start = matches!(first, SessionEvent::Compaction(CompactionEvent::Started { .. }));
        assert!(is_start, "{first:?}");
    });
    assert_eq!(spans.one().fields[telemetry::OUTCOME], "cancelled");
}
