//! The cost of a turn, counted instead of timed: it is the same in a thread of 100,000 messages as
//! in one of 1,000. Counted are allocations and their bytes, the texts that the token counter and
//! the redactor get, and, by its address, whether the vector of messages was copied.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use allocation_counter::measure;
use futures::{StreamExt, executor::block_on, stream, stream::BoxStream};
use serde_json::json;
use threadfold::{
    Answer, ContextWindow, Message, ModelAgent, Request, Role, Session, TokenCounter, Usage,
    async_trait,
    drive::{self, Models},
    message::{Delta, Json, Redactor, StopReason, ToolSpec, ToolUse},
    model::{Clock, Model, ModelError, Tool, ToolContext, ToolOutput},
    retention::RetentionPolicy,
    store::{Journal, MemoryStore},
    strategy::{Brief, Snapshot, Summarize},
    testing::ScriptedModel,
};
use threadfold_testing::TestClock;

const SIZES: [usize; 2] = [1_000, 100_000];

/// A model that calls a tool for a user message and answers its result with a text, as a stream.
#[derive(Debug)]
struct Caller {
    keeps: Keeps,
    last: Mutex<Option<Request>>,
}

/// How long a model keeps the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// It does not keep it.
    Nothing,
    /// As long as its answer streams, and until the stream is dropped.
    WhileStreaming,
    /// Until the next request.
    UntilTheNext,
}

/// A tool that passes the messages on, such as one that asks another agent about them.
#[derive(Debug, Default)]
struct Handing(Mutex<Option<Arc<Vec<Message>>>>);

/// A counter that counts what it is given.
#[derive(Debug, Default)]
struct Counting {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// A redactor that counts what it is given.
#[derive(Debug, Default)]
struct Reading(AtomicU64);

/// The parts of a session besides its model.
#[derive(Clone, Copy, Debug, Default)]
struct With {
    calls: bool,
    stored: bool,
    /// Retention, a redactor, reminders, standing rules in the system prompt, and the
    /// session's own tools.
    everything: bool,
}

/// The cost of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    allocations: u64,
    bytes: u64,
    messages_counted: u64,
    bytes_counted: u64,
    bytes_redacted: u64,
    vector_moved: bool,
}

#[test]
fn a_turn_costs_the_same_at_every_length() {
    // The maximum allocations and bytes, including those of the model and the tool. They do not
    // depend on the length of the thread; a few more or fewer do not matter beside a call of a
    // model.
    let rows = [
        (false, false, 22, 3_500),
        (true, false, 50, 6_500),
        (false, true, 26, 3_800),
        (true, true, 58, 7_100),
    ];
    for (calls, stored, allocations, bytes) in rows {
        let with = With { calls, stored, everything: false };
        let [small, large] = SIZES.map(|count| cost(count, with, Keeps::Nothing));
        assert_eq!(small, large, "{with:?}");
        assert!(!large.vector_moved, "{with:?}");
        assert!(large.allocations <= allocations && large.bytes < bytes, "{with:?}: {large:?}");
    }
}

#[test]
fn a_turn_with_all_features_costs_the_same_at_every_length() {
    let with = With { calls: true, stored: true, everything: true };
    let [small, large] = SIZES.map(|count| cost(count, with, Keeps::Nothing));
    assert_eq!(small, large);
    assert!(!large.vector_moved);
    assert!(large.bytes < 14_000, "{large:?}");
    // At most the new texts: question, reminder, call, result, answer.
    assert!(large.bytes_redacted < 400, "{large:?}");
}

#[test]
fn a_turn_counts_only_the_new_messages() {
    let [text, calls] =
        [false, true].map(|calls| cost(100_000, With { calls, ..With::default() }, Keeps::Nothing));
    // A message is counted when it arrives; a prompt also before.
    assert_eq!((text.messages_counted, calls.messages_counted), (3, 5));
}

#[test]
fn a_request_held_by_a_stream_is_dropped_before_the_answer_is_appended() {
    let [small, large] = SIZES
        .map(|count| cost(count, With { calls: true, ..With::default() }, Keeps::WhileStreaming));
    assert_eq!(small, large);
    assert!(!large.vector_moved);
}

