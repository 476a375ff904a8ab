//! Measures searches of a thread with a long history. The benches of both databases share it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use threadfold::{
    Answer, ContextWindow, Message, ModelAgent, Plan, Request, Role, Session, ThreadStore,
    async_trait,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event},
    message::{CompactionReason, ModelError, StopReason, ThreadId, Timestamp, ToolUse},
    model::Model,
    store::Journal,
};

/// A query whose words are in few messages, and one whose word is in all.
const QUERIES: [(&str, &str); 2] =
    [("words of 3 messages", "part4242 part777 part31337"), ("a word of every message", "next")];

/// Prints the time of turns that search the history of a thread with `count` messages.
pub async fn recalled(store: &Arc<dyn ThreadStore>, count: u64) {
    let thread = thread();
    println!("a turn that recalls once, of {count} messages; middle of 5, in milliseconds");
    let mut session = open(store.clone(), &thread).await;
    for (name, query) in QUERIES {
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(turn(&mut session, query).await);
        }
        println!("  {name:<26}{:>10.1}", ms(middle(times)));
    }
}

fn text(number: u64) -> String {
    let text = format!("Look at src/part{number}.rs and run `cargo test part{number}`. ");
    text + &"Then go on to the next part. ".repeat(10)
}

/// Prints the size of a database in bytes per message.
pub fn print_size(what: &str, bytes: u64, count: u64) {
    println!(
        "{:>6} bytes a message of {} bytes on the disk: {what}",
        bytes / count,
        text(count).len()
    );
}

fn thread() -> ThreadId {
    "long".parse().unwrap()
}

/// Writes a thread that is compacted every 200 messages.
pub async fn write(store: &Arc<dyn ThreadStore>, count: u64) {
    let mut journal = Journal::open(store.clone(), thread()).await.unwrap();
    for number in 0..count {
        let text = text(number);
        let message = if number % 2 == 0 { Message::user(text) } else { Message::assistant(text) };
        let now = Timestamp(number);
        journal.append(now, Event::MessageAppended(message)).unwrap();
        if number % 200 == 199 {
            let len = journal.log().replay().len();
            let insert = vec![Insert::from(Message::user("In short: it goes on."))];
            let plan = Plan::from_splices(len, vec![Splice { at: 0..len - 10, insert }]);
            let (id, reason) = (journal.log().next_compaction(), CompactionReason::Threshold);
            let record = CompactionRecord::new(id, reason, "by-hand", plan);
            journal.append(now, Event::Compacted(Box::new(record))).unwrap();
            journal.flush().await.unwrap();
        }
    }
}

async fn open(store: Arc<dyn ThreadStore>, thread: &ThreadId) -> Session {
    let agent = ModelAgent::new(Arc::new(Asks)).with_window(ContextWindow::new(200_000));
    Session::builder(agent).recall_tool().thread(thread.clone()).store(store).open().await.unwrap()
}

async fn turn(session: &mut Session, query: &str) -> Duration {
    let since = Instant::now();
    session.send(query).await.unwrap();
    since.elapsed()
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// A model that recalls the text that the user typed, and then ends the turn.
#[derive(Debug)]
struct Asks;

#[async_trait]
impl Model for Asks {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let last = request.messages.last().unwrap();
        if last.tool_results().next().is_some() {
            return Ok(Answer::new(Message::assistant("Done."), StopReason::EndTurn, None));
        }
        let query = last.content.iter().find_map(|block| block.as_text()).unwrap().as_str();
        let call = ToolUse::new("call", "recall", json!({ "query": query }));
        let answer = Message::new(Role::Assistant, vec![call.into()]);
        Ok(Answer::new(answer, StopReason::ToolUse, None))
    }
}
