//! Measures the memory of idle sessions, and the time to open a short and a long thread. Run it
//! with `cargo bench -p threadfold-sqlite --bench sessions`; a number after `--` is the number of
//! sessions.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Answer, ContextWindow, EventLog, Message, ModelAgent, Plan, Request, Role, Session,
    ThreadStore, async_trait,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event, LogId},
    message::{CompactionReason, ModelError, StopReason, ThreadId, Timestamp, ToolSpec, ToolUse},
    model::{Model, Tool, ToolContext, ToolOutput},
    store::Journal,
};
use threadfold_sqlite::SqliteStore;

const TURNS: usize = 60;

/// The number of turns that each session runs itself. The turns before them are copied from the
/// first session.
const PLAYED: usize = 4;

/// The rounds of tools in a turn.
const ROUNDS: usize = 4;

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let given = std::env::args().find_map(|argument| argument.parse().ok());
    let sessions = given.unwrap_or(if is_test { 2 } else { 1_000 });
    let folder = std::env::temp_dir().join(format!("threadfold-sessions-{}", std::process::id()));
    let store = Arc::new(SqliteStore::open(folder.join("threads.db")).unwrap());
    idle(&store, sessions);
    opening(&store, if is_test { [100, 200] } else { [1_000, 100_000] });
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Prints the memory of sessions after their last turn.
fn idle(store: &Arc<SqliteStore>, count: usize) {
    let mut first = open(store, "first");
    play(&mut first, TURNS - PLAYED);
    let log = block_on(store.load(first.thread_id())).unwrap().log;
    drop(first);
    let before = resident();
    let mut sessions = Vec::new();
    for number in 0..count {
        let thread: ThreadId = format!("session-{number}").parse().unwrap();
        block_on(store.append(&thread, Some(LogId(1)), 0, log.events())).unwrap();
        let mut session = open(store, thread.as_str());
        play(&mut session, PLAYED);
        sessions.push(session);
    }
    let held = resident().saturating_sub(before);
    let Some(last) = sessions.last() else { return };
    let whole = block_on(last.whole_log()).unwrap().into_owned();
    println!("{count} idle sessions of {TURNS} turns");
    println!("  log            {:>9} bytes, {} events", bytes(&whole), whole.len());
    println!("  thread         {:>9} tokens", last.context_tokens());
    println!("  events held    {:>9}", last.log().events().len());
    println!("  resident       {:>9} bytes a session", held / count.max(1));
    println!("  together       {:>9} MB", held / 1_000_000);
}

fn bytes(log: &EventLog) -> u64 {
    log.events().iter().map(|event| serde_json::to_string(event).unwrap().len() as u64).sum()
}

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4_096
}

fn open(store: &Arc<SqliteStore>, thread: &str) -> Session {
    let agent = ModelAgent::new(Arc::new(Worker)).with_window(ContextWindow::new(16_000));
    let builder = Session::builder(agent).tool(Arc::new(Read)).strategy_named("digest").unwrap();
    block_on(builder.thread(thread.parse().unwrap()).store(store.clone()).open()).unwrap()
}

fn play(session: &mut Session, turns: usize) {
    for turn in 0..turns {
        let text = format!("Fix part {turn}. Never touch src/lexer{turn}.rs.");
        block_on(async { session.send(text).await }).unwrap();
    }
}

/// A model that reads some files in every turn.
#[derive(Debug)]
struct Worker;

#[async_trait]
impl Model for Worker {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let rounds = request.messages.iter().rev().take_while(|message| !message.is_typed());
        let rounds = rounds.filter(|message| message.role == Role::User).count();
        if rounds >= ROUNDS {
            return Ok(Answer::new(Message::assistant("Fixed."), StopReason::EndTurn, None));
        }
        let number = request.messages.len() * 10 + rounds;
        let input = json!({"path": format!("src/part{number}.rs")});
        let call = ToolUse::new(format!("call-{number}"), "read", input);
        let answer = Message::new(Role::Assistant, vec![call.into()]);
        Ok(Answer::new(answer, StopReason::ToolUse, None))
    }
}

/// A tool that reads 8 KB.
#[derive(Debug)]
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("read", "Reads a file.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let line = |line: usize| format!("{line}: let value_{line} = read(input, {line})?;\n");
        let lines: String = (0..200).map(line).collect();
        Ok(ToolOutput::from(format!("{}\n{lines}", call.input.as_str())))
    }
}

/// Prints the time to open threads with these numbers of events.
fn opening(store: &Arc<SqliteStore>, sizes: [u64; 2]) {
    println!("opening a thread, middle of 21 in milliseconds");
    let mut times = Vec::new();
    for size in sizes {
        let thread: ThreadId = format!("of-{size}").parse().unwrap();
        write(store, &thread, size);
        let opened = median(|| drop(block_on(Journal::open(store.clone(), thread.clone()))));
        let whole = median(|| drop(block_on(store.load(&thread))));
        println!("  {size:>7} events {:>9.2}   read whole {:>9.2}", ms(opened), ms(whole));
        times.push(opened);
    }
    if let [short, long] = times[..] {
        println!("  ratio          {:>9.2} x", ms(long) / ms(short));
    }
}

/// Writes a thread that is compacted every 200 messages.
fn write(store: &Arc<SqliteStore>, thread: &ThreadId, size: u64) {
    let mut journal = block_on(Journal::open(store.clone(), thread.clone())).unwrap();
    while journal.log().len() < size {
        let number = journal.log().len();
        let text = format!("Look at src/part{number}.rs and run `cargo test part{number}`. ");
        journal.append(Timestamp(number), Event::MessageAppended(message(number, &text))).unwrap();
        let messages = journal.log().replay().len();
        if messages >= 200 {
            let insert = vec![Insert::from(Message::user("In short: it goes on."))];
            let plan = Plan::from_splices(messages, vec![Splice { at: 0..150, insert }]);
            let (id, reason) = (journal.log().next_compaction(), CompactionReason::Threshold);
            let record = CompactionRecord::new(id, reason, "by-hand", plan);
            journal.append(Timestamp(number), Event::Compacted(Box::new(record))).unwrap();
        }
        if number.is_multiple_of(25) {
            block_on(journal.flush()).unwrap();
        }
    }
    block_on(journal.flush()).unwrap();
}

fn message(number: u64, text: &str) -> Message {
    let text = format!("{text}{}", "Then go on to the next part. ".repeat(15));
    if number.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) }
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times = Vec::new();
    for _ in 0..21 {
        let since = Instant::now();
        work();
        times.push(since.elapsed());
    }
    times.sort_unstable();
    times.get(10).copied().unwrap()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