#[test]
fn keeping_a_request_copies_handles_and_no_text() {
    let counts = SIZES.map(|count| cost(count, With::default(), Keeps::UntilTheNext));
    assert!(counts.iter().all(|cost| cost.vector_moved), "{counts:?}");
    // A handle has 16 bytes, and the copy has room for an eighth more. The number of counted
    // messages is the same.
    let grown = counts[1].bytes.saturating_sub(counts[0].bytes);
    assert!(grown < 100_000 * 24, "{counts:?}");
    assert_eq!(counts[0].allocations, counts[1].allocations);
    assert_eq!(counts[0].bytes_counted, counts[1].bytes_counted);
}

#[test]
fn the_clock_is_read_once_after_each_step_that_takes_time() {
    let asked = [false, true].map(|calls| {
        let clock = Arc::new(TestClock::ticking(0, 1));
        let agent = ModelAgent::new(Arc::new(Caller::new(Keeps::Nothing)));
        let mut builder = Session::builder(agent).clock(Arc::<TestClock>::clone(&clock));
        if calls {
            builder = builder.tool(Arc::new(Handing::default()));
        }
        let mut session = builder.build().unwrap();
        let before = clock.now().0 + 1;
        block_on(async { session.send("And now?").await }).unwrap();
        let times =
            session.log().events().iter().map(|logged| logged.at.0 - before).collect::<Vec<_>>();
        (clock.now().0 - before, times)
    });
    // The prompt, each answer, and the results.
    assert_eq!(asked, [(2, vec![0, 1]), (4, vec![0, 1, 2, 3])]);
}

#[test]
fn reading_values_costs_nothing() {
    let (session, (counter, _)) = session(100_000, Caller::new(Keeps::Nothing), With::default());
    let before = counter.given().0;
    let looked = measure(|| {
        assert!(session.context_tokens() > 0);
        assert!(session.window().is_some());
        assert!(session.messages().len() >= 100_000);
    });
    assert_eq!((looked.count_total, looked.bytes_total), (0, 0));
    assert_eq!(counter.given().0 - before, 0, "the size of each message is known");
}

#[test]
fn a_compaction_reads_no_prose_if_the_user_took_nothing_back() {
    let messages = (0..2_000).map(|number| match number % 2 {
        0 => Message::user(format!("Look at part {number} of the parser, and mend its limit.")),
        _ => Message::assistant(format!("Part {number} is mended.")),
    });
    let (thread, brief) = (Snapshot::new(messages.collect::<Vec<_>>()), Brief::default());
    let (model, strategy) = (ScriptedModel::new(["They mend it."]), Summarize::default());
    let models = Models::one(&model);
    let allocated = measure(|| {
        let mut observe = |_: &_, _: Option<&_>| {};
        let proposal = drive::propose(&strategy, &thread, &brief, models, &mut observe);
        assert_eq!(block_on(proposal).unwrap().calls, 1);
    });
    // To read a sentence, and to compare it with others, takes eight.
    assert!(allocated.count_total < 2_000, "{allocated:?}");
}

/// The average cost of a turn in the middle of some, because sometimes a vector or a map grows.
fn cost(count: usize, with: With, keeps: Keeps) -> Cost {
    let (mut session, counters) = session(count, Caller::new(keeps), with);
    let mut costs: Vec<Cost> = (0..31).map(|_| turn(&mut session, &counters)).collect();
    costs.sort_unstable();
    let rules = usize::from(with.everything);
    assert_eq!(session.log().len() as usize, session.messages().len() + rules);
    costs[15]
}

fn turn(session: &mut Session, (counter, redactor): &(Arc<Counting>, Arc<Reading>)) -> Cost {
    let (messages, bytes) = counter.given();
    let redacted = redactor.0.load(Ordering::Relaxed);
    let before = session.messages().as_ptr();
    let allocated = measure(|| {
        let reply = block_on(async { session.send("And now?").await }).unwrap();
        assert_eq!(reply.text, "It is done.");
    });
    let after = counter.given();
    Cost {
        allocations: allocated.count_total,
        bytes: allocated.bytes_total,
        messages_counted: after.0 - messages,
        bytes_counted: after.1 - bytes,
        bytes_redacted: redactor.0.load(Ordering::Relaxed) - redacted,
        vector_moved: session.messages().as_ptr() != before,
    }
}

