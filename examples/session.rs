//! An agent works through a long task in a small window, and its thread never overflows.
//!
//! `cargo run --example session`
//!
//! The agent is a script that reads file after file, as coding agents do; no network and no key are
//! needed. The session is real: it runs the tools, measures how full the context is, compacts
//! before the next request would be too long, and logs everything.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{error::Error, io, sync::Arc};

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    ContextWindow, Message, ModelAgent, Role, Session, StrategyRegistry, async_trait,
    auto::AutoPolicy,
    legality,
    log::Event,
    message::{ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, SessionEvent},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_terminal::{Style, first_line, plain, thousands};

const WINDOW: ContextWindow = ContextWindow::new(5_000);

const FILES: [&str; 12] = [
    "src/lexer.rs",
    "src/token.rs",
    "src/parser.rs",
    "src/ast.rs",
    "src/types.rs",
    "src/check.rs",
    "src/lower.rs",
    "src/emit.rs",
    "src/error.rs",
    "src/main.rs",
    "tests/parse.rs",
    "README.md",
];

/// A tool that returns made-up files of a few lines.
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
        let line = |number| format!("/* {path}:{number} */ fn part_{number}() {{ unwritten }}\n");
        Ok(ToolOutput::from((1..=40).map(line).collect::<String>()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script()))).with_window(WINDOW);
    // A separate model summarises the thread as text. This one extracts sentences.
    let config: serde_json::Value = serde_json::from_str(
        r#"{"ladder": {"rungs": [
            {"summarize": {"as_text": true, "messages": 4, "summary_tokens": 600}}, "digest"
        ]}}"#,
    )?;
    let mut session = Session::builder(agent)
        .system("You are a careful engineer.")
        .tool(Arc::new(Read))
        .strategy(StrategyRegistry::default().build(&config)?)
        .fast_model(Arc::new(ExtractiveModel))
        .policy(AutoPolicy { estimates_usage: true, ..AutoPolicy::default() })
        .build()?;

    println!("{}", style.heading("A long task in a small window"));
    println!(
        "The window holds {} tokens; the task reads more than that.\n",
        thousands(WINDOW.tokens())
    );
    let prompt = "Read every file and tell me which parts are missing. Do not change anything.";
    println!("{} {prompt}\n", style.bold("user     "));
    let mut said = String::new();
    let mut events = session.send(prompt);
    while let Some(event) = block_on(events.next()) {
        show(style, event?, &mut said);
    }
    drop(events);
    println!("{} {}\n", style.bold("assistant"), plain(&said));
    close(style, &session);
    Ok(())
}

/// Returns the answers of the agent: one file at a time, and a final answer.
fn script() -> Vec<Scripted> {
    let round = |(number, path): (usize, &&str)| {
        let words = format!("File {} of {}: I look at {path}.", number + 1, FILES.len());
        let call = ToolUse::new(format!("call_{number}"), "read", json!({ "path": path }));
        let content = vec![threadfold::ContentBlock::text(words), call.into()];
        Scripted::from(Message::new(Role::Assistant, content))
    };
    let answer = "I have read all twelve files. Every part in them is still to be written.";
    FILES.iter().enumerate().map(round).chain([Scripted::from(answer)]).collect()
}

fn show(style: Style, event: SessionEvent, said: &mut String) {
    match event {
        SessionEvent::TextDelta { text } => said.push_str(&text),
        SessionEvent::ToolStarted { name, .. } => {
            println!("{} {}", style.cyan(format!("{name:>9}")), style.dim(first_line(said, 60)));
            said.clear();
        }
        SessionEvent::Compaction(event) => compaction(style, event),
        SessionEvent::Notice { text } => println!("{} {}", style.yellow("   notice"), plain(&text)),
        _ => {}
    }
}

fn compaction(style: Style, event: CompactionEvent) {
    match event {
        CompactionEvent::Started { strategy, .. } => {
            println!("{} the thread is getting long: {strategy}", style.yellow("  compact"));
        }
        CompactionEvent::Completed { report, .. } => {
            let meter = |tokens| style.meter(tokens, WINDOW.tokens());
            println!("          {}", meter(report.before.tokens));
            println!("          {}", meter(report.after.tokens));
        }
        CompactionEvent::Failed { error, .. } => {
            println!("{} {}", style.red("   failed"), plain(error.as_ref()));
        }
        _ => {}
    }
}

fn close(style: Style, session: &Session) {
    let compacted =
        |event: &&threadfold::log::LoggedEvent| matches!(event.event, Event::Compacted(_));
    println!("{}", style.heading("What is left"));
    println!(
        "{} events in the log, {} of them compactions; {} messages in the thread, {} violations.",
        session.log().len(),
        session.log().events().iter().filter(compacted).count(),
        session.messages().len(),
        legality::violations(session.messages()).len(),
    );
    println!("\n  {}", style.meter(session.context_tokens(), WINDOW.tokens()));
    let rule = "Do not change anything";
    let kept = session.messages().iter().any(|message| {
        message.content.iter().filter_map(|block| block.as_text()).any(|text| text.contains(rule))
    });
    println!("  What the user asked for is still there, word for word: {kept}.");
}
