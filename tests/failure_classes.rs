//! How automatic compaction goes wrong in agents, class by class, and the test that shows that it
//! does not go wrong so here.
//!
//! Nearly all of them are whole sessions with the strategies that a host would choose. They look at
//! the requests that the model received, at the events and at the log.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

use std::{
    collections::HashSet,
    fmt, fs,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures::{
    FutureExt, Stream, StreamExt, executor::block_on, stream::BoxStream, task::noop_waker,
};
use serde_json::{Value, json};
use threadfold::{
    CompactionStrategy, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role,
    TokenCounter, Turn, Usage, WireFormat, async_trait,
    auto::{AutoPolicy, Target, UnknownUsage},
    legality,
    log::{CompactionRecord, Event},
    message::{
        CompactionReason, Delta, ModelErrorKind, StopReason, Summary, Text, Timestamp, ToolSpec,
        ToolUse,
    },
    model::{Clock, ModelError, Tool, ToolContext, ToolFailure, ToolOutput},
    session::{
        COMPACT_CONTEXT, CompactionEvent, Reply, Session, SessionBuilder, SessionError,
        SessionEvent,
    },
    store::{Journal, MemoryStore},
    strategy::{Chunked, Digest, FoldBatches, KeepRecent, Ladder, Summarize, TrimToolResults},
    testing::{Answer, ExtractiveModel, HostileModel, Misbehaviour, ScriptedModel, WakefulSleeper},
    tokens::ByteEstimate,
    wire::{AnthropicMessages, EncodeOptions, OpenAiChat},
};

/// Each class of failure, and the tests of this file that show that it is designed out.
const CLASSES: &[(&str, &[&str])] = &[
    (
        "compactions in a loop that never come under the trigger",
        &[
            "compactions_that_do_not_bring_the_count_down_are_given_up_and_it_is_said",
            "a_system_prompt_over_the_threshold_starts_no_compaction_and_is_said_once",
            "a_summary_longer_than_what_it_replaces_is_not_asked_for_again_and_again",
            "a_request_that_nothing_makes_fit_is_given_up_after_two_tries",
        ],
    ),
    (
        "the call that is to sum up is too long itself",
        &[
            "a_thread_too_long_for_its_summariser_is_read_in_pieces",
            "a_summariser_that_refuses_every_length_does_not_stop_the_turn",
            "a_long_prompt_does_not_make_the_call_too_long_that_sums_up_before_it",
        ],
    ),
    (
        "looking only when a turn is over",
        &[
            "a_turn_of_many_tools_is_compacted_before_it_is_too_long",
            "a_prompt_that_is_about_to_be_sent_counts",
        ],
    ),
    (
        "a wrong window, or a wrong count",
        &[
            "a_count_of_zero_is_no_measure",
            "a_count_that_adds_up_all_calls_does_not_compact_again_and_again",
            "a_count_larger_than_the_window_refuses_no_request",
            "a_count_at_the_edge_of_the_window_with_nothing_to_compact_refuses_no_request",
            "a_window_smaller_than_was_thought_is_learned_from_the_refusal",
        ],
    ),
    (
        "a second compaction right behind the first",
        &[
            "the_tokens_of_the_summary_call_are_not_taken_for_those_of_the_thread",
            "a_compaction_by_hand_is_not_followed_by_one_of_the_trigger",
            "a_thread_that_stays_over_the_threshold_is_not_compacted_again_before_it_was_counted",
        ],
    ),
    (
        "calls without results, results without calls, parallel results apart",
        &["no_strategy_parts_calls_from_their_results_or_parallel_results_from_each_other"],
    ),
    (
        "an old task taken up again, or finished work done again",
        &[
            "the_newest_message_of_the_user_comes_last_and_behind_the_end_of_the_summary",
            "whoever_sums_up_is_told_to_tell_what_is_done_from_what_is_not",
            "work_that_was_done_before_a_compaction_is_not_done_again",
        ],
    ),
    (
        "rules and corrections of the user lost",
        &[
            "what_the_user_typed_last_stays_word_for_word_under_every_strategy",
            "the_last_three_messages_of_the_user_outlive_a_summary",
            "a_rule_outlives_four_digests",
            "whoever_sums_up_is_told_to_keep_every_rule_of_the_user",
            "the_system_prompt_is_the_same_in_every_request",
        ],
    ),
    (
        "tools not offered any more, or called in prose",
        &[
            "the_tools_are_offered_after_a_compaction_as_they_were_before",
            "no_strategy_writes_calls_as_text_into_the_thread",
        ],
    ),
    (
        "a worse way of compacting that nobody notices",
        &[
            "the_rung_that_did_it_is_told_and_logged",
            "a_summary_without_a_word_is_an_error_that_is_told_and_logged",
            "a_piece_of_a_run_without_a_word_is_an_error",
        ],
    ),
    (
        "a cache lost to small or repeated edits",
        &[
            "below_the_threshold_no_message_is_ever_touched",
            "two_crossings_within_a_minute_are_one_compaction",
            "what_stands_before_the_first_edit_is_sent_byte_for_byte_as_before",
        ],
    ),
    (
        "an unattended run that ends without a word, or asks instead of going on",
        &[
            "after_a_compaction_among_tool_calls_the_model_is_asked_on",
            "please_continue_stands_only_where_nothing_else_asks_for_something",
            "a_finished_agent_is_not_started_again_by_a_compaction",
        ],
    ),
    (
        "compactions that compact themselves, requests refused without numbers, ends that are missing",
        &[
            "the_calls_of_a_compaction_are_never_compacted_themselves",
            "what_cannot_fit_is_refused_with_the_numbers_of_its_parts",
            "every_compaction_has_one_beginning_and_one_end_wherever_it_is_dropped",
            "every_compaction_that_fails_has_one_end_too",
        ],
    ),
];

#[test]
fn every_class_has_tests_that_are_there_and_every_test_has_its_class() {
    let source = fs::read_to_string("tests/failure_classes.rs").unwrap();
    let mut named =
        HashSet::from(["every_class_has_tests_that_are_there_and_every_test_has_its_class"]);
    for (class, tests) in CLASSES {
        assert!(!tests.is_empty(), "{class}");
        for test in *tests {
            let there = source.contains(&format!("#[test]\nfn {test}("));
            assert!(there, "{class}: no {test}");
            assert!(named.insert(test), "{test} is named twice");
        }
    }
    let tests = source.split("\n#[test]\nfn ").skip(1).filter_map(|rest| rest.split('(').next());
    for test in tests {
        assert!(named.contains(test), "{test} stands for no class");
    }
}

type Plays = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

/// A model that works, and whoever sums up for it. It keeps what it was asked.
struct Played {
    works: Plays,
    sums_up: Plays,
    requests: Mutex<Vec<Request>>,
}

impl Played {
    /// Returns a model that works so, and sums up in extracts.
    fn new(works: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let extract = |request: &Request| {
            answer_of(ExtractiveModel, request).map_or_else(Answer::Error, Answer::Turn)
        };
        Self { works: Box::new(works), sums_up: Box::new(extract), requests: Mutex::default() }
    }

    /// Returns the model with this one in place of extracts.
    fn summing_up(self, sums_up: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self { sums_up: Box::new(sums_up), ..self }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Those of the agent at its work.
    fn asked(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| !wants_summary(request)).collect()
    }

    /// Those for summaries.
    fn summaries(&self) -> Vec<Request> {
        self.requests().into_iter().filter(wants_summary).collect()
    }
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played").finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for Played {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let plays = if wants_summary(&request) { &self.sums_up } else { &self.works };
        ScriptedModel::new([plays(&request)]).complete(request).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        // Asked only when polled, and not ready at once, as models are.
        let answer = async move {
            pending_once().await;
            self.requests.lock().unwrap().push(request.clone());
            let plays = if wants_summary(&request) { &self.sums_up } else { &self.works };
            let model = ScriptedModel::new([plays(&request)]);
            model.stream(request).collect::<Vec<_>>().await
        };
        futures::stream::once(answer).map(futures::stream::iter).flatten().boxed()
    }
}

