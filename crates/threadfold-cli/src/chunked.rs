//! `chunked`: summarises long threads chunk by chunk, and continues a stopped run.
//!
//! Each chunk is folded into `/summary.md`. The lines that it adds are printed at once, and the
//! whole summary at the end. With `--store` the run is saved after every answer.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use threadfold::{
    drive::{Models, advance},
    ledger::Quotes,
    render::{BYTES_PER_TOKEN, ChunkBudget},
    strategy::{ChunkOutcome, ChunkStep, Chunked, CompactionRun, RunStep},
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
            style.yellow(format!("Continued after {}.", counted(chunks_done(&run), "chunk")))
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
                bar.suspend(|| show_steps(style, &run, shown, summary_shown));
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

/// The number of chunks whose work has ended.
fn chunks_done(run: &CompactionRun) -> u64 {
    match run.step() {
        RunStep::Call { chunk, .. } => chunk as u64,
        RunStep::Done { .. } | RunStep::Failed { .. } | _ => chunks(run.steps().iter()),
    }
}

/// The number of chunks that these steps are about. A chunk that is halved or worked on again has
/// several steps.
fn chunks<'a>(steps: impl Iterator<Item = &'a ChunkStep>) -> u64 {
    steps.map(|step| step.bytes.start).collect::<BTreeSet<usize>>().len() as u64
}

/// Prints the steps from this index on, and what they added to the summary. After a failure that
/// stays, one call records the steps of all remaining chunks.
fn show_steps(style: Style, run: &CompactionRun, from: usize, summary_before: usize) {
    for index in from..run.steps().len() {
        for line in step_lines(style, run.steps(), index).into_iter().flatten() {
            say!("{line}");
        }
    }
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

/// What was done in the step at this index.
fn step_lines(style: Style, steps: &[ChunkStep], index: usize) -> Option<[String; 2]> {
    let (before, step) = (steps.get(..=index)?, steps.get(index)?);
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
    let is_before = |other: &&ChunkStep| other.bytes.start <= step.bytes.start;
    let number = chunks(before.iter().filter(is_before));
    let size = thousands(step.summary_bytes as u64);
    Some([
        style.heading(&format!("Chunk {number}, {bytes} bytes")),
        format!("{outcome}: /summary.md has {size} bytes now"),
    ])
}

fn finish(options: &ChunkedOptions, style: Style, run: &CompactionRun) -> Result<(), Failure> {
    match run.step() {
        RunStep::Done { summary } if options.json => {
            let (summary, _) = Quotes::cut(summary);
            let chunks = chunks_done(run);
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
                    counted(chunks_done(run), "chunk"),
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use threadfold::{
        Answer, Message, Model, Request,
        message::{ModelError, ModelErrorKind},
        testing::ExtractiveModel,
    };

    use super::*;

    /// Refuses the first request for its length, answers some, and then has no key any more.
    #[derive(Debug, Default)]
    struct Ends(AtomicUsize);

    #[threadfold::async_trait]
    impl Model for Ends {
        async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
            let error = |kind| Err(ModelError::new(kind, "no"));
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => error(ModelErrorKind::Overflow { limit: None, found: None, output: None }),
                1..=4 => ExtractiveModel.complete(request).await,
                _ => error(ModelErrorKind::Authentication),
            }
        }
    }

    #[test]
    fn every_step_of_a_chunk_has_the_number_of_the_chunk() {
        let turn = |number: usize| {
            let text = format!("Step {number} of src/part_{number}.rs is done. ").repeat(40);
            [Message::user(format!("Do step {number}.")), Message::assistant(text)]
        };
        let thread: Vec<Message> = (0..12).flat_map(turn).collect();
        let chunks_of = ChunkBudget { target: 4_000, tolerance: 800 };
        let options = Chunked { chunks: chunks_of, ..Chunked::default() };
        let mut run = CompactionRun::new(&thread, None, options).unwrap();
        let (model, mut total) = (Ends::default(), 0);
        while let RunStep::Call { total: now, chunk, .. } = run.step() {
            assert_eq!(chunks_done(&run), chunk as u64);
            total = now;
            futures::executor::block_on(advance(&mut run, Models::one(&model), &mut |_, _| {}));
        }
        assert!(matches!(run.step(), RunStep::Done { .. }), "{:?}", run.step());
        assert_eq!(chunks_done(&run), total as u64);
        assert!(run.steps().len() > total, "the first chunk was halved");
        let style = Style::of(&io::stdout());
        let lines = |index| step_lines(style, run.steps(), index).unwrap();
        let numbers: Vec<String> = (0..run.steps().len())
            .map(|index| lines(index)[0].split(',').next().unwrap().trim().to_owned())
            .collect();
        let expected = (1..=total).map(|number| format!("Chunk {number}"));
        assert_eq!(numbers[0], numbers[1]);
        assert!(numbers[1..].iter().cloned().eq(expected), "{numbers:?}");
    }
}
