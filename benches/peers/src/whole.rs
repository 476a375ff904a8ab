//! Whole compactions with default settings, and 500 turns of a session in a small window.

use std::{sync::Arc, time::Instant};

use futures::executor::block_on;
use threadfold::{
    Answer, Compactor, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role,
    Session, Usage, async_trait,
    message::{Json, StopReason, ToolResult, ToolSpec, ToolUse},
    model::{ModelError, Tool, ToolContext, ToolOutput},
    strategy::Brief,
};

use yardstick::{is_test, row, thread};

use crate::{measured::Measured, model::AtOnce, rig, table, theirs};

/// The window of the long threads, and of the session with many turns, in tokens.
const WINDOW: u64 = 200_000;
const SMALL_WINDOW: u64 = 16_000;

/// Prints the tables.
pub(crate) fn print() {
    let count = if is_test() { 50 } else { 1_000 };
    compactions("with calls", &with_calls(count));
    compactions("a text protocol", &protocol(count));
    turns(if is_test() { 20 } else { 500 });
}

/// A thread of a user who asks, and of calls with results. It has 1.9 KB a message.
fn with_calls(count: usize) -> Vec<Message> {
    let long = |index: usize| thread::length(index) * 17 / 10;
    let messages = (0..count).map(|index| match index % 20 {
        0 => Message::user(thread::fill(thread::PROSE, index, long(index).min(900))),
        19 => Message::assistant(thread::fill(thread::PROSE, index, long(index))),
        _ if index % 2 == 1 => {
            let input =
                Json::parse(&format!("{{\"path\":\"src/part_{index}.rs\"}}")).expect("JSON");
            let call = ToolUse::new(format!("t{index}"), "read", input);
            let said = ContentBlock::text(thread::fill(thread::PROSE, index, long(index)));
            Message::new(Role::Assistant, vec![said, call.into()])
        }
        _ => {
            let text = if index % 4 == 0 { thread::CODE } else { thread::OUTPUT };
            let text = thread::fill(text, index, long(index));
            let result = ToolResult::text(format!("t{}", index - 1), text);
            Message::new(Role::User, vec![result.into()])
        }
    });
    messages.collect()
}

/// A thread of an agent that writes commands into its answers, and gets the outputs as if the user
/// had typed them. It has about 1 KB a message.
fn protocol(count: usize) -> Vec<Message> {
    let task =
        "Mend the parser. Answer with one command in a fenced block. Keep the lexer as it is.";
    let messages = (1..count).map(|index| match index % 2 {
        1 => Message::assistant(format!(
            "THOUGHT: I look at part {index} of the parser, where the limit is checked.\n\n\
             ```bash\nsed -n '{index},{}p' src/part_{}.rs\n```",
            index + 40,
            index % 97
        )),
        _ => {
            let text = if index % 3 == 0 { thread::CODE } else { thread::OUTPUT };
            let output = thread::fill(text, index, thread::length(index) + 770);
            let code = index % 7 / 6;
            Message::user(format!("<returncode>{code}</returncode>\n<output>\n{output}\n</output>"))
        }
    });
    [Message::user(task)].into_iter().chain(messages).collect()
}

/// Compactions of one thread: theirs, ours, and what ours did before, when the messages arrived.
fn compactions(name: &str, messages: &[Message]) {
    let bytes = thread::size(messages);
    let repetitions = if is_test() { 1 } else { 15 };
    println!("{} messages, {bytes} bytes, {name}, default settings", messages.len());
    table::heading();
    let history = theirs::history(messages);
    let tokens = bytes / 8;
    table::line(&theirs::compact_default(&history, repetitions), None, bytes);
    table::line(&rig::compact(messages, tokens, repetitions), None, bytes);
    for measured in ours(messages, repetitions) {
        table::line(&measured, None, bytes);
    }
    println!();
}

fn ours(messages: &[Message], repetitions: usize) -> Vec<Measured> {
    let compactor =
        |window: Option<u64>| Compactor::default().with_window(window.map(ContextWindow::new));
    let arrived = |window| {
        let mut compactor = compactor(window);
        compactor.observe(messages);
        (compactor, messages.to_vec())
    };
    let model = AtOnce::new();
    let compact = |(mut compactor, mut messages): (Compactor, Vec<Message>)| {
        let done = block_on(compactor.compact(&mut messages, Brief::default(), &model));
        let left = done.expect("a summary").report.after.messages;
        (left, compactor, messages)
    };
    let read = |mut compactor: Compactor| {
        compactor.observe(messages);
        compactor
    };
    // The few messages of a test are within the window.
    let window = Some(WINDOW.min(thread::size(messages) as u64 / 4));
    vec![
        row("threadfold: reading on arrival, all", repetitions, || compactor(None), read).into(),
        row("threadfold: compact, no window", repetitions, || arrived(None), compact).into(),
        row("threadfold: compact, to fill a window", repetitions, || arrived(window), compact)
            .into(),
    ]
}

/// Answers every prompt with a call, and everything else with a text.
#[derive(Debug)]
struct Caller(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Model for Caller {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let usage = Some(Usage::new(0, 10));
        let prompt = request.messages.last().and_then(|last| last.texts().next());
        if prompt.is_none_or(|text| !text.starts_with("Turn ")) {
            let said = format!("They parse lines in step {number}, and the tests pass.");
            return Ok(Answer::new(Message::assistant(said), StopReason::EndTurn, usage));
        }
        let said = ContentBlock::text(format!("I will read src/part_{number}.rs now."));
        let input = Json::parse(&format!("{{\"path\":\"src/part_{number}.rs\"}}")).expect("JSON");
        let call = ToolUse::new(format!("t{number}"), "read", input);
        let message = Message::new(Role::Assistant, vec![said, call.into()]);
        Ok(Answer::new(message, StopReason::ToolUse, usage))
    }
}

/// Returns 3 KB of output.
#[derive(Debug)]
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("read", "Reads a file.", Json::default())
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let number = call.id.trim_start_matches('t').parse().unwrap_or_default();
        Ok(ToolOutput::from(thread::fill(thread::OUTPUT, number, 3_000)))
    }
}

/// A session of this many turns, each with a prompt, a call, 3 KB of result and an answer.
fn turns(count: usize) {
    let agent = ModelAgent::new(Arc::new(Caller(1.into())) as Arc<dyn Model>)
        .with_window(ContextWindow::new(SMALL_WINDOW));
    let mut session = Session::builder(agent).tool(Arc::new(Read)).build().expect("a session");
    let times: Vec<f64> = (0..count)
        .map(|number| {
            let text = thread::fill(thread::PROSE, number * 37 % 400, 200 + number % 5 * 100);
            let begun = Instant::now();
            block_on(session.send(format!("Turn {number}. {text}")).into_future())
                .expect("a reply");
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let compactions = session.log().standing().count();
    println!(
        "{count} turns with a call each in a window of {SMALL_WINDOW} tokens, {compactions} compactions"
    );
    println!("{:<36} {:>10}", "turns", "ms a turn");
    let tenth = count / 10;
    for (from, to) in
        [(0, tenth), (tenth, 2 * tenth), (2 * tenth, 4 * tenth), (count - 2 * tenth, count)]
    {
        let part = &times[from..to];
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        println!("{:<36} {mean:>10.2}", format!("{from} to {to}"));
    }
    println!();
}