async fn pending_once() {
    let mut waited = false;
    futures::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A session sets no limit for the answers of its agent, a strategy does.
fn wants_summary(request: &Request) -> bool {
    request.max_output.is_some()
}

/// A clock that goes on by so many milliseconds with every look.
#[derive(Debug)]
struct Ticking {
    now: AtomicU64,
    step: u64,
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.fetch_add(self.step, Ordering::Relaxed))
    }
}

/// Writes as many lines as it is asked for, and keeps which parts it was asked for.
#[derive(Clone, Debug, Default)]
struct Write(Arc<Mutex<Vec<u64>>>);

impl Write {
    fn parts(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("write", "Writes a part.", json!({"type": "object"}))
    }

    async fn call(&self, call: &ToolUse, _: &ToolContext<'_>) -> Result<ToolOutput, ToolFailure> {
        let input: Value = call.input.json()?.to_value()?;
        let part = input["part"].as_u64().ok_or("which part?")?;
        self.0.lock().unwrap().push(part);
        let lines = input["lines"].as_u64().unwrap_or(1) as usize;
        Ok(ToolOutput::from(format!("part {part}\n{}", LINE.repeat(lines))))
    }
}

const LINE: &str = "    a line of the part that was written\n";

struct Bench {
    session: Session,
    model: Arc<Played>,
    tool: Write,
    window: u64,
}

/// A session with a second between two looks at the clock.
fn bench(
    window: u64,
    model: Played,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    timed(window, 1_000, model, build)
}

fn timed(
    window: u64,
    step: u64,
    model: Played,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    opened(Arc::default(), window, step, model, build)
}

fn opened(
    store: Arc<MemoryStore>,
    window: u64,
    step: u64,
    model: Played,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    let (model, tool) = (Arc::new(model), Write::default());
    let agent = ModelAgent::new(model.clone()).with_window(ContextWindow::new(window));
    let journal = block_on(Journal::open(store, "thread-1".parse().unwrap())).unwrap();
    let builder = Session::builder(agent)
        .journal(journal)
        .system("Be kind.")
        .clock(Arc::new(Ticking { now: AtomicU64::new(1_000_000), step }))
        .sleeper(Arc::new(WakefulSleeper::default()))
        .policy(policy())
        .tool(Arc::new(tool.clone()));
    Bench { session: build(builder).build().unwrap(), model, tool, window }
}

type Happened = Vec<Result<SessionEvent, SessionError>>;

impl Bench {
    fn say(&mut self, text: impl Into<Text>) -> Result<Reply, SessionError> {
        block_on(IntoFuture::into_future(self.session.send(text)))
    }

    fn events(&mut self, text: impl Into<Text>) -> Happened {
        let mut stream = self.session.send(text);
        let mut events = Vec::new();
        while let Some(event) = block_on(stream.next()) {
            events.push(event);
        }
        events
    }

    /// Says so many things, all of which have to be answered, and returns what happened.
    fn chat(&mut self, rounds: usize) -> Happened {
        let mut all = Vec::new();
        for round in 0..rounds {
            let events = self.events(question(round));
            for event in &events {
                assert!(event.is_ok(), "round {round}: {event:?}");
            }
            let ended = |event: &Result<_, _>| matches!(event, Ok(SessionEvent::TurnEnded { .. }));
            assert!(events.iter().any(ended), "round {round}: {events:?}");
            all.extend(events);
        }
        all
    }

    /// The records of the compactions in the log.
    fn records(&self) -> Vec<CompactionRecord> {
        let events = self.session.log().events().iter();
        let record = |event: &Event| match event {
            Event::Compacted(record) => Some((**record).clone()),
            _ => None,
        };
        events.filter_map(|logged| record(&logged.event)).collect()
    }

    fn last_asked(&self) -> Request {
        self.model.asked().pop().unwrap()
    }

    /// Log and thread tell of the same, and no request was too long or illegal.
    fn assert_sound(&self) {
        assert_eq!(self.session.log().replay().unwrap(), self.session.messages()[..]);
        for request in self.model.requests() {
            assert_eq!(legality::violations(&request.messages), []);
            let tokens = ByteEstimate::TRIGGER.request(&request);
            assert!(tokens <= self.window, "{tokens} tokens in a window of {}", self.window);
        }
    }
}

/// Estimates where nobody counts, so that the trigger works before the first answer too.
fn policy() -> AutoPolicy {
    AutoPolicy { unknown_usage: UnknownUsage::Estimate, ..AutoPolicy::default() }
}

fn question(round: usize) -> String {
    format!("Question {round}: {}", "what is there to say about it ".repeat(4))
}

/// Answers in some words.
fn chats(_: &Request) -> Answer {
    format!("Well: {}", "there is this to say about it ".repeat(8)).into()
}

fn with_usage(mut turn: Turn, usage: Usage) -> Answer {
    turn.usage = Some(usage);
    turn.into()
}

/// Answers as this model does, which is ready at once.
fn answer_of(model: impl Model, request: &Request) -> Result<Turn, ModelError> {
    model.complete(request.clone()).now_or_never().unwrap()
}

/// Answers with this count.
fn counted(text: &str, usage: Usage) -> Answer {
    Turn::new(Message::assistant(text), StopReason::EndTurn, Some(usage)).into()
}

/// Writes so many parts, each of so many lines, one in a round, and says so. It goes by the
/// thread alone: by the last result or summary behind what the user asked for last.
fn writes(parts: u64, lines: u64) -> impl Fn(&Request) -> Answer + Send + Sync {
    move |request| {
        let asked = request.messages.iter().rposition(Message::is_typed).map_or(0, |at| at + 1);
        let done = request.messages[asked..].iter().map(written).max().unwrap_or_default();
        if done == parts { "All parts are written.".into() } else { calls(&[(done + 1, lines)]) }
    }
}

/// The last part that was written, as a message has it.
fn written(message: &Message) -> u64 {
    let results = message.tool_results().flat_map(|result| &result.content);
    let texts = results.chain(&message.content).filter_map(|block| match block {
        ContentBlock::Text(text) => Some(&text.text),
        ContentBlock::Summary(summary) => Some(&summary.text),
        _ => None,
    });
    let numbers = texts.flat_map(|text| text.split("part ").skip(1)).filter_map(|behind| {
        behind.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    });
    numbers.max().unwrap_or_default()
}

