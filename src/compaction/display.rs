//! Showing compactions to a person.
//!
//! Every compaction emits the same events, whatever requested it. So a display that gets each
//! [`CompactionEvent`] shows all compactions.

use std::io;

use super::event::CompactionEvent;
use crate::{compact::CompactReport, log::Rung, message::CompactionReason};

/// Shows compactions to a person. For each compaction, `on_start` is called first, and then exactly
/// one of `on_complete`, `on_error` and `on_cancel`. `on_fallback` may follow `on_complete`.
///
/// ```
/// use threadfold::compact::CompactReport;
/// use threadfold::message::{CompactionId, CompactionReason, Timestamp};
/// use threadfold::session::{CompactionDisplay, CompactionEvent};
///
/// /// A spinner that knows whether it turns.
/// #[derive(Default)]
/// struct Spinner(bool);
///
/// impl CompactionDisplay for Spinner {
///     fn on_start(&mut self, _strategy: &str, _reason: &CompactionReason) {
///         self.0 = true;
///     }
///
///     fn on_complete(&mut self, _report: &CompactReport) {
///         self.0 = false;
///     }
///
///     fn on_error(&mut self, _error: &str) {
///         self.0 = false;
///     }
/// }
///
/// let mut spinner = Spinner(true);
/// let (id, thread, at) = (CompactionId(0), "main".parse()?, Timestamp(0));
/// spinner.show(&CompactionEvent::Cancelled { id, thread, at });
/// assert!(!spinner.0);
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
pub trait CompactionDisplay {
    /// A compaction began.
    fn on_start(&mut self, strategy: &str, reason: &CompactionReason);

    /// A model is called: the number of finished calls and the expected number. The default shows
    /// nothing.
    fn on_progress(&mut self, done: usize, total: usize) {
        let _ = (done, total);
    }

    /// The thread was compacted.
    fn on_complete(&mut self, report: &CompactReport);

    /// The thread was compacted by the strategy `used`, after those in `failed`, in order. Called
    /// right after [`on_complete`](Self::on_complete). The default shows nothing.
    fn on_fallback(&mut self, used: &str, failed: &[Rung]) {
        let _ = (used, failed);
    }

    /// The compaction failed, and the thread is unchanged.
    fn on_error(&mut self, error: &str);

    /// The compaction was cancelled, and the thread is unchanged. The default shows an error.
    fn on_cancel(&mut self) {
        self.on_error("cancelled");
    }

    /// Shows an event. A host calls this for every event of every compaction.
    fn show(&mut self, event: &CompactionEvent) {
        match event {
            CompactionEvent::Started { strategy, reason, .. } => self.on_start(strategy, reason),
            CompactionEvent::Progress { done, total, id: _ } => self.on_progress(*done, *total),
            // Raw output of a model may differ from the summary that enters the thread.
            CompactionEvent::SummaryDelta { .. } => {}
            CompactionEvent::Completed { report, .. } => {
                self.on_complete(report);
                if let Some((used, failed)) = event.fallback() {
                    self.on_fallback(&used.strategy, failed);
                }
            }
            CompactionEvent::Failed { error, .. } => self.on_error(error),
            CompactionEvent::Cancelled { .. } => self.on_cancel(),
        }
    }
}

/// Returns a display that writes one line when a compaction begins and one when it ends, for
/// example to the standard error output. Its lines call messages "events". If the first strategy
/// failed, one more line names the strategy that succeeded and the reason of the failure: `Used
/// digest instead of summarize: no model`. The notes of the report follow, a line each, such as
/// which chunks no model summarised.
///
/// Errors of the writer are ignored, because a compaction must not depend on its display.
///
/// ```
/// use threadfold::compact::{CompactReport, Size};
/// use threadfold::session::{CompactionDisplay, console};
///
/// let mut report = CompactReport::default();
/// (report.before.messages, report.after.messages) = (40, 9);
/// let mut written = Vec::new();
/// console(&mut written).on_complete(&report);
/// let written = String::from_utf8(written)?;
/// assert_eq!(written, "✅ Compaction complete! Reduced from 40 to 9 events (78% reduction)\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn console<W: io::Write>(writer: W) -> impl CompactionDisplay {
    Console { writer }
}

struct Console<W> {
    writer: W,
}

impl<W: io::Write> Console<W> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.writer, "{line}").and_then(|()| self.writer.flush());
    }
}

impl<W: io::Write> CompactionDisplay for Console<W> {
    fn on_start(&mut self, _strategy: &str, _reason: &CompactionReason) {
        self.line("🔄 Compacting conversation to reduce size...");
    }

