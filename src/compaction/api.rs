//! Compactions and token usage for a web page, in the names and units of browsers.
//!
//! Every `COMPACTION_START` is followed by its `COMPACTION_COMPLETE`, also if the compaction failed
//! or was cancelled, so no page waits for ever. The JSON has camel-case keys, times as
//! `Date.toJSON` writes them, and shares in percent. `testdata/events/api.jsonl` has a line of each
//! kind.

use serde::{Deserialize, Serialize};

use super::event::CompactionEvent;
use crate::{
    log::TotalUsage,
    message::{ContextWindow, Text, ThreadId, Timestamp},
};

/// What a server sends about a compaction.
///
/// ```
/// use threadfold::message::{CompactionId, CompactionReason, Timestamp};
/// use threadfold::session::{CompactionEvent, api::ApiEvent};
///
/// let cancelled = CompactionEvent::Cancelled {
///     id: CompactionId(0),
///     thread: "main".parse()?,
///     at: Timestamp(1_754_640_000_123),
/// };
/// assert_eq!(
///     serde_json::to_string(&ApiEvent::of(&cancelled))?,
///     r#"{"type":"COMPACTION_COMPLETE","threadId":"main","timestamp":"2025-08-08T08:00:00.123Z","data":{"success":false,"tokensSaved":0,"error":"cancelled"}}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ApiEvent {
    /// A compaction began.
    CompactionStart {
        /// The thread.
        thread_id: ThreadId,
        /// When.
        #[serde(with = "date")]
        timestamp: Timestamp,
        /// How, and why.
        data: CompactionStart,
    },
    /// A compaction ended, with or without success.
    CompactionComplete {
        /// The thread.
        thread_id: ThreadId,
        /// When.
        #[serde(with = "date")]
        timestamp: Timestamp,
        /// How.
        data: CompactionComplete,
    },
}

/// The strategy and the reason of a compaction that begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactionStart {
    /// The strategy.
    pub strategy: Text,
    /// Whether the compaction is automatic: neither a person nor the agent requested it.
    pub auto: bool,
    /// The kind of reason: `threshold`, `overflow`, `manual`, `agent_tool`, `model_switch` or
    /// `background`. It never contains a person's words.
    pub reason: Text,
}

/// How a compaction ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactionComplete {
    /// Whether the thread was compacted. Otherwise it is unchanged.
    pub success: bool,
    /// The tokens that were saved, as estimated by the thread's counter; 0 without success.
    pub tokens_saved: i64,
    /// The number of messages before; `None` without success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_event_count: Option<usize>,
    /// The number of messages after; `None` without success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_event_count: Option<usize>,
    /// The strategy that made the plan, if [`CompactionStart`] names one that tries others, such as
    /// a ladder. `None` for all other strategies, and without success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Text>,
    /// The strategies that failed before it, in order; empty if the first succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_from: Vec<Text>,
    /// The text of the error, or `cancelled`; `None` with success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Text>,
}

/// The tokens that were billed for a thread, and how full its context is.
///
/// The two differ. Every call is billed for the whole conversation again, so the totals grow with
/// every call and no compaction reduces them. The context is that of the *next* request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsageSummary {
    /// The prompt tokens of all calls, those of tools and compactions included, as reported by the
    /// providers.
    pub total_prompt_tokens: u64,
    /// The answer tokens of all these calls.
    pub total_completion_tokens: u64,
    /// The sum of both.
    pub total_tokens: u64,
    /// The number of log events with a usage.
    pub event_count: usize,
    /// The tokens of the next request.
    pub context_tokens: u64,
    /// The window of the model, in tokens; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
    /// The share of the window that the next request takes, in percent. It may exceed 100, and is 0
    /// if the window is unknown or 0.
    pub percent_used: f64,
    /// Whether the next request takes more than 80 percent of the window.
    pub near_limit: bool,
}

