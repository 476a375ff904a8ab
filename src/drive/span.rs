//! The tracing span of a compaction. Without the feature `tracing` it does nothing.
//!
//! The outcome of a span is set at the commit, so it agrees with the log wherever the future is
//! dropped.

use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "tracing")]
use tracing::{Instrument, Span, field::Empty};

use crate::{
    compact::{CompactReport, Size},
    compaction::telemetry,
    log::Thread,
    message::{ThreadId, Usage},
    strategy::Brief,
};

/// The span of a compaction. If it is dropped before `complete` or `fail`, the outcome is
/// `cancelled`.
#[derive(Debug)]
pub(crate) struct CompactionSpan {
    span: Span,
    ended: AtomicBool,
}

/// Replaces `tracing::Span` without the feature.
#[cfg(not(feature = "tracing"))]
#[derive(Debug)]
struct Span;

impl CompactionSpan {
    /// A disabled span.
    pub(crate) fn none() -> Self {
        Self::of(Span::none())
    }

    /// Opens the span of a compaction that begins on this thread.
    pub(crate) fn begin(thread: &Thread, id: &ThreadId, strategy: &str, brief: &Brief) -> Self {
        Self::of(open(thread.size(), id, strategy, brief))
    }

    /// Records the net gain of the previous compaction.
    pub(crate) fn previous(self, gain: impl FnOnce() -> Option<i64>) -> Self {
        if cfg!(feature = "tracing")
            && let Some(gain) = gain()
        {
            self.span.record(telemetry::PREVIOUS_GAIN, gain);
        }
        self
    }

    /// Runs a future inside the span, which is entered only while the future is polled.
    pub(crate) async fn run<F: Future>(&self, work: F) -> F::Output {
        #[cfg(feature = "tracing")]
        let work = work.instrument(self.span.clone());
        work.await
    }

    /// Records that the compaction was committed.
    pub(crate) fn complete(&self, report: &CompactReport, usage: Usage, calls: usize) {
        self.span.record(telemetry::MESSAGES_AFTER, report.after.messages);
        self.span.record(telemetry::TOKENS_AFTER, report.after.tokens);
        if let Some(cost) = &report.cost {
            self.span.record(telemetry::TOKENS_REBILLED, cost.tokens_rebilled);
            self.span.record(telemetry::COST, cost.model_calls.saturating_add(cost.rebill));
            self.span.record(telemetry::SAVED_PER_REQUEST, cost.saved_per_request);
        }
        self.end("completed", usage, calls);
    }

    /// Records that the compaction failed with this kind of error.
    pub(crate) fn fail(&self, kind: &str, usage: Usage, calls: usize) {
        self.error(kind);
        self.end("failed", usage, calls);
    }

    /// Records an error without ending the compaction.
    pub(crate) fn error(&self, kind: &str) {
        self.span.record(telemetry::ERROR_TYPE, kind);
    }

    fn of(span: Span) -> Self {
        Self { span, ended: AtomicBool::new(false) }
    }

    fn end(&self, outcome: &str, usage: Usage, calls: usize) {
        self.ended.store(true, Ordering::Relaxed);
        self.span.record(telemetry::OUTCOME, outcome);
        self.span.record(telemetry::CALLS, calls);
        self.span.record(telemetry::INPUT_TOKENS, usage.input);
        self.span.record(telemetry::OUTPUT_TOKENS, usage.output);
    }
}

impl Drop for CompactionSpan {
    fn drop(&mut self) {
        if !*self.ended.get_mut() {
            self.span.record(telemetry::OUTCOME, "cancelled");
        }
    }
}

/// Opens the span with all attributes known at the start, because samplers see only these.
#[cfg(feature = "tracing")]
fn open(size: Size, id: &ThreadId, strategy: &str, brief: &Brief) -> Span {
    tracing::info_span!(
        target: telemetry::TARGET,
        telemetry::SPAN,
        { telemetry::OPERATION_NAME } = "compact",
        { telemetry::CONVERSATION_ID } = id.as_str(),
        { telemetry::COMPACTION_ID } = brief.compaction.map(|id| id.0),
        { telemetry::STRATEGY } = strategy,
        { telemetry::REASON } = brief.reason.as_str(),
        { telemetry::MESSAGES_BEFORE } = size.messages,
        { telemetry::TOKENS_BEFORE } = size.tokens,
        { telemetry::MESSAGES_AFTER } = Empty,
        { telemetry::TOKENS_AFTER } = Empty,
        { telemetry::TOKENS_REBILLED } = Empty,
        { telemetry::COST } = Empty,
        { telemetry::SAVED_PER_REQUEST } = Empty,
        { telemetry::PREVIOUS_GAIN } = Empty,
        { telemetry::CALLS } = Empty,
        { telemetry::INPUT_TOKENS } = Empty,
        { telemetry::OUTPUT_TOKENS } = Empty,
        { telemetry::OUTCOME } = Empty,
        { telemetry::ERROR_TYPE } = Empty,
    )
}

#[cfg(not(feature = "tracing"))]
fn open(_size: Size, _id: &ThreadId, _strategy: &str, _brief: &Brief) -> Span {
    Span
}

#[cfg(not(feature = "tracing"))]
impl Span {
    fn none() -> Self {
        Self
    }

    fn record<V>(&self, _name: &str, _value: V) {}
}
