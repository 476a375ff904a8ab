//! Summarises a transcript chunk by chunk, and can be stopped and started again in between.
//!
//! ```text
//! cargo run -q --example chunked -- [--chunk TOKENS] [--store FILE] [--pause MS] FILE...
//! ```
//!
//! FILE is a transcript as the example `transcript` takes it; several are one long thread. Each
//! chunk is folded into `/summary.md` by the offline extractive model; what it added is shown as it
//! comes, and the whole brief at the end. With `--store` the run is kept after every answer: stop it
//! with Ctrl-C, start it again with the same FILE and `--store`, and it goes on where it was.
//! `--pause` waits after each answer, as a real model would.

use std::{
    error::Error,
    fs, io,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use futures::executor::block_on;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lexopt::{Arg, Parser, ValueExt};
use terminal::{Style, thousands};
use threadfold::{
    Message,
    drive::{Models, advance},
    render::{BYTES_PER_TOKEN, ChunkBudget},
    strategy::{ChunkOutcome, CompactionRun, RunOptions, RunStep},
    testing::ExtractiveModel,
    wire::DecodeOptions,
};

#[path = "transcript/input.rs"]
mod input;
mod terminal;

fn main() -> ExitCode {
    match Options::from_arguments().and_then(|options| summarise(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chunked: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
struct Options {
    files: Vec<PathBuf>,
    store: Option<PathBuf>,
    chunk_tokens: usize,
    pause: Duration,
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut options =
            Self { files: Vec::new(), store: None, chunk_tokens: 25_000, pause: Duration::ZERO };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Value(file) => options.files.push(file.into()),
                Arg::Long("store") => options.store = Some(parser.value()?.into()),
                Arg::Long("chunk") => options.chunk_tokens = parser.value()?.parse()?,
                Arg::Long("pause") => {
                    options.pause = Duration::from_millis(parser.value()?.parse()?);
                }
                Arg::Long(_) | Arg::Short(_) => return Err(argument.unexpected().into()),
            }
        }
        if options.files.is_empty() {
            return Err(
                "usage: chunked [--chunk TOKENS] [--store FILE] [--pause MS] FILE...".into()
            );
        }
        Ok(options)
    }
}

fn summarise(options: &Options) -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let (mut run, resumed) = open(options)?;
    if resumed {
        println!("{}", style.yellow(format!("Taken up again after {} chunks.", run.steps().len())));
    }
    let bar = progress();
    let mut shown = run.steps().len();
    let mut summary_shown = run.summary().len();
    while let RunStep::Call { chunk, total, .. } = run.step() {
        bar.set_length(total as u64);
        bar.set_position(chunk as u64);
        block_on(advance(&mut run, Models::one(&ExtractiveModel), &mut |_| {}));
        store(options, &run)?;
        thread::sleep(options.pause);
        if run.steps().len() > shown {
            bar.suspend(|| show_chunk(style, &run, shown, summary_shown));
            shown = run.steps().len();
            summary_shown = run.summary().len();
        }
    }
    bar.finish_and_clear();
    finish(style, &run)
}

/// The stored run if there is one, else a new one over the files.
fn open(options: &Options) -> Result<(CompactionRun, bool), Box<dyn Error>> {
    if let Some(path) = options.store.as_ref().filter(|path| path.exists()) {
        let stored = fs::read_to_string(path)?;
        let run = serde_json::from_str::<CompactionRun>(&stored);
        let mut run = run.map_err(|error| format!("{}: {error}", path.display()))?;
        run.retry();
        return Ok((run, true));
    }
    let mut thread = Vec::new();
    for file in &options.files {
        thread.extend(read(file).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    let target = options.chunk_tokens.saturating_mul(BYTES_PER_TOKEN);
    let chunks = ChunkBudget { target, tolerance: target / 5 };
    let run = CompactionRun::new(&thread, None, RunOptions { chunks, ..RunOptions::default() })?;
    Ok((run, false))
}

fn read(file: &Path) -> Result<Vec<Message>, Box<dyn Error>> {
    let bytes = fs::read(file)?;
    let input = input::read(&bytes, None)?;
    let format = input.dialect.format();
    let request = format.decode_slice(input.body.as_bytes(), &DecodeOptions::default())?;
    Ok(request.messages.to_vec())
}

/// Writes the run beside its place and moves it there: a stop in between leaves the one before.
fn store(options: &Options, run: &CompactionRun) -> Result<(), Box<dyn Error>> {
    let Some(path) = &options.store else { return Ok(()) };
    let beside = path.with_extension("new");
    fs::write(&beside, serde_json::to_vec(run)?)?;
    Ok(fs::rename(&beside, path)?)
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::new(1);
    if !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // A template that does not parse leaves the plain style.
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40.green/dim} chunk {pos} of {len}  {elapsed}")
    {
        bar.set_style(style);
    }
    bar
}

fn show_chunk(style: Style, run: &CompactionRun, index: usize, summary_before: usize) {
    let Some(step) = run.steps().get(index) else { return };
    let outcome = match step.outcome {
        ChunkOutcome::Folded => style.green("folded in"),
        ChunkOutcome::Unchanged => style.dim("nothing to add"),
        ChunkOutcome::Halved => style.yellow("halved"),
        ChunkOutcome::Capped => style.yellow("capped"),
        ChunkOutcome::Full => style.yellow("did not fit, is asked again"),
        ChunkOutcome::Condensed => style.yellow("summary condensed"),
        ChunkOutcome::Clipped => style.yellow("summary shortened without a model"),
        ChunkOutcome::Skipped => style.red("summarised without a model"),
        ChunkOutcome::Failed | _ => style.red("failed"),
    };
    let bytes = thousands(step.bytes.len() as u64);
    println!("{}", style.heading(&format!("Chunk {}, {bytes} bytes", index + 1)));
    println!("{outcome}: /summary.md has {} bytes now", thousands(step.summary_bytes as u64));
    let added = run.summary().get(summary_before..).unwrap_or_default();
    let mut lines = added.lines().filter(|line| !line.trim().is_empty());
    for line in lines.by_ref().take(12) {
        println!("  {} {}", style.green("+"), terminal::first_line(line, 94));
    }
    match lines.count() {
        0 => {}
        more => println!("  {}", style.dim(format!("+ and {more} more lines"))),
    }
}

fn finish(style: Style, run: &CompactionRun) -> Result<(), Box<dyn Error>> {
    match run.step() {
        RunStep::Done { summary } => {
            println!("{}", style.heading("The brief, /summary.md"));
            println!("{}", terminal::plain(summary));
            let usage = run.usage();
            println!(
                "{}",
                style.dim(format!(
                    "{} chunks, about {} tokens in and {} out.",
                    run.steps().len(),
                    thousands(usage.input),
                    thousands(usage.output)
                ))
            );
            Ok(())
        }
        RunStep::Failed { error } => Err(error.to_string().into()),
        RunStep::Call { .. } | _ => Err("the run stopped in the middle".into()),
    }
}
