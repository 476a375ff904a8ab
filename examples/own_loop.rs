//! A loop without a session: a vector of messages, tools, and a `Compactor`.
//!
//! `cargo run --example own_loop`
//!
//! The loop calls a model, runs its tools and compacts the vector before it is too long. Once the
//! model compacts it itself, with the tool `compact`. The vector and the compactor are stored as
//! JSON after each round. The model is a script; no network and no key are needed.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    error::Error,
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    Answer, Compactor, ContentBlock, ContextWindow, Message, Model, Request, Role, async_trait,
    compaction::{COMPACT, compact_tool},
    legality,
    message::{StopReason, ToolResult, ToolSpec, ToolUse},
    model::ModelError,
    testing::ExtractiveModel,
};
use threadfold_terminal::{Style, outline, speaker};

const WINDOW: ContextWindow = ContextWindow::new(4_000);

/// Above this many tokens the host compacts the vector, down to the target.
const THRESHOLD: u64 = 3_000;
const TARGET: u64 = 1_500;

/// The files, each with the line that matters.
const FILES: [(&str, &str); 7] = [
    ("config.toml", "port = 8080"),
    ("server.rs", "fn serve(port: u16) { listen(port).for_each(handle) }"),
    ("client.rs", "fn connect() { dial(\"localhost:8081\") }"),
    ("proxy.rs", "fn forward() { dial(\"localhost:8080\") }"),
    ("health.rs", "fn check() -> bool { get(\"localhost:8080/health\").is_ok() }"),
    ("metrics.rs", "fn scrape() { get(\"localhost:9090/metrics\") }"),
    ("deploy.sh", "docker run -p 8080:8080 server"),
];

fn main() -> Result<(), Box<dyn Error>> {
    block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let model = Scripted::default();
    let tools = vec![read_tool(), compact_tool()];
    let system = vec![Message::system("You find bugs.")];

    let prompt = "Find out why the client does not reach the server. Never change a file.";
    let mut messages = vec![Message::user(prompt)];
    let mut compactor = Compactor::default();
    println!("{}\n{} {prompt}\n", style.heading("The loop"), style.bold("user     "));
    loop {
        // The options are not stored, so they are set again.
        compactor = compactor.with_window(WINDOW).with_context(system.clone(), tools.clone());
        // The model names ranges by checkpoints.
        compactor.stamp(&mut messages);
        compactor.observe(&messages);
        if compactor.context_tokens() > THRESHOLD {
            let done = compactor.compact(&mut messages, TARGET, &ExtractiveModel).await?;
            println!("{} by the host: {}", style.yellow("compacted"), done.report);
        }
        let request = Request::new(messages.clone()).with_system("You find bugs.");
        let request = Request { tools: tools.clone().into(), ..request };
        let turn = model.complete(request).await?;
        let calls: Vec<ToolUse> = turn.message.tool_uses().cloned().collect();
        messages.push(turn.message);
        if calls.is_empty() {
            break;
        }
        // The results of the host's own tools. The compactor answers calls of `compact`.
        let own = calls.iter().filter(|call| call.name != *COMPACT);
        let results: Vec<ToolResult> = own.map(read).collect();
        let done = compactor.push_results(&mut messages, results, &ExtractiveModel).await?;
        compactor.observe(&messages);
        show(style, &calls, compactor.context_tokens());
        if let Some(done) = done {
            println!("{} by the model: {}", style.yellow("compacted"), done.report);
        }
        let stored = serde_json::to_string(&(&compactor, &messages))?;
        (compactor, messages) = serde_json::from_str(&stored)?;
    }

    println!("\n{}", style.heading("The vector at the end"));
    for (index, message) in messages.iter().enumerate() {
        let who = style.cyan(format!("{:<9}", speaker(message)));
        println!("  {} {who} {}", style.dim(format!("{index:>3}")), outline(message, 80));
    }
    compactor.observe(&messages);
    println!("\n{}", style.heading("The rules that hold"));
    print!("{}", compactor.rules());
    let violations = legality::violations(&messages).len();
    let stored = serde_json::to_string(&compactor)?.len();
    println!(
        "\n{violations} violations of any provider's rules; the compactor takes {stored} bytes."
    );
    Ok(())
}

/// Prints one line per call, with the tokens of the next request.
fn show(style: Style, calls: &[ToolUse], tokens: u64) {
    for call in calls {
        let what = path_of(call).unwrap_or_else(|| "what it read so far".to_owned());
        let name = style.cyan(format!("{:>9}", call.name.as_str()));
        println!("{name} {what:<20} {}", style.dim(format!("{tokens} tokens")));
    }
}

fn read_tool() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolSpec::new("read", "Reads a file.", schema)
}

/// Returns a made-up file.
fn read(call: &ToolUse) -> ToolResult {
    let path = path_of(call).unwrap_or_default();
    let found = FILES.iter().find(|(name, _)| *name == path);
    let Some((_, line)) = found else {
        let mut result = ToolResult::text(call.id.clone(), "no such file");
        result.is_error = true;
        return result;
    };
    let other = |number: usize| format!("# {path}, line {number}, of no interest to anybody\n");
    let lines: String = (2..=40).map(other).collect();
    ToolResult::text(call.id.clone(), format!("{line}\n{lines}"))
}

fn path_of(call: &ToolUse) -> Option<String> {
    let input = call.input.json().ok()?.to_value().ok()?;
    input.get("path").and_then(Value::as_str).map(str::to_owned)
}

/// Reads the files one by one, compacts the thread once, and answers.
#[derive(Debug, Default)]
struct Scripted {
    step: AtomicUsize,
}

#[async_trait]
impl Model for Scripted {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let step = self.step.fetch_add(1, Ordering::Relaxed);
        let calls = |name: &str, input: Value| {
            let call = ToolUse::new(format!("call_{step}"), name, input);
            let message = Message::new(Role::Assistant, vec![call.into()]);
            Answer::new(message, StopReason::ToolUse, None)
        };
        // The third answer compacts what the first two read.
        let file = if step > 2 { step - 1 } else { step };
        Ok(match (step, FILES.get(file)) {
            (2, _) => {
                let ids = checkpoints(&request.messages);
                let summary = "I read config.toml: port = 8080. server.rs listens on the port that \
                    it is given.";
                let range = json!({"from": ids.first(), "to": ids.last(), "summary": summary});
                calls(COMPACT, json!({"replacements": [range]}))
            }
            (_, Some((path, _))) => calls("read", json!({ "path": path })),
            (_, None) => {
                let words = "The client dials port 8081, and the server listens on 8080: client.rs \
                    and config.toml disagree. I changed nothing.";
                Answer::new(Message::assistant(words), StopReason::EndTurn, None)
            }
        })
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
