//! Compactions for a client of the Agent Client Protocol: session updates in the form of the schema
//! crate 1.15, where the updates for compactions are still unstable.
//!
//! | event of the session | update of the protocol | with |
//! |---|---|---|
//! | [`Started`](CompactionEvent::Started) | `compaction_update` | `status: "in_progress"` |
//! | [`Progress`](CompactionEvent::Progress) | none; the protocol has no update for it | |
//! | [`SummaryDelta`](CompactionEvent::SummaryDelta) | `compaction_summary_chunk` | `content`, one text block |
//! | [`Completed`](CompactionEvent::Completed) | `compaction_update`, and a `usage_update` after it | `status: "completed"`; notes for the user in `_meta`, as `threadfold/notes` |
//! | [`Failed`](CompactionEvent::Failed) | `compaction_update` | `status: "failed"`, `error` |
//! | [`Cancelled`](CompactionEvent::Cancelled) | `compaction_update` | `status: "cancelled"` |
//!
//! A host sends them as the `update` of a `session/update` notification. In version 1 of the
//! protocol it does so only if the client advertised the capability `session.compaction`. The
//! protocol has no request to compact; agents list `/compact` among their commands, which is a
//! command of the session.

use serde_json::{Value, json};

use super::event::CompactionEvent;
use crate::message::ContextWindow;

/// Returns the update for an event of a compaction; `None` if the protocol has none.
///
/// The `compactionId` is the number of the compaction, unique within its thread. A summary chunk is
/// raw output of a model. It may differ from the summary that enters the thread, because a strategy
/// may ask several times, or ask for edits. A host that must not show raw model output does not
/// send the chunks.
///
/// ```
/// use threadfold::{message::CompactionId, session::{CompactionEvent, acp}};
///
/// let piece = CompactionEvent::SummaryDelta { id: CompactionId(3), text: "So far".into() };
/// let update = acp::compaction_update(&piece);
/// assert_eq!(update, Some(serde_json::json!({
///     "sessionUpdate": "compaction_summary_chunk",
///     "compactionId": "3",
///     "content": { "type": "text", "text": "So far" },
/// })));
/// ```
#[must_use]
pub fn compaction_update(event: &CompactionEvent) -> Option<Value> {
    let id = event.id().to_string();
    let status = match event {
        CompactionEvent::Progress { .. } => return None,
        CompactionEvent::SummaryDelta { text, id: _ } => {
            return Some(json!({
                "sessionUpdate": "compaction_summary_chunk",
                "compactionId": id,
                "content": {"type": "text", "text": text},
            }));
        }
        CompactionEvent::Started { .. } => "in_progress",
        CompactionEvent::Completed { .. } => "completed",
        CompactionEvent::Failed { .. } => "failed",
        CompactionEvent::Cancelled { .. } => "cancelled",
    };
    let mut update =
        json!({"sessionUpdate": "compaction_update", "compactionId": id, "status": status});
    if let CompactionEvent::Failed { error, .. } = event {
        update.as_object_mut()?.insert("error".to_owned(), json!(error));
    }
    if let CompactionEvent::Completed { report, .. } = event
        && !report.notes.is_empty()
    {
        let meta = json!({"threadfold/notes": report.notes});
        update.as_object_mut()?.insert("_meta".to_owned(), meta);
    }
    Some(update)
}

/// Returns the update with the tokens of the context and of the window. Send it after every
/// compaction; a session has both numbers.
///
/// ```
/// use threadfold::{ContextWindow, session::acp};
///
/// let update = acp::usage_update(53_000, ContextWindow::new(200_000));
/// let size = 200_000;
/// let expected =
///     serde_json::json!({"sessionUpdate": "usage_update", "used": 53_000, "size": size});
/// assert_eq!(update, expected);
/// ```
#[must_use]
pub fn usage_update(context_tokens: u64, window: ContextWindow) -> Value {
    json!({"sessionUpdate": "usage_update", "used": context_tokens, "size": window.tokens()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_the_update_that_its_line_says() {
        let events = include_str!("../../testdata/events/compaction.jsonl").lines();
        let events = events.map(|line| serde_json::from_str::<CompactionEvent>(line).unwrap());
        let updates: Vec<_> = events.map(|event| compaction_update(&event)).collect();
        let lines = include_str!("../../testdata/events/acp.jsonl").lines();
        let lines: Vec<Option<Value>> =
            lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(updates, lines);
    }
}
