//! Compactions and token usage for a web page, in the names and units of browsers.
//!
//! Every `COMPACTION_START` is followed by its `COMPACTION_COMPLETE`, even if the compaction failed
//! or was cancelled, so no page waits for ever. The JSON has camel-case keys, times as
//! `Date.toJSON` writes them, and shares in percent. `testdata/events/api.jsonl` has a line of each
//! kind.

use serde::{Deserialize, Serialize};

use super::{event::CompactionEvent, tool_calls::json};
use crate::{
    log::TotalUsage,
    message::{ContextWindow, Json, ThreadId, Timestamp},
};

/// Returns the JSON that a server sends to the page for an event of a compaction; `None` for events
/// between start and end.
///
/// | field | `COMPACTION_START` | `COMPACTION_COMPLETE` |
/// |---|---|---|
/// | `threadId`, `timestamp` | the thread, and the time of the event | the same |
/// | `data.strategy` | the strategy | the strategy that succeeded, if `COMPACTION_START` named a ladder |
/// | `data.auto` | whether the compaction started automatically, not at the request of the user, the host or the agent | |
/// | `data.reason` | `threshold`, `overflow`, `manual`, `agent_tool`, `model_switch`, `background` or `idle` | |
/// | `data.success` | | whether the thread was compacted; otherwise it is unchanged |
/// | `data.tokensSaved` | | the saved tokens, as estimated by the thread's counter; 0 without success |
/// | `data.originalEventCount`, `data.compactedEventCount` | | the number of messages before and after, with success |
/// | `data.fallbackFrom` | | the strategies that failed before, if there are any |
/// | `data.notes` | | what a person should know, one sentence each, such as which part no model summarised; absent if there is none |
/// | `data.error` | | the text of the error, or `cancelled`, without success |
///
/// ```
/// use threadfold::message::{CompactionId, Timestamp};
/// use threadfold::session::{CompactionEvent, api};
///
/// let (id, thread, at) = (CompactionId(0), "main".parse()?, Timestamp(1_754_640_000_123));
/// assert!(api::compaction_event(&CompactionEvent::Progress { id, done: 1, total: 4 }).is_none());
/// let cancelled = api::compaction_event(&CompactionEvent::Cancelled { id, thread, at });
/// assert_eq!(
///     cancelled.unwrap().as_str(),
///     r#"{"type":"COMPACTION_COMPLETE","threadId":"main","timestamp":"2025-08-08T08:00:00.123Z","data":{"success":false,"tokensSaved":0,"error":"cancelled"}}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn compaction_event(event: &CompactionEvent) -> Option<Json> {
    match event {
        CompactionEvent::Started { thread, at, reason, strategy, id: _ } => {
            let data = Start { strategy, auto: reason.is_automatic(), reason: reason.as_str() };
            Some(sent("COMPACTION_START", thread, *at, data))
        }
        CompactionEvent::Progress { .. } | CompactionEvent::SummaryDelta { .. } => None,
        CompactionEvent::Completed { thread, at, report, rungs, .. } => {
            let used = rungs.iter().find(|rung| rung.failure.is_none());
            let failed = event.fallback().map_or(&[][..], |(_, failed)| failed);
            let data = Complete {
                success: true,
                tokens_saved: report.tokens_saved(),
                original_event_count: Some(report.before.messages),
                compacted_event_count: Some(report.after.messages),
                strategy: used.map(|rung| &*rung.strategy),
                fallback_from: failed.iter().map(|rung| &*rung.strategy).collect(),
                notes: report.notes.iter().map(|note| &**note).collect(),
                error: None,
            };
            Some(sent("COMPACTION_COMPLETE", thread, *at, data))
        }
        CompactionEvent::Failed { thread, at, error, id: _ } => {
            Some(sent("COMPACTION_COMPLETE", thread, *at, Complete::failed(error)))
        }
        CompactionEvent::Cancelled { thread, at, id: _ } => {
            Some(sent("COMPACTION_COMPLETE", thread, *at, Complete::failed("cancelled")))
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a, D> {
    #[serde(rename = "type")]
    kind: &'static str,
    thread_id: &'a ThreadId,
    timestamp: String,
    data: D,
}

#[derive(Serialize)]
struct Start<'a> {
    strategy: &'a str,
    auto: bool,
    reason: &'a str,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Complete<'a> {
    success: bool,
    tokens_saved: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_event_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted_event_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallback_from: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> Complete<'a> {
    fn failed(error: &'a str) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// Returns the event as JSON, with the time as `Date.toJSON` writes it.
fn sent(kind: &'static str, thread_id: &ThreadId, at: Timestamp, data: impl Serialize) -> Json {
    let event = Sent { kind, thread_id, timestamp: at.to_string(), data };
    Json::from_compact(json(&event))
}

/// The tokens that were billed for a thread, and how full its context is.
///
/// The two differ. Every call is billed for the whole conversation again, so the totals grow with
/// every call and no compaction reduces them. The context is that of the *next* request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsageSummary {
    /// The prompt tokens of all calls, including those of tools and compactions, as reported by the
    /// providers.
    pub total_prompt_tokens: u64,
    /// The answer tokens of all these calls.
    pub total_completion_tokens: u64,
    /// The sum of prompt and answer tokens.
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

impl TokenUsageSummary {
    /// Returns the summary of a thread: the billed tokens, and the share of the window that the
    /// next request would take.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::{CompactionFailure, Event, EventLog, total_usage},
        message::{CompactionId, CompactionReason, Message, Usage},
    };

    #[test]
    fn every_event_that_is_sent_has_the_json_that_its_line_says() {
        let events = include_str!("../../testdata/events/compaction.jsonl").lines();
        let events = events.map(|line| serde_json::from_str::<CompactionEvent>(line).unwrap());
        let sent: Vec<Json> = events.filter_map(|event| compaction_event(&event)).collect();
        let lines = include_str!("../../testdata/events/api.jsonl").lines();
        assert_eq!(sent.iter().map(Json::as_str).collect::<Vec<_>>(), lines.collect::<Vec<_>>());
    }

    #[test]
    fn every_beginning_and_every_end_is_sent_and_nothing_else() {
        let events = include_str!("../../testdata/events/compaction.jsonl").lines();
        for line in events {
            let event = serde_json::from_str::<CompactionEvent>(line).unwrap();
            let sent = compaction_event(&event);
            let begins = matches!(event, CompactionEvent::Started { .. });
            let starts = |kind| {
                let start = format!("{{\"type\":\"{kind}\"");
                sent.as_ref().is_some_and(|json| json.as_str().starts_with(&start))
            };
            let (start, complete) = (starts("COMPACTION_START"), starts("COMPACTION_COMPLETE"));
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
