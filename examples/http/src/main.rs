//! A chat in the terminal over a real provider, whose thread never overflows.
//!
//! ```text
//! cargo run -p threadfold-http -- --model claude-sonnet-4-5
//! cargo run -p threadfold-http -- --dialect openai --model gpt-5.2 --once "What is a fold?"
//! cargo run -p threadfold-http -- --dialect compatible --base-url http://127.0.0.1:11434/v1 \
//!     --model qwen3:4b
//! ```
//!
//! The window is the one of `--window`, or the one that a local server states for the model, or the
//! one that the vendor published.
//!
//! The key comes from `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY` or
//! `AWS_BEARER_TOKEN_BEDROCK`; a local server needs none. Type `/compact` to compact the thread
//! now. The adapter is `src/adapter.rs`: copy it.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    error::Error,
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
};

use adapter::{ModelArguments, NamedModel, TokioClock};
use lexopt::{Arg, Parser, ValueExt};
use terminal::{Style, plain};
use threadfold::{
    CompactionStrategy, ContextWindow, ModelAgent, Session,
    auto::AutoPolicy,
    session::{CompactionEvent, SessionEvent},
    strategy::{Digest, Ladder, Summarize, TrimToolResults},
};

#[path = "../../terminal/mod.rs"]
mod terminal;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let chat = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(chat()));
    match chat {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("http: {}", plain(&error.to_string()));
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
    let style = Style::of(&io::stdout());
    let named = options.model.open().await?;
    let NamedModel { model, window, max_output, .. } = named.ok_or_else(usage)?;
    let window = window.tokens();
    let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
        .window(ContextWindow::new(window))
        .policy(AutoPolicy { output_reserve: max_output, ..AutoPolicy::default() })
        .strategy(strategy(window))
        .clock(Arc::new(TokioClock))
        .system(options.system.unwrap_or_else(|| "You are a helpful assistant.".to_owned()))
        .build()?;
    if let Some(text) = options.once {
        return say(style, &mut session, &text).await;
    }
    let prompt = || -> io::Result<()> {
        if io::stdin().is_terminal() {
            print!("{} ", style.bold(">"));
        }
        io::stdout().flush()
    };
    prompt()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty()
            && let Err(error) = say(style, &mut session, &line).await
        {
            // The session can be used again, so the chat continues with the next line.
            println!("{} {}", style.red("failed"), plain(&error.to_string()));
        }
        println!("{}", style.meter(session.context_tokens(), window));
        prompt()?;
    }
    Ok(())
}

/// The default ladder, with a summary limit that suits a small window.
fn strategy(window: u64) -> Arc<dyn CompactionStrategy> {
    let summarize = Summarize {
        messages: 4,
        user_tokens: (window / 16).min(4_000),
        summary_tokens: (window / 8).min(4_096),
        ..Summarize::default()
    };
    let rungs: [Arc<dyn CompactionStrategy>; 3] =
        [Arc::new(summarize), Arc::new(TrimToolResults::default()), Arc::new(Digest::default())];
    Arc::new(Ladder::new(rungs))
}

async fn say(style: Style, session: &mut Session, text: &str) -> Result<(), Box<dyn Error>> {
    let mut events = session.send(text);
    while let Some(event) = events.next().await {
        match event? {
            SessionEvent::TextDelta { text } => print!("{}", plain(&text)),
            SessionEvent::ThinkingDelta { text } => print!("{}", style.dim(plain(&text))),
            SessionEvent::Compaction(event) => compaction(style, &event),
            SessionEvent::Notice { text } => {
                println!("{} {}", style.yellow("notice"), plain(&text))
            }
            SessionEvent::TurnEnded { .. } => println!(),
            _ => {}
        }
        io::stdout().flush()?;
    }
    Ok(())
}

fn compaction(style: Style, event: &CompactionEvent) {
    let line = match event {
        CompactionEvent::Started { strategy, reason, .. } => {
            format!("{strategy}, because of {}", reason.as_str())
        }
        CompactionEvent::Completed { report, .. } => report.to_string(),
        CompactionEvent::Failed { error, .. } => format!("failed: {error}"),
        _ => return,
    };
    println!("{} {}", style.yellow("compaction"), plain(&line));
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
                    options.model.set(&name, parser.value()?)?;
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
    format!("usage: http {} [--system TEXT] [--once TEXT]", ModelArguments::USAGE)
}
