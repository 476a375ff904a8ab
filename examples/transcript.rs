//! A tool over any transcript: stamps checkpoints, replaces ranges, runs a strategy, changes dialect.
//!
//! ```text
//! cargo run -q --example transcript -- [--format auto|anthropic|bedrock-converse|gemini|openai-chat|openai-responses]
//!     [--strategy NAME] [--window TOKENS] [--replace FROM..TO=TEXT]... [--stamp SEED] [--out FORMAT] FILE
//! ```
//!
//! FILE is a request body, a bare array of messages, or a record that holds the body as `request`.
//! The new body goes to standard output, the report to standard error. Summaries are written by the
//! offline extractive model. On bad input: one line, exit status 1, and nothing on standard output.

use std::{
    fs,
    io::{self, Write},
    process::ExitCode,
};

use futures::executor::block_on;
use options::Options;
use terminal::{Style, outline, thousands};
use threadfold::{
    CompactReport, ContentBlock, Message, Plan, Request, StrategyRegistry,
    compact::{CompactOptions, Size},
    drive::{Driven, Models, propose},
    legality, log,
    message::CheckpointIds,
    strategy::{Brief, Rejection, Snapshot, StrategyError},
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
    wire::{Adjustment, DecodeOptions, EncodeOptions, Encoded, ModelTraits},
};

#[path = "transcript/input.rs"]
mod input;
#[path = "transcript/options.rs"]
mod options;
mod terminal;

