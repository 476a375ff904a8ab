//! An agent compacts its own thread: it calls the tool `compact` with checkpoints and summaries.
//!
//! `cargo run --example agent_compacts`
//!
//! The agent is a script, but it acts as a model would: it reads the checkpoints in its request,
//! and names two of them in its call. No network and no key are needed. The session is real.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    error::Error,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    Answer, ContentBlock, Message, Model, ModelAgent, Request, Role, Session, async_trait,
    legality,
    message::{StopReason, ToolSpec, ToolUse},
    model::{ModelError, Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, SessionEvent},
};
use threadfold_terminal::{Style, first_line, outline, plain, speaker};

/// The files, each with the line that matters.
const FILES: [(&str, &str); 3] = [
    ("config.toml", "port = 8080"),
    ("server.rs", "fn serve(port: u16) { listen(port).for_each(handle) }"),
    ("client.rs", "fn connect() { dial(\"localhost:8081\") }"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let model = Arc::new(Scripted::default());
    let mut session = Session::builder(ModelAgent::new(model.clone()))
        .system("You find bugs.")
        .tool(Arc::new(Read))
        .compact_tool()
        .build()?;

    println!("{}", style.heading("What is asked"));
    let prompt = "The client does not reach the server. Find out why; change nothing.";
    println!("{} {prompt}\n", style.bold("user     "));
    let mut events = session.send(prompt);
    let mut said = String::new();
    while let Some(event) = block_on(events.next()) {
        show(style, event?, &mut said);
    }
    drop(events);

    let requests = model.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let [.., before, after] = requests.as_slice() else { return Err("too few requests".into()) };
    println!("{}", style.heading("What the model was sent when it called compact"));
    list(style, &before.messages);
    println!("{}", style.heading("What it wrote in the call"));
    print!("{}", plain(&call_of(&session)?));
    println!("{}", style.heading("What it was sent next"));
    list(style, &after.messages);
    let violations = legality::violations(&after.messages).len();
    println!(
        "\n  {violations} violations of any provider's rules. A text stands in the place of the call, and \
         the note behind it\n  tells the agent to go on."
    );
    println!("\n{} {}", style.bold("assistant"), plain(&said));
    Ok(())
}

fn show(style: Style, event: SessionEvent, said: &mut String) {
    match event {
        SessionEvent::TextDelta { text } => said.push_str(&text),
        SessionEvent::ToolStarted { name, .. } => {
            println!("{} {}", style.cyan(format!("{name:>9}")), style.dim(first_line(said, 60)));
            said.clear();
        }
        SessionEvent::Compaction(CompactionEvent::Completed { report, .. }) => {
            println!("{} {report}", style.yellow("compacted"));
        }
        _ => {}
    }
}

/// Prints one line per message, with the checkpoint at its end.
fn list(style: Style, messages: &[Message]) {
    for (index, message) in messages.iter().enumerate() {
        let marker = message.content.iter().find_map(|block| match block {
            ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id.to_string()),
            _ => None,
        });
        println!(
            "  {} {} {} {}",
            style.dim(format!("{index:>3}")),
            style.cyan(format!("{:<9}", speaker(message))),
            style.yellow(format!("{:<6}", marker.unwrap_or_default())),
            outline(message, 70)
        );
    }
}

/// Returns the input of the call from the log. The thread no longer has it.
fn call_of(session: &Session) -> Result<String, Box<dyn Error>> {
    let appended = session.log().events().iter().filter_map(|logged| match &logged.event {
        threadfold::log::Event::MessageAppended(message) => Some(message),
        _ => None,
    });
    let calls = appended.flat_map(|message| message.tool_uses());
    let call = calls.filter(|call| call.name == *"compact").last().ok_or("no call")?;
    let input = call.input.json()?.to_value()?;
    let range = input.pointer("/replacements/0").ok_or("no range")?;
    let field = |name: &str| range.get(name).and_then(Value::as_str).unwrap_or_default();
    let summary = field("summary").replace(". ", ".\n           ");
    Ok(format!("  from     {}\n  to       {}\n  summary  {summary}\n", field("from"), field("to")))
}

/// A tool that returns made-up files.
#[derive(Debug)]
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        ToolSpec::new("read", "Reads a file.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input = call.input.json()?.to_value()?;
        let path = input.get("path").and_then(Value::as_str).ok_or("a path is needed")?;
        let (_, line) = FILES.iter().find(|(name, _)| *name == path).ok_or("no such file")?;
        let other = |number: usize| format!("# {path}, line {number}, of no interest\n");
        let lines: String = (2..=30).map(other).collect();
        Ok(ToolOutput::from(format!("{line}\n{lines}")))
    }
}

/// Reads three files, compacts what it read, and answers from its own summary.
#[derive(Debug, Default)]
struct Scripted {
    step: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

#[async_trait]
impl Model for Scripted {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let step = self.step.fetch_add(1, Ordering::Relaxed);
        let call = |words: &str, name: &str, input: Value| {
            let call = ToolUse::new(format!("call_{step}"), name, input);
            let content = vec![ContentBlock::text(words), call.into()];
            Answer::new(Message::new(Role::Assistant, content), StopReason::ToolUse, None)
        };
        let turn = match (step, FILES.get(step)) {
            (_, Some((path, _))) => {
                call(&format!("I look at {path}."), "read", json!({ "path": path }))
            }
            (3, None) => {
                let markers = checkpoints(&request.messages);
                let (first, last) = (markers.first().cloned(), markers.last().cloned());
                let summary = "I read all three files. config.toml: port = 8080. \
                    server.rs listens on the port it is given. client.rs dials localhost:8081, \
                    which is not the port of config.toml. Nothing was changed, as the user asked.";
                let range = json!({"from": first, "to": last, "summary": summary});
                call("All read; I keep what matters.", "compact", json!({"replacements": [range]}))
            }
            _ => {
                let words = "The client dials port 8081 and the server listens on 8080: client.rs \
                    and config.toml disagree. I changed nothing.";
                Answer::new(Message::assistant(words), StopReason::EndTurn, None)
            }
        };
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        Ok(turn)
    }
}

/// The checkpoints that a model sees, in order.
fn checkpoints(messages: &[Message]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let id = |block: &ContentBlock| match block {
        ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id.to_string()),
        _ => None,
    };
    blocks.filter_map(id).collect()
}
