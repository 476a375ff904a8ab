//! What a turn costs, counted and not timed: as much in a thread of 100,000 messages as in one of
//! 1,000. Counted are the allocations and their bytes, what the counter of tokens is given, and
//! whether the vector that holds the messages was copied, which its address tells.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::{
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
    ContextWindow, Message, ModelAgent, Request, Role, Session, Thread, TokenCounter, Turn, Usage,
    async_trait,
    message::{Delta, Json, Messages, StopReason, ToolSpec, ToolUse},
    model::{Model, ModelError, Tool, ToolContext, ToolFailure, ToolOutput},
    store::{Journal, MemoryStore},
};

const SIZES: [usize; 2] = [1_000, 100_000];

/// A model with a call for what the user says and a text for the result, as a stream.
#[derive(Debug)]
struct Caller {
    keeps: Keeps,
    last: Mutex<Option<Request>>,
}

/// How long a model holds on to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// It does not.
    Nothing,
    /// As long as its answer streams, and however long nobody drops that.
    WhileStreaming,
    /// Until the next one comes.
    UntilTheNext,
}

/// A tool that hands the messages on, as one does that asks an agent of its own about them.
#[derive(Debug, Default)]
struct Handing(Mutex<Option<Messages>>);

/// A counter that counts what it is given.
#[derive(Debug, Default)]
struct Counting {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// What a turn cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    allocations: u64,
    bytes: u64,
    messages_counted: u64,
    bytes_counted: u64,
    vector_moved: bool,
}

#[test]
fn a_turn_costs_the_same_at_every_length() {
    for (calls, stored) in [(false, false), (true, false), (false, true), (true, true)] {
        let [small, large] = SIZES.map(|count| cost(count, calls, stored, Keeps::Nothing));
        assert_eq!(small, large, "calls: {calls}, stored: {stored}");
        assert!(!large.vector_moved, "calls: {calls}, stored: {stored}");
        assert!(large.bytes < 20_000, "{large:?}");
    }
}

#[test]
fn a_turn_counts_no_message_but_those_at_the_end() {
    let [text, calls] = [false, true].map(|calls| cost(100_000, calls, false, Keeps::Nothing));
    // What comes is counted when it comes; the prompt before, too, and what is newest at each look.
    assert!(text.messages_counted <= 6, "{text:?}");
    assert!(calls.messages_counted <= 12, "{calls:?}");
}

#[test]
fn a_request_that_a_stream_holds_is_gone_before_the_answer_is_appended() {
    let [small, large] = SIZES.map(|count| cost(count, true, false, Keeps::WhileStreaming));
    assert_eq!(small, large);
    assert!(!large.vector_moved);
}

#[test]
fn whoever_keeps_a_request_has_the_handles_copied_and_no_text() {
    let counts = SIZES.map(|count| cost(count, false, false, Keeps::UntilTheNext));
    assert!(counts.iter().all(|cost| cost.vector_moved), "{counts:?}");
    // A few words for each message, whatever it says. What is counted is the same.
    let grown = counts[1].bytes.saturating_sub(counts[0].bytes);
    assert!(grown < 100_000 * 32, "{counts:?}");
    assert_eq!(counts[0].allocations, counts[1].allocations);
    assert_eq!(counts[0].bytes_counted, counts[1].bytes_counted);
}

#[test]
fn looking_costs_nothing() {
    let (session, counter) = session(100_000, Caller::new(Keeps::Nothing), false, false);
    let before = counter.given().0;
    let looked = measure(|| {
        assert!(session.context_tokens() > 0);
        assert!(session.window().is_some());
        assert!(session.messages().len() >= 100_000);
    });
    assert_eq!((looked.count_total, looked.bytes_total), (0, 0));
    assert_eq!(counter.given().0 - before, 1, "the newest message");
}

/// What a turn in the middle of some costs: now and then a vector grows.
fn cost(count: usize, calls: bool, stored: bool, keeps: Keeps) -> Cost {
    let (mut session, counter) = session(count, Caller::new(keeps), calls, stored);
    let mut costs: Vec<Cost> = (0..9).map(|_| turn(&mut session, &counter)).collect();
    costs.sort_unstable();
    assert_eq!(session.log().len() as usize, session.messages().len());
    costs[4]
}

fn turn(session: &mut Session, counter: &Counting) -> Cost {
    let (messages, bytes) = counter.given();
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
        vector_moved: session.messages().as_ptr() != before,
    }
}

/// A session in the middle of a long thread, within a window that nothing fills.
fn session(count: usize, model: Caller, calls: bool, stored: bool) -> (Session, Arc<Counting>) {
    let counter = Arc::new(Counting::default());
    let mut thread = Thread::new(Arc::<Counting>::clone(&counter));
    thread.extend((0..count).map(|number| match number % 2 {
        0 => Message::user(format!("Question {number}?")),
        _ => Message::assistant(format!("Answer {number}.")),
    }));
    let agent = ModelAgent::new(Arc::new(model))
        .with_thread(thread)
        .with_window(ContextWindow::new(1_000_000_000_000));
    let mut builder = Session::builder(agent).system("Be brief.");
    if calls {
        builder = builder.tool(Arc::new(Handing::default()));
    }
    if stored {
        let opened = Journal::open(Arc::new(MemoryStore::default()), "main".parse().unwrap());
        builder = builder.journal(block_on(opened).unwrap());
    }
    let mut session = builder.build().unwrap();
    turn(&mut session, &counter);
    (session, counter)
}

impl Caller {
    fn new(keeps: Keeps) -> Self {
        Self { keeps, last: Mutex::default() }
    }

    fn answer(request: &Request) -> Turn {
        let answered = request.messages.last().unwrap().tool_results().next().is_some();
        let usage = Some(Usage::new(1_000, 10));
        if answered || request.tools.is_empty() {
            return Turn::new(Message::assistant("It is done."), StopReason::EndTurn, usage);
        }
        let call = ToolUse::new("t1", "hand", Json::parse("{}").unwrap());
        let call = Message::new(Role::Assistant, vec![call.into()]);
        Turn::new(call, StopReason::ToolUse, usage)
    }
}

#[async_trait]
impl Model for Caller {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        Ok(Self::answer(&request))
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let turn = Self::answer(&request);
        let deltas = [Ok(Delta::Text { text: turn.text().into() }), Ok(Delta::Turn { turn })];
        let held = match self.keeps {
            Keeps::Nothing => None,
            Keeps::WhileStreaming => Some(request),
            Keeps::UntilTheNext => {
                *self.last.lock().unwrap() = Some(request);
                None
            }
        };
        // It never ends by itself, so what it holds is held until it is dropped.
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
    ) -> Result<ToolOutput, ToolFailure> {
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
