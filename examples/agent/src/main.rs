//! A small coding agent in a terminal, whose thread never overflows.
//!
//! ```text
//! cargo run -p threadfold-agent
//! cargo run -p threadfold-agent -- --folder . --model claude-sonnet-4-5
//! cargo run -p threadfold-agent -- --folder . --store ~/.threads --dialect compatible \
//!     --base-url http://127.0.0.1:11434/v1 --model qwen3:4b
//! ```
//!
//! Without `--model` it needs no key: a scripted model fixes a mistake in a small project, and the
//! thread outgrows the window. With `--model` it works in the folder that you name, with three
//! tools: read, edit, search. With `--store` the thread is kept in a folder, and the next run
//! continues it.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{error::Error, path::PathBuf, process::ExitCode, sync::Arc};

use chat::{Lines, talk};
use demo::Project;
use folder::Folder;
use lexopt::{Arg, Parser, ValueExt};
use screen::Screen;
use threadfold::{
    CompactionStrategy, ContextWindow, ModelAgent, Session,
    auto::AutoPolicy,
    session::SessionBuilder,
    store::JsonlStore,
    strategy::{Digest, Ladder, Summarize, TrimToolResults},
    testing::ExtractiveModel,
};
use threadfold_http::{ModelArguments, NamedModel, TokioClock};
use threadfold_terminal::{plain, thousands};

mod chat;
mod demo;
mod folder;
mod paper;
mod screen;
mod tools;

const SYSTEM: &str = "You are a careful software engineer. You work in one folder, with the tools that \
    you have. Read before you edit. Keep changes small, and say at the end what you changed and what \
    you did not check.";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let run = runtime.map_err(Into::into).and_then(|runtime| {
        let ended = runtime.block_on(run());
        // The thread that reads the standard input may block for ever, so do not wait for it.
        runtime.shutdown_background();
        ended
    });
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agent: {}", plain(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    folder: Option<PathBuf>,
    store: Option<PathBuf>,
    model: ModelArguments,
}

async fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::from_arguments()?;
    match options.model.open().await? {
        Some(named) => work(named, options.folder, options.store).await,
        None if options.folder.is_some() => Err("--folder needs --model".into()),
        None => show(options.store).await,
    }
}

/// A chat over a real provider.
async fn work(
    named: NamedModel,
    folder: Option<PathBuf>,
    store: Option<PathBuf>,
) -> Result<(), Box<dyn Error>> {
    let folder = Arc::new(Folder::open(&folder.unwrap_or_else(|| ".".into()))?);
    let NamedModel { model, name, window, max_output } = named;
    let builder = Session::builder(ModelAgent::new(Arc::new(model)))
        .window(window)
        .max_output(max_output)
        .strategy(strategy(window.tokens()))
        // A long result is cut, and the model can recall it and all compacted messages.
        .max_tool_result(window.tokens() / 8)
        .recall_tool()
        .clock(Arc::new(TokioClock));
    let mut session = open(builder, &folder, store).await?;
    let mut screen = Screen::new(Some(window.tokens()));
    screen.heading(&format!("threadfold agent: {name}"));
    screen.note(&format!(
        "It reads and changes the files of {}, and no others.",
        folder.root().display()
    ));
    taken_up(&session, &mut screen).await;
    screen.note(chat::HELP);
    talk(&mut session, &mut screen, Lines::of_stdin()).await
}

/// The run without a key.
async fn show(store: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let project = Project::new()?;
    let folder = Arc::new(Folder::open(project.path())?);
    let builder = |model| {
        let summarize = Summarize {
            as_text: true,
            messages: 4,
            summary_tokens: 500,
            user_tokens: 300,
            ..Summarize::default()
        };
        let rungs: [Arc<dyn CompactionStrategy>; 2] =
            [Arc::new(summarize), Arc::new(Digest::default())];
        Session::builder(ModelAgent::new(Arc::new(model)))
            .window(ContextWindow::new(demo::WINDOW))
            .strategy(Arc::new(Ladder::new(rungs)))
            .fast_model(Arc::new(ExtractiveModel))
            .policy(AutoPolicy::default())
    };
    let mut session = open(builder(demo::model()), &folder, store.clone()).await?;
    let again = !session.messages().is_empty();
    if again {
        session = open(builder(demo::model_again()), &folder, store).await?;
    }
    let mut screen = Screen::new(Some(demo::WINDOW));
    screen.heading("threadfold agent, without a key");
    screen.note(&format!(
        "The answers are written beforehand, and so is what is typed. The files, the tools, the session\n\
         and its compactions are real. The window holds {} tokens, and the work needs more.",
        thousands(demo::WINDOW)
    ));
    taken_up(&session, &mut screen).await;
    let lines: &'static [&'static str] = if again { &demo::LINES_AGAIN } else { &demo::LINES };
    talk(&mut session, &mut screen, Lines::written(lines)).await?;
    if !again {
        screen.heading("What became of the files");
        for change in project.changes()? {
            screen.change(&change);
        }
    }
    screen.heading("With a model of yours");
    screen.line("cargo run -p threadfold-agent -- --folder . --model claude-sonnet-4-5");
    screen.note("The key comes from ANTHROPIC_API_KEY; --dialect chooses another provider.");
    Ok(())
}

/// Builds the session of either run.
async fn open(
    builder: SessionBuilder,
    folder: &Arc<Folder>,
    store: Option<PathBuf>,
) -> Result<Session, Box<dyn Error>> {
    let mut builder = builder.system(SYSTEM);
    for tool in tools::tools(folder) {
        builder = builder.tool(tool);
    }
    let Some(store) = store else { return Ok(builder.build()?) };
    // The futures of this store block. No other work runs that they could delay.
    let store = Arc::new(JsonlStore::open(store)?);
    Ok(builder.thread("agent".parse()?).store(store).open().await?)
}

/// Prints the size of a stored thread.
async fn taken_up(session: &Session, screen: &mut Screen) {
    let messages = session.messages().len();
    if messages > 0 {
        let compactions = session.whole_log().await.map_or(0, |log| log.standing().count());
        screen.done(&format!("taken up again: {messages} messages, {compactions} compactions"));
    }
}

/// The default ladder, with a summary limit that suits a small window.
fn strategy(window: u64) -> Arc<dyn CompactionStrategy> {
    let summarize = Summarize {
        messages: 8,
        user_tokens: (window / 16).min(4_000),
        summary_tokens: (window / 8).min(4_096),
        ..Summarize::default()
    };
    let rungs: [Arc<dyn CompactionStrategy>; 3] =
        [Arc::new(summarize), Arc::new(TrimToolResults::default()), Arc::new(Digest::default())];
    Arc::new(Ladder::new(rungs))
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("folder") => options.folder = Some(parser.value()?.into()),
                Arg::Long("store") => options.store = Some(parser.value()?.into()),
                Arg::Long(name) if ModelArguments::has(name) => {
                    let name = name.to_owned();
                    options.model.set(&name, &parser.value()?.string()?)?;
                }
                Arg::Value(_) | Arg::Long(_) | Arg::Short(_) => {
                    let unexpected = argument.unexpected();
                    let usage = ModelArguments::USAGE;
                    let usage = format!("agent [--folder FOLDER] [--store FOLDER] [{usage}]");
                    return Err(format!("{unexpected}\nusage: {usage}").into());
                }
            }
        }
        Ok(options)
    }
}
