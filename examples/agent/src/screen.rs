//! The output for the user.

use std::{
    cmp::Reverse,
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use threadfold::{
    ContentBlock,
    message::Text,
    session::{CompactionEvent, SessionEvent},
    tokens::BreakdownPart,
};
use threadfold_terminal::{Style, first_line, plain, thousands};

use crate::{demo::Change, paper::Paper};

/// The width of a line in columns.
const WIDTH: usize = 96;

/// Writes events as they happen.
#[derive(Debug)]
pub(crate) struct Screen {
    paper: Paper,
    /// The style of the paper.
    style: Style,
    /// Whether the output is a terminal.
    watched: bool,
    bar: Option<ProgressBar>,
    /// The summary that the running compaction has received so far.
    summary: String,
    /// The calls that have started and not finished: their ids and inputs.
    calls: Vec<(Text, Text)>,
    window: Option<u64>,
}

impl Screen {
    pub(crate) fn new(window: Option<u64>) -> Self {
        let (paper, watched) = (Paper::new(), io::stdout().is_terminal());
        let (style, summary, calls) = (paper.style, String::new(), Vec::new());
        Self { paper, style, watched, bar: None, summary, calls, window }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let heading = self.style.heading(text);
        self.paper.gap();
        self.paper.line(heading.trim_start());
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.paper.line(text);
    }

    /// Writes a dimmed line.
    pub(crate) fn note(&mut self, text: &str) {
        let text = self.style.dim(text);
        self.line(&text);
    }

    pub(crate) fn failure(&mut self, text: &str) {
        let text = format!("{} {}", self.style.red("✗"), plain(text));
        self.line(&text);
    }

    pub(crate) fn done(&mut self, text: &str) {
        let text = format!("{} {}", self.style.green("✓"), plain(text));
        self.line(&text);
    }

    /// Writes the prompt for the next line.
    pub(crate) fn prompt(&mut self) {
        let prompt = self.style.bold("› ");
        self.paper.gap();
        self.paper.piece(&prompt);
        self.paper.flush();
    }

    /// Records that the user typed a line.
    pub(crate) fn entered(&mut self) {
        self.paper.line_was_ended();
        self.paper.gap();
    }

    /// Shows a line that was not typed at this terminal.
    pub(crate) fn typed(&mut self, text: &str) {
        let text = self.style.bold(format!("› {}", plain(text)));
        self.paper.gap();
        self.paper.line(text);
        self.paper.gap();
    }

    /// Shows how full the window is.
    pub(crate) fn meter(&mut self, tokens: u64) {
        let line = match self.window {
            Some(window) => self.style.meter(tokens, window),
            None => format!("{} tokens; the window is not known", thousands(tokens)),
        };
        self.paper.gap();
        self.paper.line(line);
    }

    pub(crate) fn event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::TextDelta { text } => self.paper.piece(&plain(text)),
            SessionEvent::ThinkingDelta { text } => self.paper.piece(&self.style.dim(plain(text))),
            SessionEvent::ToolStarted { id, input, .. } => {
                self.calls.push((id.clone(), input.clone()));
            }
            SessionEvent::ToolFinished { id, name, is_error, content } => {
                let call = self.calls.iter().position(|(started, _)| started == id);
                let input = call.map(|call| self.calls.swap_remove(call).1).unwrap_or_default();
                self.tool((name, &input), *is_error, content);
            }
            SessionEvent::AnswerDiscarded => {
                self.note("(the answer did not fit and is asked again)")
            }
            SessionEvent::Compaction(event) => self.compaction(event),
            SessionEvent::NothingCompacted { why } => self.note(&plain(why)),
            SessionEvent::Notice { .. } => {}
            SessionEvent::QueuedMessage { text, .. } => self.typed(text),
            SessionEvent::TurnEnded { capped, .. } => {
                self.paper.end_line();
                if *capped {
                    self.failure("stopped: it did not come to an end by itself");
                }
            }
            SessionEvent::Aborted => self.failure("aborted"),
            _ => {}
        }
        self.paper.flush();
    }

    /// How long a user needs to read a scripted line. Zero if the output is not a terminal.
    pub(crate) fn reading_time(&self) -> Duration {
        if self.watched { Duration::from_millis(900) } else { Duration::ZERO }
    }

    /// How long an event of the scripted model takes on the screen, because the script answers at
    /// once.
    pub(crate) fn event_time(&self, event: &SessionEvent) -> Duration {
        match event {
            SessionEvent::TextDelta { .. } if self.watched => Duration::from_millis(40),
            SessionEvent::ToolFinished { .. } if self.watched => Duration::from_millis(250),
            SessionEvent::Compaction(
                CompactionEvent::Started { .. } | CompactionEvent::Progress { .. },
            ) if self.watched => Duration::from_millis(500),
            _ => Duration::ZERO,
        }
    }

    /// Shows a call and its result in one line.
    fn tool(&mut self, (name, input): (&str, &str), is_error: bool, content: &[ContentBlock]) {
        let input = serde_json::from_str::<Value>(input).unwrap_or_default();
        let text_of = |key| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let what = match text_of("text") {
            "" => text_of("path").to_owned(),
            wanted => format!("{wanted:?}"),
        };
        let text = content.iter().find_map(ContentBlock::as_text);
        let text = text.map_or("", |text| text.as_str());
        let result = match text.lines().count() {
            _ if is_error => first_line(text, 60),
            0 | 1 => first_line(text, 60),
            lines => format!("{lines} lines"),
        };
        let mark = if is_error { self.style.red("✗") } else { self.style.cyan("•") };
        let (name, what) = (plain(name), first_line(&what, 44));
        let call = self.style.cyan(format!("{name:<6}"));
        self.line(&format!("  {mark} {call} {what:<20} {}", self.style.dim(result)));
    }

    fn compaction(&mut self, event: &CompactionEvent) {
        match event {
            CompactionEvent::Started { reason, strategy, .. } => {
                let why = match reason.as_str() {
                    "threshold" => "the window is getting full",
                    "overflow" => "the window is full",
                    "manual" => "you asked for it",
                    other => other,
                };
                let why = self.style.dim(format!("because {why}, by {strategy}"));
                self.paper.gap();
                self.line(&format!("  {} {why}", self.style.yellow("compaction")));
                self.summary.clear();
                self.bar = Some(bar());
            }
            CompactionEvent::Progress { done, total, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*total as u64);
                    bar.set_position(*done as u64);
                }
            }
            CompactionEvent::SummaryDelta { text, .. } => self.summary.push_str(text),
            CompactionEvent::Completed { report, .. } => {
                self.clear_bar();
                self.summary();
                let kept = report.retention.as_ref().map(|kept| kept.overall.percent());
                let kept =
                    kept.map_or(String::new(), |kept| format!("; {kept} % of the facts kept"));
                let (before, after) = (&report.before, &report.after);
                self.done(&format!(
                    "{} messages became {}, {} tokens became {}{kept}",
                    before.messages,
                    after.messages,
                    thousands(before.tokens),
                    thousands(after.tokens),
                ));
                self.paper.gap();
            }
            CompactionEvent::Failed { error, .. } => {
                self.clear_bar();
                self.failure(&format!("not compacted: {error}"));
            }
            CompactionEvent::Cancelled { .. } => {
                self.clear_bar();
                self.failure("the compaction was cancelled");
            }
            _ => {}
        }
    }

    /// Shows the beginning of a summary.
    fn summary(&mut self) {
        let summary = plain(&std::mem::take(&mut self.summary));
        let mut lines = summary.lines().filter(|line| !line.trim().is_empty());
        let mark = self.style.yellow("│");
        for line in lines.by_ref().take(6) {
            self.paper.line(format!("  {mark} {}", self.style.dim(first_line_of(line))));
        }
        match lines.count() {
            0 => {}
            more => {
                let more = self.style.dim(format!("({more} more lines)"));
                self.paper.line(format!("  {mark} {more}"));
            }
        }
    }

    fn clear_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows the parts of the next request, the largest first.
    pub(crate) fn context(&mut self, mut parts: Vec<BreakdownPart>) {
        let total = parts.iter().map(|part| part.tokens).sum::<u64>();
        parts.sort_by_key(|part| Reverse(part.tokens));
        let most = parts.first().map_or(1, |part| part.tokens.max(1));
        for part in parts {
            let cells =
                usize::try_from(part.tokens.saturating_mul(24).div_ceil(most)).unwrap_or(24);
            let bar = self.style.cyan(format!("{:<24}", "█".repeat(cells)));
            let tool = part.tool.as_deref().unwrap_or_default();
            let name = first_line(&format!("{} {tool}", part.kind.label()), 24);
            let tokens = thousands(part.tokens);
            self.paper.line(format!("  {name:<24} {bar} {tokens:>7}"));
        }
        if let Some(window) = self.window {
            let free = thousands(window.saturating_sub(total));
            let line = self.style.dim(format!("{:<49} {free:>7}", "free"));
            self.paper.line(format!("  {line}"));
        }
        self.meter(total);
    }

    /// Shows the change of a file.
    pub(crate) fn change(&mut self, change: &Change) {
        self.line(&format!("  {}", self.style.bold(change.path)));
        for line in &change.gone {
            self.paper.line(format!("  {}", self.style.red(format!("- {}", first_line_of(line)))));
        }
        for line in &change.new {
            self.paper
                .line(format!("  {}", self.style.green(format!("+ {}", first_line_of(line)))));
        }
    }
}

/// Returns the first line of a text, cut to the width, with its indent.
fn first_line_of(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    format!("{}{}", " ".repeat(indent), first_line(line, WIDTH.saturating_sub(indent)))
}

/// Returns the progress bar of a compaction, for terminals only.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    if !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // A template that does not parse leaves the plain style.
    let template = "  {spinner:.yellow} {bar:40.yellow/dim} call {pos} of {len}  {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
