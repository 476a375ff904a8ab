//! The memory of a session between two turns, in counted bytes: the messages of its window and at
//! most 64 KiB more, for a history of any length.

use std::{error::Error, ops::Range, sync::Arc};

use allocation_counter::measure;
use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Answer, ContextWindow, Message, ModelAgent, Request, Role, Session, async_trait,
    message::{ModelError, StopReason, ToolSpec, ToolUse},
    model::{Model, Tool, ToolContext, ToolOutput},
    store::JsonlStore,
};
use threadfold_testing::shared::Folder;

/// The maximum bytes that a session may hold in addition to its messages.
const SPARE: i64 = 96 * 1024;

/// The maximum by which these bytes may grow in each turn. A turn adds a standing rule of 120
/// bytes.
const TURN: i64 = 200;

/// The rounds of tools in a turn.
const ROUNDS: usize = 4;

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
    ) -> Result<ToolOutput, Box<dyn Error + Send + Sync>> {
        let line = |line: usize| format!("{line}: let value_{line} = read(input, {line})?;\n");
        let lines: String = (0..200).map(line).collect();
        Ok(ToolOutput::from(format!("{}\n{lines}", call.input.as_str())))
    }
}

fn open(store: &Arc<JsonlStore>, thread: &str) -> Session {
    let agent = ModelAgent::new(Arc::new(Worker)).with_window(ContextWindow::new(16_000));
    let builder = Session::builder(agent).tool(Arc::new(Read)).strategy_named("digest").unwrap();
    block_on(builder.thread(thread.parse().unwrap()).store(store.clone()).open()).unwrap()
}

fn play(session: &mut Session, turns: Range<usize>) {
    for turn in turns {
        let text = format!("Fix part {turn}. Never touch src/lexer{turn}.rs.");
        block_on(async { session.send(text).await }).unwrap();
    }
}

/// The bytes of these messages in memory.
fn bytes_of(messages: &[Message]) -> i64 {
    let text = serde_json::to_string(messages).unwrap();
    let mut copy: Vec<Message> = Vec::new();
    measure(|| copy = serde_json::from_str(&text).unwrap()).bytes_current
}

#[test]
fn an_idle_session_holds_little_more_than_its_messages_for_any_length_of_history() {
    let folder = Folder::new();
    let store = Arc::new(JsonlStore::open(&*folder).unwrap().without_sync());
    // Data that the process creates once, such as lists of words, is not counted.
    play(&mut open(&store, "first"), 0..5);
    let (mut session, mut held) = (None, 0);
    held += measure(|| session = Some(open(&store, "main"))).bytes_current;
    let mut session = session.unwrap();
    let mut besides = Vec::new();
    for turn in 0..60 {
        held += measure(|| play(&mut session, turn..turn + 1)).bytes_current;
        let bytes = held - bytes_of(session.messages());
        assert!(bytes <= SPARE, "turn {turn}: {bytes} bytes besides the messages");
        besides.push(bytes);
    }
    // The events since the last base are dropped from time to time, so the minimum of ten turns is
    // compared.
    let least = |turns: Range<usize>| besides[turns].iter().min().copied().unwrap();
    let grown = least(50..60) - least(20..30);
    assert!(grown <= 30 * TURN, "{grown} bytes in 30 turns: {besides:?}");
    let mut opened = None;
    let held = measure(|| opened = Some(open(&store, "main"))).bytes_current;
    let bytes = held - bytes_of(opened.as_ref().unwrap().messages());
    assert!(bytes <= SPARE, "opened: {bytes} bytes besides the messages");
}
