//! A chat in the terminal over a real provider, whose thread never overflows.
//!
//! ```text
//! cargo run -p threadfold-http --example chat -- --model claude-haiku-4-5
//! cargo run -p threadfold-http --example chat -- --dialect openai --model gpt-5.2 --once "What is a fold?"
//! cargo run -p threadfold-http --example chat -- --dialect compatible --base-url http://127.0.0.1:11434/v1 \
//!     --model qwen3:4b
//! ```
//!
//! The window is the one of `--window`, or the one that a local server states for the model, or the
//! one that the vendor published.
//!
//! The key comes from `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY` or
//! `AWS_BEARER_TOKEN_BEDROCK`; a local server needs none. Type `/compact` to compact the thread
//! now.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    error::Error,
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
};

use lexopt::{Arg, Parser, ValueExt};
use threadfold::{
    ModelAgent, Session,
    auto::AutoPolicy,
    session::{CompactionEvent, SessionEvent},
};
use threadfold_http::{ModelArguments, NamedModel, TokioClock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match chat().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat: {}", plain(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    model: ModelArguments,
    system: Option<String>,
    once: Option<String>,
}

async fn chat() -> Result<(), Box<dyn Error>> {
    let options = Options::from_arguments()?;
    let named = options.model.open().await?;
    let NamedModel { model, window, max_output, .. } = named.ok_or_else(usage)?;
    let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
        .window(window)
        .policy(AutoPolicy { output_reserve: max_output, ..AutoPolicy::default() })
        .clock(Arc::new(TokioClock))
        .system(options.system.unwrap_or_else(|| "You are a helpful assistant.".to_owned()))
        .build()?;
    if let Some(text) = options.once {
        return say(&mut session, &text).await;
    }
    let prompt = || -> io::Result<()> {
        if io::stdin().is_terminal() {
            print!("> ");
        }
        io::stdout().flush()
    };
    prompt()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty()
            && let Err(error) = say(&mut session, &line).await
        {
            // The session can be used again, so the chat continues with the next line.
            println!("failed: {}", plain(&error.to_string()));
        }
        println!("({} of {} tokens)", session.context_tokens(), window.tokens());
        prompt()?;
    }
    Ok(())
}

async fn say(session: &mut Session, text: &str) -> Result<(), Box<dyn Error>> {
    let mut events = session.send(text);
    while let Some(event) = events.next().await {
        match event? {
            SessionEvent::TextDelta { text } => print!("{}", plain(&text)),
            SessionEvent::Compaction(CompactionEvent::Completed { report, .. }) => {
                println!("(compacted: {})", plain(&report.to_string()));
            }
            SessionEvent::Compaction(CompactionEvent::Failed { error, .. }) => {
                println!("(not compacted: {})", plain(&error));
            }
            SessionEvent::Notice { text } => println!("({})", plain(&text)),
            SessionEvent::TurnEnded { .. } => println!(),
            _ => {}
        }
        io::stdout().flush()?;
    }
    Ok(())
}

/// A text without the control characters by which it could change the terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect()
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("system") => options.system = Some(parser.value()?.string()?),
                Arg::Long("once") => options.once = Some(parser.value()?.string()?),
                Arg::Long(name) if ModelArguments::has(name) => {
                    let name = name.to_owned();
                    options.model.set(&name, &parser.value()?.string()?)?;
                }
                Arg::Value(_) | Arg::Long(_) | Arg::Short(_) => {
                    return Err(format!("{}\n{}", argument.unexpected(), usage()).into());
                }
            }
        }
        Ok(options)
    }
}

fn usage() -> String {
    format!("usage: chat {} [--system TEXT] [--once TEXT]", ModelArguments::USAGE)
}
