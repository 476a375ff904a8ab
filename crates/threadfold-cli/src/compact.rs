//! `compact`: makes the thread of a request body smaller, replaces ranges, changes the dialect.

use std::io::{self, IsTerminal};

use serde::Serialize;
use threadfold::{
    CompactReport, ContentBlock, ContextWindow, Message, Plan, Request, Role, StrategyRegistry,
    compact::{CompactOptions as ReplaceOptions, Size},
    drive::{Models, propose},
    legality, log,
    retention::RetentionPolicy,
    strategy::{Brief, Proposal, Rejection, Snapshot, StrategyError},
    tokens::{ByteEstimate, TokenCounter},
    wire::{Adjustment, EncodeOptions, Encoded},
};
use threadfold_terminal::{Style, counted, first_line, outline, thousands, wrapped};

use crate::{
    args::CompactOptions,
    error::{Ended, Failure},
    input::Body,
    out::{self, Waiting},
};

pub(crate) async fn run(options: &CompactOptions, models: Models<'_>) -> Result<Ended, Failure> {
    let body = Body::read(&options.file, options.from, options.thread.id())?;
    let mut report = Report { style: Style::of(&io::stderr()), lines: Vec::new() };
    let file = options.file.display();
    let request = &body.request;
    report.line(
        "thread",
        format_args!("{file}, {}: {}", body.dialect.name(), size(&request.messages)),
    );
    let messages = prepare(&mut report, request, options);
    let messages = replace(&mut report, messages, options)?;
    let (messages, ended, changed) = match options.keep_size {
        true => (messages, Ended::Done, Ended::Done),
        false => compact(&mut report, request, messages, options, models).await?,
    };
    let after = size(&messages);
    report.line("left", format_args!("{after}"));
    let encoded = encode(&body, &messages, options);
    report.adjustments(&encoded.adjustments);
    let is_other_dialect = options.to.is_some_and(|to| to != body.dialect);
    let is_same = !is_other_dialect && body.equals(encoded.body.as_str(), &messages);
    out::write(options.output.as_deref(), format!("{}\n", encoded.body).as_bytes())?;
    report.print(options.json)?;
    Ok(if is_same { ended } else { changed })
}

/// Repairs the thread, and inserts checkpoints if requested.
fn prepare(report: &mut Report, request: &Request, options: &CompactOptions) -> Vec<Message> {
    let (mut messages, repairs) = legality::repair(request.messages.to_vec());
    for repair in &repairs {
        report.line("repaired", format_args!("message {}: {repair}", repair.message()));
    }
    let Some(seed) = options.stamp else { return messages };
    messages = log::stamp(messages, seed);
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
    options: &CompactOptions,
) -> Result<Vec<Message>, Failure> {
    if options.replace.is_empty() {
        return Ok(messages);
    }
    let plan = Plan::new(&messages, &options.replace, &ReplaceOptions::default())?;
    let before = Size::of(&messages, &ByteEstimate::TRIGGER);
    plan.apply(&mut messages)?;
    let done = CompactReport::new(before, &messages, &plan, &ByteEstimate::TRIGGER);
    report.line("replaced", format_args!("{done}"));
    Ok(messages)
}

/// Returns the messages, the outcome if the output equals the input, and the outcome if it differs:
/// a repair may change a thread that a strategy leaves as it is.
async fn compact(
    report: &mut Report,
    request: &Request,
    mut messages: Vec<Message>,
    options: &CompactOptions,
    models: Models<'_>,
) -> Result<(Vec<Message>, Ended, Ended), Failure> {
    let name = options.strategy.as_str();
    let registry = StrategyRegistry::default();
    let strategy = registry.get(name)?;
    let window = options.window.map(ContextWindow::new);
    let thread = Snapshot::new(messages.clone())
        .with_context(request.system.clone(), request.tools.clone())
        .with_window(window);
    let around =
        ByteEstimate::TRIGGER.request(&Request { messages: Vec::new().into(), ..request.clone() });
    if let Some(window) = options.window.filter(|window| *window <= around) {
        return Err(format!(
            "system prompt and tools have about {around} tokens, so no thread fits a window of {window}"
        )
        .into());
    }
    // Half of the window leaves room for the next turns.
    let half = options.window.map(|window| (window / 2).saturating_sub(around));
    let wanted = options.target.or(half);
    let retention = Some(RetentionPolicy::default());
    // A smaller thread that misses the target is written too, and reported.
    let limit = options.window.map_or(u64::MAX, |window| window.saturating_sub(around));
    // Nobody asked for half of the thread, so it can be missed.
    let target = wanted.or_else(|| Some(ByteEstimate::TRIGGER.messages(&messages) / 2));
    let brief = Brief { target, limit: Some(limit), retention, ..Brief::default() };
    let waiting = Waiting::on(format_args!("compacting with {name}"));
    let mut proposed = propose(strategy.as_ref(), &thread, &brief, models, &mut |_, _| {}).await;
    // What must stay may exceed the target. Then the thread gets as small as it can.
    let mut target = brief.target.unwrap_or(u64::MAX);
    while let Err(failed) = &proposed
        && failed.strategy().is_some_and(cannot_shrink)
    {
        target = target.saturating_add(target / 4).saturating_add(1);
        if target >= ByteEstimate::TRIGGER.messages(&messages) {
            break;
        }
        let brief = Brief { target: Some(target), ..brief.clone() };
        let larger =
            propose(strategy.as_ref(), &thread, &brief, Models::default(), &mut |_, _| {}).await;
        if larger.is_ok() {
            proposed = larger;
        }
    }
    drop(waiting);
    match proposed {
        Ok(proposal) => {
            let Proposal { usage, calls, .. } = proposal;
            let before = Size::of(&messages, &ByteEstimate::TRIGGER);
            proposal.plan.apply(&mut messages)?;
            let mut done =
                CompactReport::new(before, &messages, &proposal.plan, &ByteEstimate::TRIGGER);
            done.notes = proposal.notes;
            report.line(name, format_args!("{done}"));
            let ended = against_target(report, wanted, &messages);
            if calls > 0 {
                let calls = counted(calls as u64, "call");
                let (input, output) = (thousands(usage.input), thousands(usage.output));
                report.line("spent", format_args!("{calls}, {input} tokens in, {output} out"));
            }
            Ok((messages, ended, ended))
        }
        // A thread that cannot get smaller is no error of the caller.
        Err(failed) if failed.strategy().is_some_and(cannot_shrink) => {
            report.line(name, format_args!("{failed}"));
            let tokens = ByteEstimate::TRIGGER.messages(&messages);
            let misses = wanted.is_some_and(|target| tokens > target);
            Ok((messages, Ended::Unchanged, if misses { Ended::Missed } else { Ended::Done }))
        }
        Err(failed) => {
            let needs_model = matches!(failed.strategy(), Some(StrategyError::NeedsModel));
            let hint = if needs_model { ": name one with --model" } else { "" };
            Err(format!("{name}: {failed}{hint}").into())
        }
    }
}

