//! What a session holds in memory between two turns, counted and not timed: the messages of its
//! window and at most 64 KiB, however long its past. The rest is in its store.

use std::sync::Arc;

use allocation_counter::measure;
use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    ContextWindow, Message, ModelAgent, Request, Role, Session, Turn, async_trait,
    message::{ModelError, StopReason, ToolSpec, ToolUse},
    model::{Model, Tool, ToolContext, ToolFailure, ToolOutput},
    store::{Fsync, JsonlOptions, JsonlStore},
};

use crate::support::folder::Folder;

/// What a session may hold besides its messages.
const SPARE: i64 = 64 * 1024;

/// The rounds of tools in a turn.
const ROUNDS: usize = 4;

/// A model that reads some files in every turn.
#[derive(Debug)]
struct Worker;

#[async_trait]
impl Model for Worker {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        let rounds = request.messages.iter().rev().take_while(|message| !message.is_typed());
        let rounds = rounds.filter(|message| message.role == Role::User).count();
        if rounds >= ROUNDS {
            return Ok(Turn::new(Message::assistant("Fixed."), StopReason::EndTurn, None));
        }
        let number = request.messages.len() * 10 + rounds;
        let input = json!({"path": format!("src/part{number}.rs")});
        let call = ToolUse::new(format!("call-{number}"), "read", input);
        let answer = Message::new(Role::Assistant, vec![call.into()]);
        Ok(Turn::new(answer, StopReason::ToolUse, None))
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

    async fn call(&self, call: &ToolUse, _: &ToolContext<'_>) -> Result<ToolOutput, ToolFailure> {
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

fn play(session: &mut Session, turns: std::ops::Range<usize>) {
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
fn a_session_at_rest_holds_its_messages_and_little_else_however_long_its_past() {
    let folder = Folder::new();
    let options = JsonlOptions { fsync: Fsync::Never, ..JsonlOptions::default() };
    let store = Arc::new(JsonlStore::with_options(&*folder, options).unwrap());
    // What the process makes once, such as lists of words, is not counted.
    play(&mut open(&store, "first"), 0..20);
    let mut session = None;
    let mut held = measure(|| session = Some(open(&store, "main"))).bytes_current;
    let mut session = session.unwrap();
    for turns in [0..20, 20..60, 60..150] {
        held += measure(|| play(&mut session, turns.clone())).bytes_current;
        let (messages, events) = (bytes_of(session.messages()), session.log().len());
        println!("{events} events: {held} bytes, {messages} of them messages");
        assert!(held <= messages + SPARE, "{turns:?}: {held} bytes, {messages} of them messages");
    }
    let mut opened = None;
    let held = measure(|| opened = Some(open(&store, "main"))).bytes_current;
    let messages = bytes_of(opened.as_ref().unwrap().messages());
    assert!(held <= messages + SPARE, "opened: {held} bytes, {messages} of them messages");
}
