//! `chunked`: summarises long threads chunk by chunk, and continues a stopped run.
//!
//! Each chunk is folded into `/summary.md`. The lines that it adds are printed at once, and the
//! whole summary at the end. With `--store` the run is saved after every answer.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use threadfold::{
    drive::{Models, advance},
    ledger::Quotes,
    render::{BYTES_PER_TOKEN, ChunkBudget},
    strategy::{ChunkOutcome, Chunked, CompactionRun, RunStep},
};
use threadfold_terminal::{Style, counted, thousands};

use crate::{
    args::ChunkedOptions,
    error::{Ended, Failure},
    files,
    input::Body,
    out::{self, say},
};

pub(crate) async fn run(options: &ChunkedOptions, models: Models<'_>) -> Result<Ended, Failure> {
    let style = Style::of(&io::stdout());
    let (mut run, resumed) = open(options)?;
    if models.conversation.is_none() && matches!(run.step(), RunStep::Call { .. }) {
        return Err("a model folds each chunk in: name one with --model. Without a model, \
                    `threadfold compact` makes a thread smaller"
            .into());
    }
    if resumed && !options.json {
        say!(
            "{}",
            style
                .yellow(format!("Continued after {}.", counted(run.steps().len() as u64, "chunk")))
        );
    }
    let bar = progress();
    let mut shown = run.steps().len();
    let mut summary_shown = run.summary().len();
    while let RunStep::Call { chunk, total, .. } = run.step() {
        bar.set_length(total as u64);
        bar.set_position(chunk as u64);
        advance(&mut run, models, &mut |_, _| {}).await;
        store(options, &run)?;
        if run.steps().len() > shown {
            if !options.json {
                bar.suspend(|| show_chunk(style, &run, shown, summary_shown));
            }
            shown = run.steps().len();
            summary_shown = run.summary().len();
        }
    }
    bar.finish_and_clear();
    finish(options, style, &run)?;
    Ok(Ended::Done)
}

/// Returns the stored run if there is one, else a new one over the files. The flag is true for a
/// stored run.
fn open(options: &ChunkedOptions) -> Result<(CompactionRun, bool), Failure> {
    if let Some(path) = &options.store {
        files::check_stored(path)?;
        // Refused before a model is asked, whose answer could then not be saved.
        if path.is_symlink() {
            return Err(
                format!("{} is a symbolic link; links are not followed", path.display()).into()
            );
        }
    }
    let mut thread = Vec::new();
    for file in &options.files {
        thread.extend(Body::read(file, None, options.thread.id())?.request.messages.to_vec());
    }
    let target = options.chunk_tokens.saturating_mul(BYTES_PER_TOKEN);
    let chunks = ChunkBudget { target, tolerance: target / 5 };
    let new = CompactionRun::new(&thread, None, Chunked { chunks, ..Chunked::default() })?;
    let Some(path) = options.store.as_ref().filter(|path| path.exists()) else {
        return Ok((new, false));
    };
    let stored = files::text(path)?;
    let run = serde_json::from_str::<CompactionRun>(&stored);
    let mut run = run.map_err(|error| format!("{}: {error}", path.display()))?;
    if serde_json::to_value(&run)?.get("rendered") != serde_json::to_value(&new)?.get("rendered") {
        return Err(
            format!("{}: the run of another thread; name another file", path.display()).into()
        );
    }
    run.retry();
    Ok((run, true))
}

/// Replaces the file of the run as a whole, so that an interruption leaves the previous one intact.
fn store(options: &ChunkedOptions, run: &CompactionRun) -> Result<(), Failure> {
    let Some(path) = &options.store else { return Ok(()) };
    out::write(Some(path), &serde_json::to_vec(run)?)
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::new(1);
    if !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // If the template does not parse, the default style stays.
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
    say!("{}", style.heading(&format!("Chunk {}, {bytes} bytes", index + 1)));
    say!("{outcome}: /summary.md has {} bytes now", thousands(step.summary_bytes as u64));
    let added = run.summary().get(summary_before..).unwrap_or_default();
    let mut lines = added.lines().filter(|line| !line.trim().is_empty());
    for line in lines.by_ref().take(12) {
        say!("  {} {}", style.green("+"), threadfold_terminal::first_line(line, 74));
    }
    match lines.count() {
        0 => {}
        more => {
            let more = counted(more as u64, "more line");
            say!("  {}", style.dim(format!("+ and {more}")));
        }
    }
}

fn finish(options: &ChunkedOptions, style: Style, run: &CompactionRun) -> Result<(), Failure> {
    match run.step() {
        RunStep::Done { summary } if options.json => {
            let (summary, _) = Quotes::cut(summary);
            let chunks = run.steps().len();
            let (usage, notes) = (run.usage(), run.notes());
            say!(
                "{}",
                json!({"summary": summary, "chunks": chunks, "usage": usage, "notes": notes})
            );
            Ok(())
        }
        RunStep::Done { summary } => {
            say!("{}", style.heading("The summary, /summary.md"));
            say!("{}", threadfold_terminal::plain(&Quotes::cut(summary).0));
            for note in run.notes() {
                say!("{}", style.yellow(threadfold_terminal::plain(&note)));
            }
            let usage = run.usage();
            say!(
                "{}",
                style.dim(format!(
                    "{}, about {} tokens in and {} out.",
                    counted(run.steps().len() as u64, "chunk"),
                    thousands(usage.input),
                    thousands(usage.output)
                ))
            );
            Ok(())
        }
        RunStep::Failed { error } => Err(error.to_string().into()),
        RunStep::Call { .. } | _ => Err("the run stopped before its end".into()),
    }
}