    fn on_complete(&mut self, report: &CompactReport) {
        let (before, after) = (report.before.messages, report.after.messages);
        let percent = reduction(before, after);
        self.line(&format!(
            "✅ Compaction complete! Reduced from {before} to {after} events ({percent}% reduction)"
        ));
        for note in &report.notes {
            self.line(&one_line(note));
        }
    }

    fn on_fallback(&mut self, used: &str, failed: &[Rung]) {
        let tried: Vec<String> = failed.iter().map(tried).collect();
        self.line(&format!("Used {} instead of {}", one_line(used), tried.join("; ")));
    }

    fn on_error(&mut self, error: &str) {
        self.line(&format!("❌ Compaction failed: {}", one_line(error)));
    }

    fn on_cancel(&mut self) {
        self.line("Compaction cancelled");
    }
}

/// The maximum number of characters of a reason in a line.
const LONGEST_REASON: usize = 100;

/// Returns a failed strategy and the reason of its failure.
fn tried(rung: &Rung) -> String {
    let strategy = one_line(&rung.strategy);
    let Some(failure) = &rung.failure else { return strategy };
    let reason = one_line(failure);
    let shown: String = reason.chars().take(LONGEST_REASON).collect();
    let more = if shown.len() < reason.len() { "..." } else { "" };
    format!("{strategy}: {shown}{more}")
}

/// Returns a text without line breaks and terminal control codes, because the text of a provider
/// may contain both.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the reduction in percent, rounded to the nearest; 0 if there is none.
fn reduction(before: usize, after: usize) -> u128 {
    let (before, less) = (before as u128, before.saturating_sub(after) as u128);
    (less * 200 + before).checked_div(before * 2).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{CompactionId, Timestamp};

    fn shown(events: &[CompactionEvent]) -> String {
        let mut written = Vec::new();
        let mut display = console(&mut written);
        events.iter().for_each(|event| display.show(event));
        drop(display);
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn the_console_has_a_line_for_each_beginning_and_each_end() {
        let events = include_str!("../../testdata/events/compaction.jsonl").lines();
        let events: Vec<CompactionEvent> =
            events.map(|line| serde_json::from_str(line).unwrap()).collect();
        let starts = events.iter().filter(|event| matches!(event, CompactionEvent::Started { .. }));
        let starts = "🔄 Compacting conversation to reduce size...\n".repeat(starts.count());
        let complete =
            "✅ Compaction complete! Reduced from 40 to 9 events (78% reduction)\n".repeat(2);
        assert_eq!(
            shown(&events),
            starts
                + &complete
                + "Used digest instead of summarize: no model\n\
                   ✅ Compaction complete! Reduced from 40 to 9 events (78% reduction)\n\
                   summarised without a model: chunk 2 of 4 (no model)\n\
                   ❌ Compaction failed: no model\n\
                   Compaction cancelled\n"
        );
    }

    #[test]
    fn an_error_is_one_line_and_commands_no_terminal() {
        let (id, thread, at) = (CompactionId(0), "t".parse().unwrap(), Timestamp(0));
        let error = "a\nb\u{1b}[2Jc".into();
        assert_eq!(
            shown(&[CompactionEvent::Failed { id, thread, at, error }]),
            "❌ Compaction failed: a b [2Jc\n"
        );
    }

    #[test]
    fn a_fallback_is_one_short_line_with_every_strategy_that_failed() {
        let rung = |strategy: &str, failure: Option<&str>| {
            let mut rung = Rung::new(strategy);
            rung.failure = failure.map(Into::into);
            rung
        };
        let long = format!("over{}", "!".repeat(200));
        let mut written = Vec::new();
        let mut display = console(&mut written);
        display
            .on_fallback("digest", &[rung("fold", Some("no\nmodel")), rung("trim", Some(&long))]);
        display.on_fallback("trim\u{1b}", &[rung("fold", None)]);
        drop(display);
        assert_eq!(
            String::from_utf8(written).unwrap(),
            format!(
                "Used digest instead of fold: no model; trim: over{}...\n\
                 Used trim  instead of fold\n",
                "!".repeat(96)
            )
        );
    }

    #[test]
    fn a_reduction_is_rounded_and_safe() {
        let rows = [
            (0, 0, 0),
            (0, 5, 0),
            (5, 0, 100),
            (5, 5, 0),
            (5, 9, 0),
            (200, 199, 1),
            (201, 200, 0),
            (3, 1, 67),
            (usize::MAX, 0, 100),
        ];
        for (before, after, percent) in rows {
            assert_eq!(reduction(before, after), percent, "{before} to {after}");
        }
    }
}
