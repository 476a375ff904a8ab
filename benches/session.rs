//! The cost of a session's turn without the model call, at 1,000, 10,000 and 100,000 messages.
//!
//! `cargo bench --bench session` prints for each kind of turn and each size: the shortest, median
//! and longest time in microseconds; the same for sending the request to the same model directly;
//! the difference of the medians, which is the session's own time; its exponent of growth from the
//! previous size; the number of allocations of a turn, and the maximum of bytes that it holds at
//! one time in addition to earlier ones. The window is so large that nothing is compacted. A second
//! table has the values that are read on every turn, in nanoseconds.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::{hint::black_box, sync::Arc};

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Answer, CheckpointId, ContentBlock, ContextWindow, Message, ModelAgent, Request, Role, Session,
    Thread, Usage, async_trait,
    auto::Pressure,
    message::{Json, StopReason, ThreadId, ToolSpec, ToolUse},
    model::{Model, ModelError, Tool, ToolContext, ToolOutput, answer_of},
    session::SessionBuilder,
    store::{Journal, MemoryStore},
};
use yardstick::{Cost, Spread, is_test, thread, time};

/// A model that answers at once: with a tool call to a user's text if `calls` is set, otherwise
/// with text.
#[derive(Debug)]
struct Prompt {
    calls: bool,
    text: Answer,
    call: Answer,
}

/// A tool that returns its result at once.
#[derive(Debug)]
struct AtHand;

/// One kind of turn: the session's time and the model's.
struct Row {
    name: &'static str,
    session: Spread,
    direct: Spread,
    /// The median cost of a turn: in some turns a vector grows.
    cost: Cost,
}

fn main() {
    let quick = is_test();
    let sizes: &[usize] = if quick { &[200] } else { &[1_000, 10_000, 100_000] };
    let turns = if quick { 10 } else { 2_000 };
    let mut before: Option<(usize, Vec<Row>)> = None;
    for count in sizes {
        let messages = thread::thread(*count);
        let rows = measure(&messages, turns);
        print(*count, &rows, before.as_ref());
        look_up(&messages, turns);
        before = Some((*count, rows));
    }
}

fn print(count: usize, rows: &[Row], before: Option<&(usize, Vec<Row>)>) {
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>9} {:>7} {:>10}",
        "turn",
        "messages",
        "least us",
        "middle us",
        "most us",
        "direct us",
        "own us",
        "exponent",
        "allocs",
        "peak bytes"
    );
    for (index, row) in rows.iter().enumerate() {
        let growth = before.map(|(small, rows)| {
            let sizes = count as f64 / *small as f64;
            (row.own() / rows[index].own()).log10() / sizes.log10()
        });
        println!(
            "{:<34} {count:>9} {:>9.2} {:>9.2} {:>9.2} {:>10.2} {:>8.2} {:>9} {:>7} {:>10}",
            row.name,
            row.session.least.as_secs_f64() * 1e6,
            row.session.middle.as_secs_f64() * 1e6,
            row.session.most.as_secs_f64() * 1e6,
            row.direct.middle.as_secs_f64() * 1e6,
            row.own(),
            growth.map(|growth| format!("{growth:.2}")).unwrap_or_default(),
            row.cost.allocations,
            row.cost.peak,
        );
    }
    println!();
}

impl Row {
    /// The microseconds of a turn without the model's.
    fn own(&self) -> f64 {
        (self.session.middle.as_secs_f64() - self.direct.middle.as_secs_f64()).max(1e-9) * 1e6
    }
}

fn measure(messages: &[Message], turns: usize) -> Vec<Row> {
    let plain = |builder: SessionBuilder| builder;
    let stored = |builder: SessionBuilder| {
        let opened = Journal::open(Arc::new(MemoryStore::default()), thread_id());
        builder.journal(block_on(opened).expect("an empty store"))
    };
    vec![
        row("text", messages, Prompt::new(false), plain, turns),
        row("text, with a store in memory", messages, Prompt::new(false), stored, turns),
        row("one call and its result", messages, Prompt::new(true), plain, turns),
        row("one call, with a store in memory", messages, Prompt::new(true), stored, turns),
    ]
}

fn row(
    name: &'static str,
    messages: &[Message],
    model: Prompt,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
    turns: usize,
) -> Row {
    let model: Arc<dyn Model> = Arc::new(model);
    let agent =
        ModelAgent::new(Arc::clone(&model)).with_window(ContextWindow::new(1_000_000_000_000));
    let builder = Session::builder(agent).messages(messages.iter().cloned());
    let builder = builder.tool(Arc::new(AtHand)).system("Be brief.");
    let mut session = build(builder).build().expect("a session");
    let mut turn = || block_on(session.send("And now?").into_future()).expect("a reply");
    // Open calls are answered, and the thread's vector has grown.
    (0..turns / 10 + 1).for_each(|_| drop(turn()));
    let timed = time(turns, || (), |()| turn());
    let mut costs: Vec<Cost> = (0..9).map(|_| Cost::of((), |()| turn())).collect();
    costs.sort_by_key(|cost| (cost.allocations, cost.peak));
    let direct = direct(model.as_ref(), session.messages(), turns);
    Row { name, session: timed, direct, cost: costs[4] }
}