/// One message that writes these parts, of so many lines each.
fn calls(parts: &[(u64, u64)]) -> Answer {
    let call = |(part, lines): &(u64, u64)| {
        let input = json!({"part": part, "lines": lines});
        ContentBlock::from(ToolUse::new(format!("call-{part}"), "write", input))
    };
    Message::new(Role::Assistant, parts.iter().map(call).collect()).into()
}

fn fails(kind: ModelErrorKind) -> Answer {
    ModelError::new(kind, "as asked").into()
}

fn overflow(limit: Option<u64>) -> Answer {
    fails(ModelErrorKind::Overflow { limit, found: None })
}

fn compactions(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionEvent> {
    let compaction = |event: &Result<SessionEvent, SessionError>| match event {
        Ok(SessionEvent::Compaction(event)) => Some(event.clone()),
        _ => None,
    };
    events.iter().filter_map(compaction).collect()
}

fn ends(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionEvent> {
    compactions(events).into_iter().filter(CompactionEvent::is_end).collect()
}

/// How many were begun, and how many of these were carried out.
fn begun_and_done(events: &[Result<SessionEvent, SessionError>]) -> (usize, usize) {
    let told = compactions(events);
    let begun = |event: &&CompactionEvent| matches!(event, CompactionEvent::Started { .. });
    let done = |event: &&CompactionEvent| matches!(event, CompactionEvent::Completed { .. });
    (told.iter().filter(begun).count(), told.iter().filter(done).count())
}

fn reasons(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionReason> {
    let reason = |event: CompactionEvent| match event {
        CompactionEvent::Started { reason, .. } => Some(reason),
        _ => None,
    };
    compactions(events).into_iter().filter_map(reason).collect()
}

/// The lines that say that automatic compaction rests.
fn rests(events: &[Result<SessionEvent, SessionError>]) -> usize {
    let rests = |event: &&Result<SessionEvent, SessionError>| matches!(event, Ok(SessionEvent::Notice { text }) if text.contains("compaction rests"));
    events.iter().filter(rests).count()
}

fn summaries(messages: &[Message]) -> Vec<Summary> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let summary = |block: &ContentBlock| match block {
        ContentBlock::Summary(summary) => Some(summary.clone()),
        _ => None,
    };
    blocks.filter_map(summary).collect()
}

/// What stands in the messages as plain text.
fn texts(messages: &[Message]) -> String {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(text.text.to_string()),
        ContentBlock::Summary(summary) => Some(summary.text.to_string()),
        _ => None,
    };
    blocks.filter_map(text).collect::<Vec<_>>().join("\n")
}

fn typed(text: &str, messages: &[Message]) -> bool {
    let says = |block: &ContentBlock| block.as_text().is_some_and(|found| found.as_str() == text);
    messages.iter().any(|message| message.role == Role::User && message.content.iter().any(says))
}

/// All strategies that are built in, set so that they find something in a short thread.
fn strategies() -> Vec<Arc<dyn CompactionStrategy>> {
    vec![
        Arc::new(summarize()),
        Arc::new(Chunked::default()),
        Arc::new(FoldBatches { keep_recent: 4, ..FoldBatches::default() }),
        Arc::new(KeepRecent { messages: 4, ..KeepRecent::default() }),
        Arc::new(TrimToolResults::default()),
        Arc::new(Digest { messages: 4, digest_tokens: 600, ..Digest::default() }),
        Arc::new(Ladder::default()),
    ]
}

fn summarize() -> Summarize {
    Summarize { messages: 4, summary_tokens: 400, ..Summarize::default() }
}

// Compactions in a loop.

#[test]
fn compactions_that_do_not_bring_the_count_down_are_given_up_and_it_is_said() {
    // A provider that counts as much whatever it is sent.
    let model = Played::new(|_| counted("Well.", Usage::new(9_000, 10)));
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(keep)).policy(policy));
    let events = bench.chat(30);
    assert_eq!(begun_and_done(&events), (2, 2));
    assert_eq!(rests(&events), 1, "and whoever watches is told");
    bench.assert_sound();
}