impl ApiEvent {
    /// Returns what a server sends for an event of a compaction; `None` for an event between start
    /// and end.
    ///
    /// ```
    /// use threadfold::message::{CompactionId, Timestamp};
    /// use threadfold::session::{CompactionEvent, api::ApiEvent};
    ///
    /// let (id, thread, at) = (CompactionId(0), "main".parse()?, Timestamp(0));
    /// let progress = CompactionEvent::Progress { id, done: 1, total: 4 };
    /// assert_eq!(ApiEvent::of(&progress), None, "pages get the start and the end");
    /// let failed = CompactionEvent::Failed { id, thread, at, error: "no model".into() };
    /// let Some(ApiEvent::CompactionComplete { data, .. }) = ApiEvent::of(&failed) else { panic!() };
    /// assert_eq!((data.success, data.error.as_deref()), (false, Some("no model")));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn of(event: &CompactionEvent) -> Option<Self> {
        let complete = |thread: &ThreadId, at: &Timestamp, data| {
            Some(Self::CompactionComplete { thread_id: thread.clone(), timestamp: *at, data })
        };
        match event {
            CompactionEvent::Started { thread, at, reason, strategy, id: _ } => {
                let (auto, kind) = (reason.is_automatic(), reason.as_str().into());
                let data = CompactionStart { strategy: strategy.clone(), auto, reason: kind };
                Some(Self::CompactionStart { thread_id: thread.clone(), timestamp: *at, data })
            }
            CompactionEvent::Progress { .. } | CompactionEvent::SummaryDelta { .. } => None,
            CompactionEvent::Completed { thread, at, report, rungs, .. } => {
                let used = rungs.iter().find(|rung| rung.failure.is_none());
                let failed = event.fallback().map_or(&[][..], |(_, failed)| failed);
                let data = CompactionComplete {
                    success: true,
                    tokens_saved: report.tokens_saved(),
                    original_event_count: Some(report.before.messages),
                    compacted_event_count: Some(report.after.messages),
                    strategy: used.map(|rung| rung.strategy.clone()),
                    fallback_from: failed.iter().map(|rung| rung.strategy.clone()).collect(),
                    error: None,
                };
                complete(thread, at, data)
            }
            CompactionEvent::Failed { thread, at, error, id: _ } => {
                complete(thread, at, CompactionComplete::failed(error.clone()))
            }
            CompactionEvent::Cancelled { thread, at, id: _ } => {
                complete(thread, at, CompactionComplete::failed("cancelled".into()))
            }
        }
    }
}

impl CompactionComplete {
    fn failed(error: Text) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl TokenUsageSummary {
    /// Returns the summary of a thread: what was billed, and the share that the next request would
    /// have of the window.
    ///
    /// ```
    /// use threadfold::log::{Event, total_usage};
    /// use threadfold::{ContextWindow, EventLog, Message, Usage, message::Timestamp};
    /// use threadfold::session::api::TokenUsageSummary;
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// for (input, output) in [(100, 50), (200, 75)] {
    ///     let mut answer = Message::assistant("Yes.");
    ///     answer.make_mut().usage = Some(Usage::new(input, output));
    ///     log.append(Timestamp(0), Event::MessageAppended(answer))?;
    /// }
    /// let billed = total_usage(log.events());
    /// let summary = TokenUsageSummary::new(billed, 275, Some(ContextWindow::new(1_000)));
    /// assert_eq!((summary.total_prompt_tokens, summary.total_completion_tokens), (300, 125));
    /// assert_eq!((summary.total_tokens, summary.event_count), (425, 2));
    /// assert_eq!((summary.percent_used, summary.near_limit), (27.5, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(billed: TotalUsage, context_tokens: u64, window: Option<ContextWindow>) -> Self {
        let total = billed.total();
        // A window of zero tokens means that it is unknown.
        let known = window.map(ContextWindow::tokens).filter(|window| *window > 0);
        Self {
            total_prompt_tokens: total.input,
            total_completion_tokens: total.output,
            total_tokens: total.context_tokens(),
            event_count: billed.events,
            context_tokens,
            context_limit: known,
            percent_used: known.map_or(0.0, |window| context_tokens as f64 * 100.0 / window as f64),
            near_limit: known
                .is_some_and(|window| u128::from(context_tokens) * 5 > u128::from(window) * 4),
        }
    }
}