/// The cost of a turn without a session: the same requests to the same model, and the same call.
fn direct(model: &dyn Model, messages: &Arc<Vec<Message>>, turns: usize) -> Spread {
    let specs = vec![AtHand.spec()].into();
    let system = vec![Message::system("Be brief.")].into();
    let request = Request { system, tools: specs, ..Request::new(messages.clone()) };
    let (asked, answered) = (Message::user("And now?"), results());
    let with = |last: &Message| {
        let mut request = request.clone();
        Arc::make_mut(&mut request.messages).push(last.clone());
        request
    };
    let (first, second) = (with(&asked), with(&answered));
    let id = thread_id();
    time(
        turns,
        || (first.clone(), second.clone()),
        |(first, second)| {
            block_on(async {
                let turn = answer_of(model.stream(first)).await.expect("an answer");
                let Some(call) = turn.message.tool_uses().next() else { return turn };
                let context = ToolContext::new(&id, messages);
                black_box(AtHand.call(call, &context).await.expect("a result"));
                answer_of(model.stream(second)).await.expect("an answer")
            })
        },
    )
}

fn results() -> Message {
    let result = threadfold::message::ToolResult::text("t1", "At hand.");
    Message::new(Role::User, vec![result.into()])
}

/// Values that are read on every turn. Each is read a thousand times, because the clock is too
/// coarse.
fn look_up(messages: &[Message], times: usize) {
    let thread: Thread = messages.iter().cloned().collect();
    let ids: Vec<CheckpointId> = messages.iter().flat_map(checkpoints).take(1_000).collect();
    let agent = ModelAgent::new(Arc::new(Prompt::new(false)))
        .with_window(ContextWindow::new(1_000_000_000_000));
    let builder = Session::builder(agent).messages(messages.iter().cloned());
    let session = builder.build().expect("a session");
    let look = |work: &dyn Fn(usize)| {
        time((times / 10).max(1), || (), |()| (0..1_000).for_each(|turn| work(black_box(turn))))
    };
    let seen = |looked: usize| assert!(black_box(looked) < usize::MAX);
    let rows = [
        ("context_tokens", look(&|_| seen(session.context_tokens() as usize))),
        ("context_usage", look(&|_| seen(Pressure::of(&thread).since as usize))),
        ("open_calls", look(&|_| seen(thread.open_calls().len()))),
        (
            "checkpoint",
            look(&|turn| {
                seen(thread.checkpoint(ids[turn % ids.len()]).map_or(0, |place| place.message));
            }),
        ),
    ];
    println!("{:<34} {:>9} {:>9} {:>9}", "looked up, ns", "least", "middle", "most");
    for (name, spread) in rows {
        // A thousand reads: the microseconds of all are the nanoseconds of each.
        let each = |all: std::time::Duration| all.as_secs_f64() * 1e6;
        let (least, middle, most) = (each(spread.least), each(spread.middle), each(spread.most));
        println!("{name:<34} {least:>9.1} {middle:>9.1} {most:>9.1}");
    }
    println!();
}

fn checkpoints(message: &Message) -> impl Iterator<Item = CheckpointId> {
    message.content.iter().filter_map(|block| {
        if let ContentBlock::Checkpoint(checkpoint) = block { Some(checkpoint.id) } else { None }
    })
}

fn thread_id() -> ThreadId {
    "main".parse().expect("an id")
}

impl Prompt {
    fn new(calls: bool) -> Self {
        let usage = Some(Usage::new(1_000, 10));
        let call = ToolUse::new("t1", "at_hand", Json::parse("{}").expect("JSON"));
        let call = Message::new(Role::Assistant, vec![call.into()]);
        Self {
            calls,
            text: Answer::new(Message::assistant("It is done."), StopReason::EndTurn, usage),
            call: Answer::new(call, StopReason::ToolUse, usage),
        }
    }
}

#[async_trait]
impl Model for Prompt {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let last = request.messages.last();
        let answered = last.is_some_and(|message| message.tool_results().next().is_some());
        Ok(if self.calls && !answered { self.call.clone() } else { self.text.clone() })
    }
}

#[async_trait]
impl Tool for AtHand {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("at_hand", "Gives what is at hand.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok(ToolOutput::from("At hand."))
    }
}