#[test]
fn a_system_prompt_over_the_threshold_starts_no_compaction_and_is_said_once() {
    let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
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
fn a_summary_longer_than_what_it_replaces_is_not_asked_for_again_and_again() {
    let count = |request: &Request| if request.messages.len() < 20 { 500 } else { 9_000 };
    let model = Played::new(move |request| counted("Well.", Usage::new(count(request), 10)))
        .summing_up(|_| "word ".repeat(20_000).into());
    let strategy = Arc::new(summarize());
    let mut bench = bench(10_000, model, |b| b.strategy(strategy));
    let events = bench.chat(40);
    let (begun, done) = begun_and_done(&events);
    // Forty turns are some minutes here; a pause is twice as long as the one before.
    assert!((3..=8).contains(&begun), "{begun} of 40: {:?}", ends(&events));
    assert_eq!((done, bench.model.summaries().len()), (0, begun));
    assert_eq!(bench.session.messages().len(), 80, "nothing has changed");
    assert!(rests(&events) >= 1);
    bench.assert_sound();
}

#[test]
fn a_request_that_nothing_makes_fit_is_given_up_after_two_tries() {
    let store = Arc::<MemoryStore>::default();
    let mut before = opened(store.clone(), 100_000, 1_000, Played::new(chats), |b| b);
    before.chat(40);
    let model = Played::new(chats).summing_up(|_| " ".into());
    let strategy = Arc::new(Summarize { summary_tokens: 100, tokens: Some(800), ..summarize() });
    let mut bench = opened(store, 5_000, 1_000, model, |b| b.strategy(strategy));
    bench.window = 100_000;
    for sends in 1..=2 {
        let mut events = bench.events("And now?");
        assert_eq!(begun_and_done(&events), (2, 0), "{sends}");
        let error = events.pop().unwrap().unwrap_err();
        let SessionError::CannotFit { floor, tokens, limit, tried } = error else {
            panic!("{error}")
        };
        assert!(floor < limit && tokens > limit, "{floor} {tokens} {limit}");
        assert!(tried.is_some());
        assert_eq!(bench.model.requests().len(), 0, "{sends}: none of them fits, so none is sent");
    }
    assert!(!typed("And now?", bench.session.messages()));
    bench.assert_sound();
}

// The call that is to sum up is too long.

#[test]
fn a_thread_too_long_for_its_summariser_is_read_in_pieces() {
    let store = Arc::<MemoryStore>::default();
    let mut before = opened(store.clone(), 200_000, 1_000, Played::new(chats), |b| b);
    before.chat(150);
    assert!(before.session.context_tokens() > 2 * 8_000);
    // The same thread under a model with a much smaller window, by the default strategy.
    let model = Played::new(chats).summing_up(sums_up_in_prose);
    let mut bench = opened(store, 8_000, 1_000, model, |b| b);
    let events = bench.events("And now?");
    assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{events:?}");
    assert!(bench.model.summaries().len() > 2, "in pieces");
    let record = bench.records().pop().unwrap();
    let rungs: Vec<(&str, bool)> =
        record.rungs.iter().map(|rung| (rung.strategy.as_str(), rung.failure.is_none())).collect();
    assert_eq!(rungs, [("summarize", false), ("chunked", true)], "{:?}", record.rungs);
    // Every piece and what goes with it has fitted.
    bench.assert_sound();
}

#[test]
fn a_summariser_that_refuses_every_length_does_not_stop_the_turn() {
    let model = Played::new(chats).summing_up(|_| overflow(None));
    let mut bench = bench(9_000, model, |b| b);
    let events = bench.chat(60);
    let (begun, done) = begun_and_done(&events);
    assert!(begun >= 1 && begun == done, "{begun} {done}");
    for record in bench.records() {
        let last = record.rungs.last().unwrap();
        assert_eq!((last.strategy.as_str(), last.failure.as_ref()), ("digest", None));
    }
    bench.assert_sound();
}

#[test]
fn a_long_prompt_does_not_make_the_call_too_long_that_sums_up_before_it() {
    let strategies = strategies().into_iter().take(3);
    for strategy in strategies {
        let name = strategy.name().to_owned();
        let model = Played::new(chats).summing_up(sums_up_in_prose);
        let mut bench = bench(16_000, model, |b| b.strategy(strategy));
        bench.chat(60);
        let long = "and this was pasted into the prompt ".repeat(900);
        let events = bench.events(format!("Begin. {long} End."));
        assert!(begun_and_done(&events).1 >= 1, "{name}: {:?}", ends(&events));
        assert!(events.iter().all(Result::is_ok), "{name}: {events:?}");
        for request in bench.model.summaries() {
            let asked = texts(&request.messages);
            assert!(name == "fold-batches" || asked.contains("Begin. ") && asked.contains(" End."));
        }
        // The agent itself gets the whole of it.
        assert!(texts(&bench.last_asked().messages).contains(&long), "{name}");
        bench.assert_sound();
    }
}

// Looking only when a turn is over.

#[test]
fn a_turn_of_many_tools_is_compacted_before_it_is_too_long() {
    let refused = Arc::new(AtomicU64::default());
    let (count, works) = (refused.clone(), writes(60, 40));
    let model = Played::new(move |request| {
        if ByteEstimate::TRIGGER.request(request) > 12_000 {
            count.fetch_add(1, Ordering::Relaxed);
            return overflow(Some(12_000));
        }
        works(request)
    });
    let mut bench = bench(12_000, model.summing_up(sums_up_in_prose), |b| b);
    let events = bench.events("Write all parts.");
    let last = events.last().unwrap();
    assert!(matches!(last, Ok(SessionEvent::TurnEnded { rounds: 61, .. })), "{last:?}");
    assert!(begun_and_done(&events).1 >= 2, "{:?}", compactions(&events));
    assert_eq!(refused.load(Ordering::Relaxed), 0, "no provider had to say so");
    bench.assert_sound();
}

#[test]
fn a_prompt_that_is_about_to_be_sent_counts() {
    let mut bench = bench(10_000, Played::new(chats), |b| b.strategy(Arc::new(summarize())));
    bench.chat(50);
    let filled = bench.session.context_tokens();
    assert!(filled < 8_000 && begun_and_done(&bench.chat(1)).0 == 0);
    let long = "and what is there to say about this ".repeat(150);
    let events = bench.events(long.clone());
    assert_eq!(reasons(&events), [CompactionReason::Threshold]);
    assert_eq!(begun_and_done(&events), (1, 1));
    assert!(typed(&long, &bench.last_asked().messages));
    bench.assert_sound();
}

// A wrong window, or a wrong count.

#[test]
fn a_count_of_zero_is_no_measure() {
    let works = writes(60, 40);
    let model = Played::new(move |request| match works(request) {
        Answer::Turn(turn) => with_usage(turn, Usage::default()),
        answer => answer,
    });
    // The trigger waits where nobody counts; what does not fit is compacted all the same.
    let policy = AutoPolicy::default();
    let mut bench = bench(12_000, model, |b| b.policy(policy));
    let events = bench.events("Write all parts.");
    assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{events:?}");
    let reasons = reasons(&events);
    assert!(reasons.len() >= 2, "{reasons:?}");
    assert!(reasons.iter().all(|reason| *reason == CompactionReason::Overflow), "{reasons:?}");
    bench.assert_sound();
}

#[test]
fn a_count_that_adds_up_all_calls_does_not_compact_again_and_again() {
    for policy in [AutoPolicy::default(), policy()] {
        let sum = AtomicU64::default();
        let model = Played::new(move |request| {
            let tokens = ByteEstimate::TRIGGER.request(request);
            let input = sum.fetch_add(tokens, Ordering::Relaxed) + tokens;
            counted("Well.", Usage::new(input, 10))
        });
        let policy = AutoPolicy { cooldown_ms: 0, ..policy };
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
            let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
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
        let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
        let mut bench = bench(20_000, model, |b| b.policy(policy));
        // Too little was said for any strategy to take something.
        let events = bench.chat(4);
        assert_eq!(begun_and_done(&events).1, 0, "{:?}", compactions(&events));
        bench.assert_sound();
    }
}

#[test]
fn a_window_smaller_than_was_thought_is_learned_from_the_refusal() {
    let refused = Arc::new(AtomicU64::default());
    let count = refused.clone();
    let model = Played::new(move |request| {
        if ByteEstimate::TRIGGER.request(request) > 6_000 {
            count.fetch_add(1, Ordering::Relaxed);
            return overflow(Some(6_000));
        }
        chats(request)
    });
    let mut bench = bench(200_000, model, |b| b.strategy(Arc::new(summarize())));
    let events = bench.chat(100);
    assert_eq!(refused.load(Ordering::Relaxed), 1, "once, and never again");
    assert!(begun_and_done(&events).1 > 2);
    assert_eq!(reasons(&events)[..2], [CompactionReason::Overflow, CompactionReason::Threshold]);
    bench.assert_sound();
}

// A second compaction right behind the first.

#[test]
fn the_tokens_of_the_summary_call_are_not_taken_for_those_of_the_thread() {
    let model = Played::new(chats).summing_up(|_| counted("They talked.", Usage::new(9_500, 400)));
    let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(summarize())).policy(policy));
    bench.chat(12);
    let events = bench.events("/compact");
    assert_eq!(begun_and_done(&events), (1, 1));
    assert!(bench.session.context_tokens() < 2_000, "{}", bench.session.context_tokens());
    assert_eq!(begun_and_done(&bench.chat(3)), (0, 0));
    assert_eq!(bench.records()[0].usage, Usage::new(9_500, 400), "it is billed, and that is all");
}

#[test]
fn a_compaction_by_hand_is_not_followed_by_one_of_the_trigger() {
    let model = Played::new(|request| {
        let long = request.messages.len() > 14;
        let tokens = if long { 9_000 } else { ByteEstimate::TRIGGER.request(request) };
        counted("Well.", Usage::new(tokens, 10))
    });
    let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
    let keep = KeepRecent { messages: 1, ..KeepRecent::default() };
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(keep)).policy(policy));
    bench.chat(8);
    assert!(bench.session.context_tokens() >= 8_000, "the next request would be over");
    assert_eq!(begun_and_done(&bench.events("/compact")), (1, 1));
    assert!(bench.session.context_tokens() < 1_000, "what was counted before is forgotten");
    assert_eq!(begun_and_done(&bench.chat(5)), (0, 0));
    bench.assert_sound();
}