/// Times as `Date.toJSON` writes them.
mod date {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::message::{Text, Timestamp};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        Text::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::{CompactionFailure, Event, EventLog, total_usage},
        message::{CompactionId, CompactionReason, Message, Usage},
    };

    #[test]
    fn every_event_that_is_sent_has_the_json_that_its_line_says() {
        let told = include_str!("../../testdata/events/compaction.jsonl").lines();
        let told = told.map(|line| serde_json::from_str::<CompactionEvent>(line).unwrap());
        let sent: Vec<ApiEvent> = told.filter_map(|event| ApiEvent::of(&event)).collect();
        let written: Vec<_> =
            sent.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        let lines = include_str!("../../testdata/events/api.jsonl");
        assert_eq!(written, lines.lines().collect::<Vec<_>>());
        for (event, line) in sent.iter().zip(lines.lines()) {
            assert_eq!(serde_json::from_str::<ApiEvent>(line).unwrap(), *event);
        }
    }

    #[test]
    fn every_beginning_and_every_end_is_sent_and_nothing_else() {
        let told = include_str!("../../testdata/events/compaction.jsonl").lines();
        for line in told {
            let event = serde_json::from_str::<CompactionEvent>(line).unwrap();
            let sent = ApiEvent::of(&event);
            let begins = matches!(event, CompactionEvent::Started { .. });
            let start = matches!(sent, Some(ApiEvent::CompactionStart { .. }));
            let complete = matches!(sent, Some(ApiEvent::CompactionComplete { .. }));
            assert_eq!((start, complete), (begins, event.is_end()), "{line}");
        }
    }

    fn log() -> EventLog {
        let mut log = EventLog::new("main".parse().unwrap());
        for (input, output) in [(100, 50), (200, 75)] {
            let mut answer = Message::assistant("Yes.");
            answer.make_mut().usage = Some(Usage::new(input, output));
            log.append(Timestamp(0), Event::MessageAppended(answer)).unwrap();
        }
        let (id, reason) = (CompactionId(0), CompactionReason::Threshold);
        let mut failure = CompactionFailure::new(id, reason, "summarize", "no model");
        failure.usage = Usage::new(1_000, 7);
        log.append(Timestamp(0), Event::CompactionFailed(Box::new(failure))).unwrap();
        log
    }

    #[test]
    fn a_summary_has_the_bill_and_the_share_of_the_next_request() {
        let summary = TokenUsageSummary::new(
            total_usage(log().events()),
            150,
            Some(ContextWindow::new(1_000)),
        );
        let expected = TokenUsageSummary {
            total_prompt_tokens: 1_300,
            total_completion_tokens: 132,
            total_tokens: 1_432,
            event_count: 3,
            context_tokens: 150,
            context_limit: Some(1_000),
            percent_used: 15.0,
            near_limit: false,
        };
        assert_eq!(summary, expected);
        let json = r#"{"totalPromptTokens":1300,"totalCompletionTokens":132,"totalTokens":1432,"eventCount":3,"contextTokens":150,"contextLimit":1000,"percentUsed":15.0,"nearLimit":false}"#;
        assert_eq!(serde_json::to_string(&summary).unwrap(), json);
        assert_eq!(serde_json::from_str::<TokenUsageSummary>(json).unwrap(), summary);
    }

    #[test]
    fn eighty_percent_are_not_near_the_limit_and_one_token_more_is() {
        let rows = [
            (0, Some(1_000), Some(1_000), 0.0, false),
            (799, Some(1_000), Some(1_000), 79.9, false),
            (800, Some(1_000), Some(1_000), 80.0, false),
            (801, Some(1_000), Some(1_000), 80.1, true),
            (160_000, Some(200_000), Some(200_000), 80.0, false),
            (160_001, Some(200_000), Some(200_000), 80.0005, true),
            // Four fifths of three are 2.4.
            (2, Some(3), Some(3), 200.0 / 3.0, false),
            (3, Some(3), Some(3), 100.0, true),
            (1_500, Some(1_000), Some(1_000), 150.0, true),
            (500, None, None, 0.0, false),
            (500, Some(0), None, 0.0, false),
            (0, Some(0), None, 0.0, false),
            (u64::MAX, Some(u64::MAX), Some(u64::MAX), 100.0, true),
        ];
        for (tokens, window, limit, percent, near) in rows {
            let summary = TokenUsageSummary::new(
                total_usage(log().events()),
                tokens,
                window.map(ContextWindow::new),
            );
            assert_eq!(
                (summary.context_limit, summary.percent_used, summary.near_limit),
                (limit, percent, near),
                "{tokens} of {window:?}"
            );
        }
        let full = TokenUsageSummary::new(
            total_usage(log().events()),
            u64::MAX,
            Some(ContextWindow::new(1)),
        );
        assert!(full.percent_used.is_finite() && full.near_limit);
    }
}