fn main() -> ExitCode {
    match Options::from_arguments().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("transcript: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let file = options.file.display();
    let bytes = fs::read(&options.file).map_err(|error| format!("{file}: {error}"))?;
    let input = input::read(&bytes, options.format).map_err(|error| format!("{file}: {error}"))?;
    let format = input.dialect.format();
    let request = format
        .decode_slice(input.body.as_bytes(), &DecodeOptions::default())
        .map_err(|error| format!("{file}: {error}"))?;

    let mut report = Report { style: Style::of(&io::stderr()), lines: Vec::new() };
    report.line("thread", format_args!("{file}, {}: {}", format.name(), size(&request.messages)));
    let messages = prepare(&mut report, &request, options);
    let messages = replace(&mut report, messages, options)?;
    let messages = compact(&mut report, &request, messages, options)?;

    let ended_open =
        request.messages.last().is_some_and(|last| last.role == threadfold::Role::Assistant);
    let encoded =
        encode(&Request { messages: messages.into(), ..request }, options, &input, ended_open);
    report.adjustments(&encoded.adjustments);
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", encoded.body).and_then(|()| out.flush());
    written.map_err(|error| format!("standard output: {error}"))?;
    report.print();
    Ok(())
}

/// Repairs what no provider accepts, and stamps checkpoints if asked.
fn prepare(report: &mut Report, request: &Request, options: &Options) -> Vec<Message> {
    let (mut messages, repairs) = legality::repair(request.messages.to_vec());
    for repair in &repairs {
        report.line("repaired", format_args!("message {}: {repair}", repair.message()));
    }
    let Some(seed) = options.stamp else { return messages };
    messages = log::stamp(messages, &mut CheckpointIds::new(seed));
    for (index, message) in messages.iter().enumerate() {
        if let Some(ContentBlock::Checkpoint(checkpoint)) = message.content.last() {
            report.line(
                checkpoint.id.as_str(),
                format_args!("message {index}: {}", outline(message, 56)),
            );
        }
    }
    messages
}

fn replace(
    report: &mut Report,
    mut messages: Vec<Message>,
    options: &Options,
) -> Result<Vec<Message>, String> {
    if options.replacements.is_empty() {
        return Ok(messages);
    }
    let plan = Plan::new(&messages, &options.replacements, &CompactOptions::default());
    let plan = plan.map_err(|error| error.to_string())?;
    let before = Size::of(&messages, &ByteEstimate::TRIGGER);
    plan.apply(&mut messages).map_err(|error| error.to_string())?;
    let done = CompactReport::new(before, &messages, &plan, &ByteEstimate::TRIGGER);
    report.line("replaced", format_args!("{done}"));
    Ok(messages)
}

fn compact(
    report: &mut Report,
    request: &Request,
    mut messages: Vec<Message>,
    options: &Options,
) -> Result<Vec<Message>, String> {
    let Some(name) = &options.strategy else { return Ok(messages) };
    let registry = StrategyRegistry::default();
    let strategy = registry.get(name).map_err(|error| error.to_string())?;
    let thread = Snapshot::new(messages.clone())
        .with_context(request.system.clone(), request.tools.clone())
        .with_window(options.window);
    let around =
        ByteEstimate::TRIGGER.request(&Request { messages: Vec::new().into(), ..request.clone() });
    // Half the window leaves room for what comes next.
    let target = options.window.map(|window| (window.tokens() / 2).saturating_sub(around));
    let brief = Brief { target, ..Brief::default() };
    let models = Models::one(&ExtractiveModel);
    match block_on(propose(strategy.as_ref(), &thread, &brief, models, &mut |_| {})) {
        Ok(Driven { proposal, usage, calls, .. }) => {
            let before = Size::of(&messages, &ByteEstimate::TRIGGER);
            proposal.plan.apply(&mut messages).map_err(|error| error.to_string())?;
            let done =
                CompactReport::new(before, &messages, &proposal.plan, &ByteEstimate::TRIGGER);
            report.line(name, format_args!("{done}"));
            let spent = (thousands(usage.input), thousands(usage.output));
            report.line(
                "spent",
                format_args!("{calls} calls, {} tokens in, {} out", spent.0, spent.1),
            );
            Ok(messages)
        }
        // A thread that cannot get smaller is no mistake of whoever gave it.
        Err(failed) if cannot_shrink(&failed.error) => {
            report.line(name, format_args!("{failed}"));
            Ok(messages)
        }
        Err(failed) => Err(format!("{name}: {failed}")),
    }
}

fn cannot_shrink(error: &StrategyError) -> bool {
    if let StrategyError::NoRung { rungs } = error {
        return rungs.iter().filter_map(|rung| rung.failure.as_ref()).all(cannot_shrink);
    }
    matches!(
        error,
        StrategyError::NothingToCompact { .. }
            | StrategyError::Rejected(Rejection::NotSmaller { .. })
    )
}

fn encode(
    request: &Request,
    options: &Options,
    input: &input::Input<'_>,
    ended_open: bool,
) -> Encoded {
    let name = input.model.as_deref();
    let mut traits = name.map(ModelTraits::for_model).unwrap_or_default();
    // A thread at rest ends with the answer. Whether its model takes that is its host's to know.
    traits.accepts_prefill |= ended_open && name.is_none();
    let format = options.out.unwrap_or(input.dialect).format();
    format.encode(request, &EncodeOptions { traits, ..EncodeOptions::default() })
}

fn size(messages: &[Message]) -> String {
    let size = Size::of(messages, &ByteEstimate::TRIGGER);
    format!("{} messages, about {} tokens", size.messages, thousands(size.tokens))
}

/// Lines for standard error, held back until the body is out.
struct Report {
    style: Style,
    lines: Vec<(String, String)>,
}

impl Report {
    fn line(&mut self, label: &str, text: std::fmt::Arguments<'_>) {
        self.lines.push((label.to_owned(), text.to_string()));
    }

    fn adjustments(&mut self, adjustments: &[Adjustment]) {
        const MAX: usize = 12;
        for adjustment in adjustments.iter().take(MAX) {
            self.line("adjusted", format_args!("{adjustment}"));
        }
        if let Some(more) = adjustments.len().checked_sub(MAX).filter(|more| *more > 0) {
            self.line("adjusted", format_args!("and {more} more"));
        }
    }

    fn print(&self) {
        for (label, text) in &self.lines {
            eprintln!("{}  {text}", self.style.bold(format!("{label:>11}")));
        }
    }
}
