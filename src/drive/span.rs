//! The tracing span of a compaction. Without the feature `tracing` it does nothing.
//!
//! The outcome of a span is set at the commit, so it agrees with the log wherever the future is
//! dropped.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

#[cfg(feature = "tracing")]
use tracing::{Instrument, Span, field::Empty};

use crate::{
    compact::{CompactReport, Size},
    compaction::telemetry,
    log::Thread,
    message::{Text, ThreadId, Usage},
    strategy::Brief,
};

/// The span of a compaction. It opens when it is first used, because a strategy that finds nothing
/// to compact is no compaction. If it is dropped after that and before `complete` or `fail`, the
/// outcome is `cancelled`.
#[derive(Debug)]
pub(crate) struct CompactionSpan {
    /// What is known at the start; `None` for a disabled span.
    opening: Option<Opening>,
    span: OnceLock<Span>,
    ended: AtomicBool,
}

/// What is known of a compaction at its start.
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "only a span reads it"))]
#[derive(Debug)]
struct Opening {
    size: Size,
    thread: ThreadId,
    strategy: Text,
    brief: Brief,
    /// The net gain of the previous compaction.
    previous: Option<i64>,
}

/// Replaces `tracing::Span` without the feature.
#[cfg(not(feature = "tracing"))]
#[derive(Debug)]
struct Span;

impl CompactionSpan {
    /// A disabled span.
    pub(crate) fn none() -> Self {
        Self { opening: None, span: OnceLock::new(), ended: AtomicBool::new(false) }
    }

    /// Returns the span of a compaction of this thread.
    pub(crate) fn begin(thread: &Thread, id: &ThreadId, strategy: &str, brief: &Brief) -> Self {
        let opening = cfg!(feature = "tracing").then(|| Opening {
            size: thread.size(),
            thread: id.clone(),
            strategy: strategy.into(),
            brief: brief.clone(),
            previous: None,
        });
        Self { opening, span: OnceLock::new(), ended: AtomicBool::new(false) }
    }

    /// Returns the span with the net gain of the previous compaction.
    pub(crate) fn previous(mut self, gain: impl FnOnce() -> Option<i64>) -> Self {
        if let Some(opening) = &mut self.opening {
            opening.previous = gain();
        }
        self
    }

    /// Runs a future inside the span, which is entered only while the future is polled.
    pub(crate) fn run<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        #[cfg(feature = "tracing")]
        let work = work.instrument(self.span().clone());
        work
    }

    /// Records that the compaction was committed.
    pub(crate) fn complete(&self, report: &CompactReport, usage: Usage, calls: usize) {
        self.span().record(telemetry::MESSAGES_AFTER, report.after.messages);
        self.span().record(telemetry::TOKENS_AFTER, report.after.tokens);
        if let Some(cost) = &report.cost {
            self.span().record(telemetry::TOKENS_REBILLED, cost.tokens_rebilled);
            self.span().record(telemetry::COST, cost.model_calls.saturating_add(cost.rebill));
            self.span().record(telemetry::SAVED_PER_REQUEST, cost.saved_per_request);
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
        self.span().record(telemetry::ERROR_TYPE, kind);
    }

    fn span(&self) -> &Span {
        self.span.get_or_init(|| self.opening.as_ref().map_or_else(Span::none, Opening::open))
    }

    fn end(&self, outcome: &str, usage: Usage, calls: usize) {
        self.ended.store(true, Ordering::Relaxed);
        self.span().record(telemetry::OUTCOME, outcome);
        self.span().record(telemetry::CALLS, calls);
        self.span().record(telemetry::INPUT_TOKENS, usage.input);
        self.span().record(telemetry::OUTPUT_TOKENS, usage.output);
    }
}

impl Drop for CompactionSpan {
    fn drop(&mut self) {
        if !*self.ended.get_mut()
            && let Some(span) = self.span.get()
        {
            span.record(telemetry::OUTCOME, "cancelled");
        }
    }
}

impl Opening {
    /// Opens the span with all attributes known at the start, because samplers see only these.
    #[cfg(feature = "tracing")]
    fn open(&self) -> Span {
        let Self { size, thread, strategy, brief, previous } = self;
        let span = tracing::info_span!(
            target: telemetry::TARGET,
            telemetry::SPAN,
            { telemetry::OPERATION_NAME } = "compact",
            { telemetry::CONVERSATION_ID } = thread.as_str(),
            { telemetry::COMPACTION_ID } = brief.compaction.map(|id| id.0),
            { telemetry::STRATEGY } = strategy.as_str(),
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
        );
        if let Some(gain) = previous {
            span.record(telemetry::PREVIOUS_GAIN, gain);
        }
        span
    }

    #[cfg(not(feature = "tracing"))]
    fn open(&self) -> Span {
        let Self { size: _, thread: _, strategy: _, brief: _, previous: _ } = self;
        Span
    }
}

#[cfg(not(feature = "tracing"))]
impl Span {
    fn none() -> Self {
        Self
    }

    fn record<V>(&self, _name: &str, _value: V) {}
}