#[test]
fn a_thread_that_stays_over_the_threshold_is_not_compacted_again_before_it_was_counted() {
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
    let policy = AutoPolicy { cooldown_ms: 0, ..AutoPolicy::default() };
    let mut bench = bench(10_000, model, |b| b.strategy(Arc::new(keep)).policy(policy));
    let begun: Vec<usize> = (1..=20).map(|_| begun_and_done(&bench.chat(1)).0).collect();
    let at: Vec<usize> = (1..=20).filter(|turn| begun[turn - 1] > 0).collect();
    assert_eq!(at, [11, 17], "in these turns");
    bench.assert_sound();
}

// Calls and results.

#[test]
fn no_strategy_parts_calls_from_their_results_or_parallel_results_from_each_other() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(|request| {
            let rounds = request.messages.iter().rev().take_while(|m| !m.is_typed()).count() / 2;
            let done = request.messages.last().unwrap().tool_results().last().is_some();
            if done && rounds >= 3 {
                return "Done.".into();
            }
            let first = 10 * request.messages.len() as u64;
            calls(&[(first, 9), (first + 1, 1), (first + 2, 30)])
        });
        let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
        let mut bench = bench(9_000, model, |b| b.strategy(strategy).policy(policy));
        let events = bench.chat(12);
        assert!(begun_and_done(&events).1 >= 2, "{name}: {:?}", compactions(&events));
        for request in bench.model.asked() {
            assert_paired(&name, &request.messages);
            // No codec has to mend it either.
            for format in [&AnthropicMessages as &dyn WireFormat, &OpenAiChat] {
                let encoded = format.encode(&request, &EncodeOptions::default());
                assert_eq!(encoded.adjustments, [], "{name}");
            }
        }
        bench.assert_sound();
    }
}

/// Every message with calls is followed by one with their results, all of them and in their order.
fn assert_paired(name: &str, messages: &[Message]) {
    let ids = |message: Option<&Message>| -> Vec<String> {
        message.iter().flat_map(|m| m.tool_results()).map(|r| r.tool_use_id.to_string()).collect()
    };
    for (place, message) in messages.iter().enumerate() {
        let called: Vec<String> = message.tool_uses().map(|call| call.id.to_string()).collect();
        assert!(called.is_empty() || called.len() == 3, "{name}: {called:?}");
        if !called.is_empty() {
            assert_eq!(ids(messages.get(place + 1)), called, "{name}");
        }
        let called_before = place > 0 && messages[place - 1].tool_uses().next().is_some();
        assert!(ids(Some(message)).is_empty() || called_before, "{name}: at {place}");
    }
}

// Old tasks and finished work.

#[test]
fn the_newest_message_of_the_user_comes_last_and_behind_the_end_of_the_summary() {
    let newest = "Now count the doors, and nothing else.";
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        if ["keep-recent", "trim-tool-results"].contains(&name.as_str()) {
            continue;
        }
        let mut bench = bench(20_000, Played::new(chats), |b| b.strategy(strategy));
        bench.chat(20);
        let events = bench.events(format!("@compact {newest}"));
        assert_eq!(begun_and_done(&events), (1, 1), "{name}: {:?}", compactions(&events));
        let request = bench.last_asked();
        let last = request.messages.last().unwrap();
        assert_eq!(last.content[0].as_text().map(Text::as_str), Some(newest), "{name}");
        // The summary has an end that shows.
        let body = AnthropicMessages.encode(&request, &EncodeOptions::default()).body;
        let body = body.as_str();
        assert_eq!(body.matches("<conversation-summary>").count(), 1, "{name}");
        let end = body.find("</conversation-summary>").unwrap();
        assert!(body.find(newest).unwrap() > end, "{name}");
        // What was typed earlier is there once, and in its order.
        let rounds = request.messages.iter().filter(|message| message.is_typed()).map(round_of);
        let rounds: Vec<_> = rounds.collect();
        assert!(rounds.is_sorted() && rounds.last() == Some(&99), "{name}: {rounds:?}");
        assert_eq!(HashSet::<_>::from_iter(&rounds).len(), rounds.len(), "{name}: {rounds:?}");
        bench.assert_sound();
    }
}

/// The round of a question; that of anything else comes behind them all.
fn round_of(message: &Message) -> usize {
    (0..99).find(|round| typed(&question(*round), std::slice::from_ref(message))).unwrap_or(99)
}

#[test]
fn whoever_sums_up_is_told_to_tell_what_is_done_from_what_is_not() {
    let words = [
        ("summarize", "past tense about work that is done"),
        ("summarize", "what is finished, so that nobody does it again"),
        ("chunked", "what is done, what is in progress, what has not been started"),
        ("chunked", "You take no part in the conversation and do none of its work"),
        ("fold-batches", "in the order in which it happened"),
        ("fold-batches", "You take no part in the conversation and do none of its work"),
    ];
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let mut bench = bench(20_000, Played::new(chats), |b| b.strategy(strategy));
        bench.chat(20);
        bench.events("/compact");
        for request in bench.model.summaries() {
            let asked = serde_json::to_string(&(&request.system, &request.messages)).unwrap();
            for (_, words) in words.iter().filter(|(strategy, _)| *strategy == name) {
                assert!(asked.contains(words), "{name} does not say {words:?}");
            }
        }
        // The digest, which no model writes, says so itself.
        if name == "digest" {
            let summary = summaries(bench.session.messages()).pop().unwrap();
            assert!(summary.text.contains("The work they tell of is done"), "{}", summary.text);
        }
    }
}

#[test]
fn work_that_was_done_before_a_compaction_is_not_done_again() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
        let model = Played::new(writes(40, 40)).summing_up(sums_up_in_prose);
        let mut bench = bench(12_000, model, |b| b.strategy(strategy).policy(policy));
        let events = bench.events("Write all parts.");
        assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{name}");
        assert!(begun_and_done(&events).1 >= 1, "{name}: {:?}", compactions(&events));
        assert_eq!(bench.tool.parts(), (1..=40).collect::<Vec<_>>(), "{name}");
        bench.assert_sound();
    }
}

// Rules and corrections.

#[test]
fn what_the_user_typed_last_stays_word_for_word_under_every_strategy() {
    let task = "Write all parts, each in its own file, and never use tabs: \u{201e}ä\u{201c}  ok?";
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let works = writes(12, 30);
        let model = Played::new(move |request| {
            if typed(task, &request.messages) { works(request) } else { chats(request) }
        });
        let mut bench = bench(20_000, model, |b| b.strategy(strategy).compact_context_tool());
        bench.chat(10);
        bench.say(task).unwrap();
        let events = bench.events("/compact");
        assert_eq!(begun_and_done(&events), (1, 1), "{name}: {:?}", compactions(&events));
        assert!(typed(task, bench.session.messages()), "{name}");
        bench.assert_sound();
    }
}

#[test]
fn the_last_three_messages_of_the_user_outlive_a_summary() {
    for strategy in [
        Arc::new(summarize()) as Arc<dyn CompactionStrategy>,
        Arc::new(Digest { messages: 4, digest_tokens: 600, ..Digest::default() }),
        Arc::new(Ladder::default()),
    ] {
        let name = strategy.name().to_owned();
        let model = Played::new(chats).summing_up(|_| "They talked.".into());
        let mut bench = bench(20_000, model, |b| b.strategy(strategy));
        bench.chat(20);
        let first = bench.events("/compact");
        assert_eq!(begun_and_done(&first), (1, 1), "{name}");
        let kept: Vec<usize> =
            (0..20).filter(|round| typed(&question(*round), bench.session.messages())).collect();
        assert!(kept.len() >= 5, "two of the end, three of what was summed up; {name}: {kept:?}");
        assert_eq!(kept, (20 - kept.len()..20).collect::<Vec<_>>(), "{name}: the last ones");
    }
}