/// A session in the middle of a long thread, in a very large window.
fn session(count: usize, model: Caller, with: With) -> (Session, (Arc<Counting>, Arc<Reading>)) {
    let (counter, redactor) = (Arc::new(Counting::default()), Arc::new(Reading::default()));
    let messages = (0..count).map(|number| match number % 2 {
        0 => Message::user(format!("Question {number}?")),
        _ => Message::assistant(format!("Answer {number}.")),
    });
    let agent = ModelAgent::new(Arc::new(model)).with_window(ContextWindow::new(1_000_000_000_000));
    let mut builder = Session::builder(agent).system("Be brief.").messages(messages);
    builder = builder.counter(Arc::<Counting>::clone(&counter) as _);
    if with.calls {
        builder = builder.tool(Arc::new(Handing::default()));
    }
    if with.everything {
        builder = builder
            .retention(RetentionPolicy::default())
            .redactor(Arc::<Reading>::clone(&redactor))
            .reminder("Tests are to pass.")
            .rule("Never send mails.")
            .rules_in_system_prompt()
            .compact_tool()
            .compact_context_tool()
            .recall_tool();
    }
    if with.stored {
        let opened = Journal::open(Arc::new(MemoryStore::default()), "main".parse().unwrap());
        builder = builder.journal(block_on(opened).unwrap());
    }
    let mut session = builder.build().unwrap();
    let counters = (counter, redactor);
    turn(&mut session, &counters);
    (session, counters)
}

impl Caller {
    fn new(keeps: Keeps) -> Self {
        Self { keeps, last: Mutex::default() }
    }

    fn answer(request: &Request) -> Answer {
        let answered = request.messages.last().unwrap().tool_results().next().is_some();
        let usage = Some(Usage::new(1_000, 10));
        if answered || request.tools.is_empty() {
            return Answer::new(Message::assistant("It is done."), StopReason::EndTurn, usage);
        }
        let call = ToolUse::new("t1", "hand", Json::parse("{}").unwrap());
        let call = Message::new(Role::Assistant, vec![call.into()]);
        Answer::new(call, StopReason::ToolUse, usage)
    }
}

#[async_trait]
impl Model for Caller {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        Ok(Self::answer(&request))
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let turn = Self::answer(&request);
        let deltas =
            [Ok(Delta::Text { text: turn.text().into() }), Ok(Delta::Answer { answer: turn })];
        let held = match self.keeps {
            Keeps::Nothing => None,
            Keeps::WhileStreaming => Some(request),
            Keeps::UntilTheNext => {
                *self.last.lock().unwrap() = Some(request);
                None
            }
        };
        // The stream never ends, so it keeps what it holds until it is dropped.
        let rest = stream::poll_fn(
            move |_| if held.is_some() { Poll::Pending } else { Poll::Ready(None) },
        );
        stream::iter(deltas).chain(rest).boxed()
    }
}

#[async_trait]
impl Tool for Handing {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("hand", "Hands the messages on.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        *self.0.lock().unwrap() = Some(context.messages.clone());
        let asked = self.0.lock().unwrap().take();
        Ok(ToolOutput::from(format!("{}", asked.is_some())))
    }
}

impl Counting {
    fn given(&self) -> (u64, u64) {
        (self.messages.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Redactor for Reading {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.fetch_add(text.len() as u64, Ordering::Relaxed);
        text.into()
    }
}

impl TokenCounter for Counting {
    fn text(&self, text: &str) -> u64 {
        self.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        text.len() as u64
    }

    fn message(&self, message: &Message) -> u64 {
        self.messages.fetch_add(1, Ordering::Relaxed);
        message.content.iter().map(|block| self.block(block)).sum()
    }
}