/// Reports a thread that misses its target, with what is in the way, or that is below two thirds of
/// it.
fn against_target(report: &mut Report, target: Option<u64>, messages: &[Message]) -> Ended {
    let Some(target) = target else { return Ended::Done };
    let counter = ByteEstimate::TRIGGER;
    let tokens = counter.messages(messages);
    if tokens < target / 3 * 2 {
        let (tokens, target) = (thousands(tokens), thousands(target));
        report.line(
            "below",
            format_args!(
                "about {tokens} tokens are less than two thirds of the target of {target}"
            ),
        );
    }
    if tokens <= target {
        return Ended::Done;
    }
    let unread = messages.get(legality::unread_from(messages)..).unwrap_or_default();
    let typed = messages.iter().rfind(|message| message.is_typed());
    let typed = typed.map_or(0, |message| counter.message(message));
    let (tokens, target) = (thousands(tokens), thousands(target));
    let (unread, typed) = (thousands(counter.messages(unread)), thousands(typed));
    report.line(
        "missed",
        format_args!(
            "about {tokens} tokens are over the target of {target}: what the model has not read yet has {unread}, the user's newest text {typed}"
        ),
    );
    Ended::Missed
}

fn cannot_shrink(error: &StrategyError) -> bool {
    if let StrategyError::NoRung { rungs } = error {
        let mut tried = rungs.iter().filter_map(|rung| rung.failure.as_ref());
        return tried.clone().any(cannot_shrink)
            && tried.all(|it| cannot_shrink(it) || matches!(it, StrategyError::NeedsModel));
    }
    matches!(
        error,
        StrategyError::NothingToCompact { .. }
            | StrategyError::Rejected(Rejection::NotSmaller { .. })
    )
}

fn encode(body: &Body, messages: &[Message], options: &CompactOptions) -> Encoded {
    let name = body.model.as_deref();
    let ended_open = body.request.messages.last().is_some_and(|last| last.role == Role::Assistant);
    let mut encoding = name.map(EncodeOptions::for_model).unwrap_or_default();
    encoding.model = None;
    // A stored thread usually ends with an answer, which some models refuse in a request. If the
    // body names no model, assume one that accepts it.
    encoding.accepts_prefill |= ended_open && name.is_none();
    let request = Request { messages: messages.to_vec().into(), ..body.request.clone() };
    let format = options.to.unwrap_or(body.dialect);
    format.encode(&request, &encoding)
}

fn size(messages: &[Message]) -> String {
    let size = Size::of(messages, &ByteEstimate::TRIGGER);
    let messages = counted(size.messages as u64, "message");
    format!("{messages}, about {} tokens", thousands(size.tokens))
}

/// Lines for standard error, which are printed after the body.
struct Report {
    style: Style,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    about: String,
    text: String,
}

impl Report {
    fn line(&mut self, about: &str, text: std::fmt::Arguments<'_>) {
        self.lines.push(Line { about: about.to_owned(), text: text.to_string() });
    }

    fn adjustments(&mut self, adjustments: &[Adjustment]) {
        const MAX: usize = 12;
        for adjustment in adjustments.iter().take(MAX) {
            // An adjustment quotes names of the thread, which may hold control characters.
            let text = first_line(&adjustment.to_string(), 200);
            self.line("adjusted", format_args!("{text}"));
        }
        if let Some(more) = adjustments.len().checked_sub(MAX).filter(|more| *more > 0) {
            self.line("adjusted", format_args!("and {more} more"));
        }
    }

    fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            eprintln!("{}", serde_json::to_string(&self.lines)?);
            return Ok(());
        }
        let is_terminal = io::stderr().is_terminal();
        for Line { about, text } in &self.lines {
            let about = self.style.bold(format!("{about:>17}"));
            // A program reads whole lines, a person 80 columns.
            let text = match is_terminal {
                true => wrapped(text, 61).join(&format!("\n{:19}", "")),
                false => text.clone(),
            };
            eprintln!("{about}  {text}");
        }
        Ok(())
    }
}