#[test]
fn a_rule_outlives_four_digests() {
    let rule = "You must never touch the lexer.";
    let model = Played::new(chats).summing_up(|_| fails(ModelErrorKind::Other));
    let mut bench = bench(20_000, model, |b| b);
    bench.chat(3);
    // Behind so much text that no beginning of a message holds it.
    bench.say(format!("{} {rule}", "Port the parser to Rust, file by file. ".repeat(12))).unwrap();
    for generation in 1..=4 {
        bench.chat(25);
        let events = bench.events("/compact");
        assert_eq!(begun_and_done(&events), (1, 1), "{generation}: {:?}", compactions(&events));
        bench.say("Go on.").unwrap();
        let sent = texts(&bench.last_asked().messages);
        assert!(sent.contains(rule), "generation {generation}: {sent}");
    }
    bench.assert_sound();
}

#[test]
fn whoever_sums_up_is_told_to_keep_every_rule_of_the_user() {
    for (strategy, words) in [
        (
            Arc::new(summarize()) as Arc<dyn CompactionStrategy>,
            "Every preference, constraint and correction that the user has stated. Quote them.",
        ),
        (
            Arc::new(Chunked::default()),
            "every rule, preference and correction that they stated, in their own words",
        ),
        (
            Arc::new(FoldBatches { keep_recent: 4, ..FoldBatches::default() }),
            "every constraint, preference and correction that the user stated, in their own words",
        ),
    ] {
        let mut bench = bench(20_000, Played::new(chats), |b| b.strategy(strategy));
        bench.chat(20);
        bench.events("/compact");
        let asked = bench.model.summaries();
        assert!(!asked.is_empty());
        for request in asked {
            let asked = serde_json::to_string(&(&request.system, &request.messages)).unwrap();
            assert!(asked.contains(words), "no {words:?}");
        }
    }
}

#[test]
fn the_system_prompt_is_the_same_in_every_request() {
    let mut bench = bench(9_000, Played::new(chats), |b| b.system("Never use tabs."));
    let events = bench.chat(60);
    assert!(begun_and_done(&events).1 >= 1);
    for request in bench.model.asked() {
        assert_eq!(request.system[..], [Message::system("Never use tabs.")]);
    }
}

// Tools.

#[test]
fn the_tools_are_offered_after_a_compaction_as_they_were_before() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
        let mut bench = bench(12_000, Played::new(writes(40, 40)), |b| {
            b.strategy(strategy).policy(policy).compact_context_tool()
        });
        let events = bench.events("Write all parts.");
        assert!(begun_and_done(&events).1 >= 1, "{name}: {:?}", compactions(&events));
        let asked = bench.model.asked();
        let names = ["write", COMPACT_CONTEXT];
        for request in &asked {
            let offered: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(offered, names, "{name}");
            // Whoever sums up must not call them; nothing of that is left behind.
            assert_eq!(request.tool_choice, None, "{name}");
            let body = AnthropicMessages.encode(request, &EncodeOptions::default()).body;
            assert!(!body.as_str().contains("tool_choice"), "{name}");
        }
    }
}

#[test]
fn no_strategy_writes_calls_as_text_into_the_thread() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(writes(12, 40)).summing_up(sums_up_in_prose);
        let mut bench = bench(12_000, model, |b| b.strategy(strategy));
        bench.events("Write all parts.");
        bench.events("@compact Write all parts.");
        assert!(!bench.records().is_empty(), "{name}");
        for request in bench.model.asked() {
            let texts = texts(&request.messages);
            let notations = [
                "tool_use",
                "tool_call",
                "tool_result",
                "<invoke",
                "<function",
                "call-",
                "\"lines\"",
            ];
            for notation in notations {
                assert!(!texts.contains(notation), "{name} writes {notation:?}: {texts}");
            }
        }
    }
}

/// Sums up in a line, by an edit where one is asked for.
fn sums_up_in_prose(request: &Request) -> Answer {
    let part = request.messages.iter().map(written).max().unwrap_or_default();
    let line = format!("They have written everything up to part {part}.");
    let edits = request.tools.iter().any(|tool| tool.name == "edl");
    let edited = request.messages.iter().any(|message| message.tool_results().next().is_some());
    if !edits || edited {
        return line.into();
    }
    let script = format!("file /summary.md\nselect eof\ninsert_after <<END\n{line}\nEND\n");
    let call = ToolUse::new("edit", "edl", json!({ "script": script }));
    Message::new(Role::Assistant, vec![call.into()]).into()
}

// Worse ways that nobody notices.

