//! A chat in the terminal over a real provider, whose thread never overflows.
//!
//! ```text
//! cargo run -p threadfold-http -- --model claude-sonnet-4-5
//! cargo run -p threadfold-http -- --dialect openai --model gpt-5.2 --once "What is a fold?"
//! cargo run -p threadfold-http -- --dialect compatible --base-url http://127.0.0.1:11434/v1 \
//!     --model qwen3:4b
//! ```
//!
//! The window is the one that `--window` gives, or that a local server states for the model, or
//! that the vendor published.
//!
//! The key comes from `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`; a local server needs none. Say
//! `/compact` to have the thread compacted now. The adapter is `src/adapter.rs`: copy it.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    env,
    error::Error,
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use adapter::{Dialect, HttpModel, HttpOptions, Key, TokioSleeper};
use lexopt::{Arg, Parser, ValueExt};
use terminal::{Style, plain};
use threadfold::{
    CompactionStrategy, ContextWindow, ModelAgent, Session,
    auto::AutoPolicy,
    model::AnswerLimits,
    session::{CompactionEvent, SessionEvent},
    strategy::{Digest, Ladder, Summarize, TrimToolResults},
};

#[path = "../../terminal/mod.rs"]
mod terminal;

const USAGE: &str = "usage: http --model NAME [--dialect anthropic|openai|compatible] \
    [--base-url URL] [--window TOKENS] [--max-output TOKENS] [--system TEXT] [--once TEXT]";

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

/// What was asked for.
struct Options {
    http: HttpOptions,
    max_output: Option<u64>,
    system: Option<String>,
    once: Option<String>,
}

async fn chat() -> Result<(), Box<dyn Error>> {
    let mut options = Options::from_arguments()?;
    let style = Style::of(&io::stdout());
    if options.http.window.is_none() {
        options.http.window = HttpModel::new(options.http.clone())?.window_of_server().await;
    }
    let known = options.http.window.or_else(|| ContextWindow::for_model(&options.http.model));
    let window = known.ok_or("the window of this model is not known: give --window")?.tokens();
    let reserve = options.max_output.unwrap_or((window / 4).min(4_096));
    options.http.max_output = reserve;
    let model = Arc::new(HttpModel::new(options.http)?);
    let mut session = Session::builder(ModelAgent::new(model))
        .policy(AutoPolicy { output_reserve: reserve, ..AutoPolicy::default() })
        .strategy(strategy(window))
        .sleeper(Arc::new(TokioSleeper))
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
            // The session can be used again: the next line may fare better.
            println!("{} {}", style.red("failed"), plain(&error.to_string()));
        }
        println!("{}", style.meter(session.context_tokens(), window));
        prompt()?;
    }
    Ok(())
}

/// The default ladder, with summaries that suit a small window too.
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
        let (mut dialect, mut base_url, mut model) = (Dialect::Anthropic, None, None);
        let (mut window, mut max_output, mut system, mut once) = (None, None, None, None);
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("dialect") => dialect = dialect_of(&parser.value()?.string()?)?,
                Arg::Long("base-url") => base_url = Some(parser.value()?.string()?),
                Arg::Long("model") => model = Some(parser.value()?.string()?),
                Arg::Long("window") => window = Some(parser.value()?.parse()?),
                Arg::Long("max-output") => max_output = Some(parser.value()?.parse()?),
                Arg::Long("system") => system = Some(parser.value()?.string()?),
                Arg::Long("once") => once = Some(parser.value()?.string()?),
                Arg::Value(_) | Arg::Long(_) | Arg::Short(_) => {
                    return Err(format!("{}\n{USAGE}", argument.unexpected()).into());
                }
            }
        }
        let model = model.ok_or(USAGE)?;
        let (url, key) = match dialect {
            Dialect::Anthropic => (Some("https://api.anthropic.com"), "ANTHROPIC_API_KEY"),
            Dialect::OpenAi => (Some("https://api.openai.com/v1"), "OPENAI_API_KEY"),
            Dialect::Compatible => (None, "OPENAI_API_KEY"),
        };
        let base_url = base_url.or(url.map(str::to_owned)).ok_or("give --base-url")?;
        let http = HttpOptions {
            dialect,
            base_url,
            model,
            window: window.map(ContextWindow::new),
            key: env::var(key).ok().as_deref().and_then(Key::new),
            max_output: max_output.unwrap_or(4_096),
            tries: 4,
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            silence: Duration::from_secs(300),
            limits: AnswerLimits::default(),
        };
        Ok(Self { http, max_output, system, once })
    }
}

fn dialect_of(name: &str) -> Result<Dialect, String> {
    match name {
        "anthropic" => Ok(Dialect::Anthropic),
        "openai" => Ok(Dialect::OpenAi),
        "compatible" => Ok(Dialect::Compatible),
        _ => Err(format!("no dialect is called {}", name)),
    }
}