#[test]
fn the_rung_that_did_it_is_told_and_logged() {
    let broken = Played::new(chats).summing_up(|_| fails(ModelErrorKind::Other));
    for (model, did_it) in [(Played::new(chats), "summarize"), (broken, "digest")] {
        let rungs: [Arc<dyn CompactionStrategy>; 3] = [
            Arc::new(summarize()),
            Arc::new(TrimToolResults::default()),
            Arc::new(Digest::default()),
        ];
        let mut bench = bench(9_000, model, |b| b.strategy(Arc::new(Ladder::new(rungs))));
        let told = compactions(&bench.chat(90));
        let records = bench.records();
        assert!(!records.is_empty());
        let rungs: Vec<_> = told
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
fn a_summary_without_a_word_is_an_error_that_is_told_and_logged() {
    let strategies: [Arc<dyn CompactionStrategy>; 3] = [
        Arc::new(summarize()),
        Arc::new(Chunked::default()),
        Arc::new(FoldBatches { keep_recent: 4, ..FoldBatches::default() }),
    ];
    for strategy in strategies {
        for blank in [Misbehaviour::Blank, Misbehaviour::Empty] {
            let name = strategy.name().to_owned();
            let model = Played::new(chats).summing_up(move |request| {
                let answer = answer_of(HostileModel::new([blank]), request);
                answer.map_or_else(Answer::Error, Answer::Turn)
            });
            let mut bench = bench(20_000, model, |b| b.strategy(strategy.clone()));
            bench.chat(12);
            let before = bench.session.messages().clone();
            let told = compactions(&bench.events("/compact"));
            let Some(CompactionEvent::Failed { error, .. }) = told.last() else {
                panic!("{name}: {told:?}")
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
fn a_piece_of_a_run_without_a_word_is_an_error() {
    let sums = AtomicU64::default();
    let model = Played::new(chats).summing_up(move |request| {
        // The second batch comes back empty.
        match sums.fetch_add(1, Ordering::Relaxed) {
            1 => "\n".into(),
            _ => answer_of(ExtractiveModel, request).map_or_else(Answer::Error, Answer::Turn),
        }
    });
    let strategy = FoldBatches { keep_recent: 4, chunk_messages: 10, ..FoldBatches::default() };
    let mut bench = bench(20_000, model, |b| b.strategy(Arc::new(strategy)));
    bench.chat(20);
    let before = bench.session.messages().clone();
    let told = compactions(&bench.events("/compact"));
    assert!(matches!(told.last(), Some(CompactionEvent::Failed { .. })), "{told:?}");
    assert!(bench.model.summaries().len() >= 2);
    assert_eq!(*bench.session.messages(), before);
}

// Caches.

#[test]
fn below_the_threshold_no_message_is_ever_touched() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(|request| {
            if request.messages.last().unwrap().is_typed() {
                calls(&[(1, 60)])
            } else {
                chats(request)
            }
        });
        let policy = AutoPolicy { cooldown_ms: 0, after_turn: true, ..policy() };
        let mut bench =
            bench(100_000, model, |b| b.strategy(strategy).policy(policy).reminder("Be short."));
        let events = bench.chat(40);
        assert_eq!(begun_and_done(&events), (0, 0), "{name}");
        let asked = bench.model.asked();
        for (one, next) in asked.iter().zip(asked.iter().skip(1)) {
            assert!(one.messages.len() < next.messages.len(), "{name}");
            let same = one.messages.iter().zip(next.messages.iter()).all(|(a, b)| a.ptr_eq(b));
            assert!(same, "{name}: what was sent once is sent again as it was");
            assert_eq!((&one.system, &one.tools), (&next.system, &next.tools), "{name}");
        }
    }
}

#[test]
fn two_crossings_within_a_minute_are_one_compaction() {
    // Every turn is over the threshold again; some ten looks at the clock make one turn.
    let model = Played::new(|request| {
        let tokens = ByteEstimate::TRIGGER.request(request);
        let tokens = if request.messages.len() > 8 { 9_000 } else { tokens };
        counted("Well.", Usage::new(tokens, 10))
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
    assert!(begun_and_done(&events).1 >= 2, "after a minute it may come again");
}

#[test]
fn what_stands_before_the_first_edit_is_sent_byte_for_byte_as_before() {
    let model = Played::new(|request| {
        // Tools come into play late.
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
        AnthropicMessages.encode(request, &EncodeOptions::default()).body.as_str().to_owned()
    };
    let (before, after) = (body(&before), body(&after));
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let messages = shared.map(|(message, _)| texts(std::slice::from_ref(message)).len());
    assert!(same > messages.sum(), "{same} bytes are the same");
}

// Unattended runs.

#[test]
fn after_a_compaction_among_tool_calls_the_model_is_asked_on() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
        let model = Played::new(writes(40, 40)).summing_up(sums_up_in_prose);
        let mut bench = bench(12_000, model, |b| b.strategy(strategy).policy(policy));
        let reply = bench.say("Write all parts.").unwrap();
        assert_eq!(reply.text, "All parts are written.", "{name}");
        let asked = bench.model.asked();
        let compacted = asked
            .iter()
            .zip(asked.iter().skip(1))
            .any(|(one, next)| next.messages.len() <= one.messages.len());
        assert!(compacted || name == "trim-tool-results", "{name}");
        for request in asked {
            let last = request.messages.last().unwrap();
            assert_eq!(last.role, Role::User, "{name}: it is the model's turn");
            let asks = |block: &ContentBlock| {
                block.as_text().is_some_and(|text| text.as_str() == "Please continue.")
            };
            let asks = last.is_typed() || last.content.iter().any(asks);
            assert!(asks || last.tool_results().next().is_some(), "{name}: {last:?}");
        }
        bench.assert_sound();
    }
}

#[test]
fn please_continue_stands_only_where_nothing_else_asks_for_something() {
    const CONTINUE: &str = "Please continue.";
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = AutoPolicy { cooldown_ms: 0, ..policy() };
        let works = writes(30, 40);
        let model = Played::new(move |request| {
            let last = request.messages.last().unwrap();
            let asks = last
                .content
                .iter()
                .any(|block| block.as_text().is_some_and(|text| text.as_str().contains("Write")));
            if asks || last.tool_results().next().is_some() {
                works(request)
            } else {
                chats(request)
            }
        });
        let mut bench = bench(12_000, model, |b| b.strategy(strategy).policy(policy));
        bench.chat(20);
        bench.events("/compact");
        bench.say("@compact And now?").unwrap();
        bench.say("Write all parts.").unwrap();
        for request in bench.model.asked() {
            for (place, message) in request.messages.iter().enumerate() {
                let says = typed(CONTINUE, std::slice::from_ref(message));
                // Calls, results and prompts ask for an answer by themselves.
                let is_last = place + 1 == request.messages.len();
                assert!(!says || (is_last && message.is_summary()), "{name}: {message:?}");
            }
        }
        bench.assert_sound();
    }
}

#[test]
fn a_finished_agent_is_not_started_again_by_a_compaction() {
    for strategy in strategies().into_iter().filter(|one| one.name() != "trim-tool-results") {
        let name = strategy.name().to_owned();
        let policy = AutoPolicy { after_turn: true, cooldown_ms: 0, ..policy() };
        let mut bench = bench(9_000, Played::new(chats), |b| b.strategy(strategy).policy(policy));
        let mut after = 0;
        for round in 0..60 {
            let asked = bench.model.asked().len();
            let events = bench.events(question(round));
            let ended = events
                .iter()
                .position(|event| matches!(event, Ok(SessionEvent::TurnEnded { .. })))
                .unwrap();
            after += begun_and_done(&events[ended..]).1;
            assert_eq!(bench.model.asked().len(), asked + 1, "{name}: one answer for one prompt");
            assert!(!texts(bench.session.messages()).contains("Please continue."), "{name}");
        }
        assert!(after >= 1, "{name}: it was compacted behind a turn");
        bench.assert_sound();
    }
}

// What every compaction owes.

#[test]
fn the_calls_of_a_compaction_are_never_compacted_themselves() {
    // Whoever sums up counts as much as would start a compaction, with every call.
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(chats).summing_up(|request| {
            let answer = answer_of(ExtractiveModel, request).unwrap();
            with_usage(answer, Usage::new(19_000, 900))
        });
        let policy = AutoPolicy { cooldown_ms: 0, target: Target::Tokens(3_000), ..policy() };
        let mut bench = bench(20_000, model, |b| b.strategy(strategy).policy(policy));
        bench.chat(30);
        let mut open = None;
        for event in compactions(&bench.events("@compact And now?")) {
            match event {
                CompactionEvent::Started { id, .. } => assert_eq!(open.replace(id), None, "{name}"),
                event if event.is_end() => assert_eq!(open.take(), Some(event.id()), "{name}"),
                event => assert_eq!(open, Some(event.id()), "{name}"),
            }
        }
        assert!(bench.records().len() <= 1, "{name}: {:?}", bench.records());
    }
}

#[test]
fn what_cannot_fit_is_refused_with_the_numbers_of_its_parts() {
    let counter = ByteEstimate::TRIGGER;
    let (system, prompt) = ("Be kind. ".repeat(500), "And what is this? ".repeat(120));
    let mut bench = bench(2_000, Played::new(chats), |b| b.system(system.clone()));
    let error = bench.say(prompt.clone()).unwrap_err();
    let parts = counter.message(&Message::system(system))
        + counter.tools(&[Write::default().spec()])
        + counter.message(&Message::user(prompt));
    let SessionError::CannotFit { floor, tokens, limit, tried } = &error else { panic!("{error}") };
    assert_eq!((*floor, *tokens, *limit, tried.as_ref()), (parts, parts, 2_000, None));
    let numbers = [parts.to_string(), "2000".to_owned()];
    assert!(numbers.iter().all(|number| error.to_string().contains(number)), "{error}");
    assert_eq!((bench.model.requests().len(), bench.session.messages().len()), (0, 0));
    // What is short enough beside the same prompt is answered.
    assert!(bench.say("Hi.").is_ok());
}

/// What leads to a compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    Command,
    CommandAndPrompt,
    Tool,
    Threshold,
    Refusal,
    WindowTooSmall,
    AfterTurn,
}

const PATHS: [Path; 7] = [
    Path::Command,
    Path::CommandAndPrompt,
    Path::Tool,
    Path::Threshold,
    Path::Refusal,
    Path::WindowTooSmall,
    Path::AfterTurn,
];

impl Path {
    /// What is said to set off.
    fn says(self) -> String {
        match self {
            Self::Command => "/compact".into(),
            Self::CommandAndPrompt => "@compact Go.".into(),
            Self::Tool | Self::Threshold | Self::Refusal | Self::AfterTurn => "Go.".into(),
            Self::WindowTooSmall => "a long prompt it is ".repeat(1_350),
        }
    }

    fn reason(self) -> CompactionReason {
        match self {
            Self::Command | Self::CommandAndPrompt => CompactionReason::Manual { focus: None },
            Self::Tool => CompactionReason::AgentTool,
            Self::Threshold | Self::AfterTurn => CompactionReason::Threshold,
            Self::Refusal | Self::WindowTooSmall => CompactionReason::Overflow,
        }
    }

    /// A session in which the next thing said leads to a compaction.
    fn set(self, sums_up: fn(&Request) -> Answer) -> Bench {
        let model = Played::new(move |request| {
            let go = typed("Go.", &request.messages[request.messages.len() - 1..]);
            let compacted = !summaries(&request.messages).is_empty();
            let over = match self {
                Self::Threshold => request.messages.len() == 15,
                Self::AfterTurn => go,
                _ => false,
            };
            match self {
                Self::Refusal if go && !compacted => overflow(Some(5_000)),
                Self::Tool if go => {
                    let call = ToolUse::new("tidy", COMPACT_CONTEXT, json!({}));
                    Message::new(Role::Assistant, vec![call.into()]).into()
                }
                _ => counted(&"Well. ".repeat(40), Usage::new(if over { 8_500 } else { 500 }, 0)),
            }
        })
        .summing_up(sums_up);
        let strategy = Summarize {
            messages: 2,
            user_messages: 0,
            summary_tokens: 100,
            ..Summarize::default()
        };
        let policy = AutoPolicy {
            target: Target::Tokens(if self == Self::Tool { 600 } else { 5_000 }),
            after_turn: self == Self::AfterTurn,
            cooldown_ms: 0,
            ..AutoPolicy::default()
        };
        let mut bench = bench(10_000, model, |b| {
            b.strategy(Arc::new(strategy)).policy(policy).compact_context_tool()
        });
        assert_eq!(begun_and_done(&bench.chat(8)), (0, 0), "{self:?}");
        bench
    }
}

/// Every compaction that was told to begin was told to end, once, and in its turn.
fn assert_framed(path: Path, told: &[CompactionEvent]) {
    let mut open = None;
    for event in told {
        match event {
            CompactionEvent::Started { id, .. } => {
                assert_eq!(open.replace(*id), None, "{path:?}: {told:?}");
            }
            event if event.is_end() => {
                assert_eq!(open.take(), Some(event.id()), "{path:?}: {told:?}");
            }
            event => assert_eq!(open, Some(event.id()), "{path:?}: {told:?}"),
        }
    }
    assert_eq!(open, None, "{path:?}: {told:?}");
}

/// Polls a stream so often, or to its end; gives what came, and whether it ended.
fn poll<S: Stream + Unpin>(stream: &mut S, times: usize) -> (Vec<S::Item>, bool) {
    let waker = noop_waker();
    let mut context = Context::from_waker(&waker);
    let mut items = Vec::new();
    for _ in 0..times {
        match Pin::new(&mut *stream).poll_next(&mut context) {
            Poll::Ready(None) => return (items, true),
            Poll::Ready(Some(item)) => items.push(item),
            Poll::Pending => {}
        }
    }
    (items, false)
}

#[test]
fn every_compaction_has_one_beginning_and_one_end_wherever_it_is_dropped() {
    for path in PATHS {
        let (mut ended, mut polls, mut cancelled, mut done) = (false, 0, 0, 0);
        let mut last = Vec::new();
        while !ended {
            let mut bench = path.set(|_| "They talked.".into());
            let mut stream = bench.session.send(path.says());
            let (before, over) = poll(&mut stream, polls);
            ended = over;
            drop(stream);
            let after = bench.events("Well?");
            assert!(after.iter().all(Result::is_ok), "{path:?}, {polls}: {after:?}");
            let told = [compactions(&before), compactions(&after)].concat();
            assert_framed(path, &told);
            let is_cancelled =
                |event: &&CompactionEvent| matches!(event, CompactionEvent::Cancelled { .. });
            cancelled += told.iter().filter(is_cancelled).count();
            let first = reasons(&before).into_iter().chain(reasons(&after)).next();
            if ended {
                assert_eq!(first, Some(path.reason()), "{path:?}");
                done = begun_and_done(&before).1;
                last = ends(&before);
            }
            // What was told is what the log has, but for what was dropped before it was told of.
            let logged = bench.records().len();
            let told_done =
                told.iter().filter(|event| matches!(event, CompactionEvent::Completed { .. }));
            assert_eq!(told_done.count(), logged, "{path:?}, {polls}");
            assert_eq!(bench.session.log().replay().unwrap(), bench.session.messages()[..]);
            polls += 1;
        }
        assert_eq!(done, 1, "{path:?}: {last:?}");
        assert!(polls > 6 && cancelled >= 1, "{path:?}: {polls} polls, {cancelled} cancelled");
    }
}

#[test]
fn every_compaction_that_fails_has_one_end_too() {
    for path in PATHS {
        for sums_up in [|_: &Request| fails(ModelErrorKind::Other), |_: &Request| " ".into()] {
            let mut bench = path.set(sums_up);
            let events = bench.events(path.says());
            let told = compactions(&events);
            assert_framed(path, &told);
            assert_eq!(reasons(&events).first(), Some(&path.reason()), "{path:?}");
            let failed = |event: &CompactionEvent| matches!(event, CompactionEvent::Failed { .. });
            let ends: Vec<_> = told.iter().filter(|event| event.is_end()).collect();
            assert!(
                !ends.is_empty() && ends.iter().all(|event| failed(event)),
                "{path:?}: {told:?}"
            );
            let logged = bench
                .session
                .log()
                .events()
                .iter()
                .filter(|logged| matches!(logged.event, Event::CompactionFailed(_)));
            assert_eq!(logged.count(), ends.len(), "{path:?}");
            // Only what has to be compacted stops the turn.
            let needed = matches!(path, Path::Refusal | Path::WindowTooSmall);
            assert_eq!(events.iter().any(Result::is_err), needed, "{path:?}: {events:?}");
        }
    }
}
