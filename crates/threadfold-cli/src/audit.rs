//! `audit`: what a compaction kept, lost and invented.

use std::sync::Arc;
use std::{io, path::Path};

use serde_json::json;
use threadfold::{
    ContentBlock, EventLog, Message, Plan,
    compact::{Insert, Size, Splice},
    log::{CompactionRecord, Event},
    message::{CompactionReason, ThreadId},
    model::{Clock, std_clock},
    retention::{Facts, Retention, RetentionPolicy, audit, invented},
    tokens::ByteEstimate,
};
use threadfold_terminal::{Style, first_line};

use crate::relay::View;

use crate::{
    args::AuditArguments,
    error::{Ended, Failure},
    input,
    input::Body,
    out::say,
    report,
};

/// The maximum number of missing facts in a list.
const LISTED: usize = 12;

pub(crate) fn run(options: &AuditArguments) -> Result<Ended, Failure> {
    let id = options.thread.id();
    if let Some(page) = &options.html {
        let log = match &options.after {
            Some(after) => log_of(&messages(&options.before, id)?, &messages(after, id)?)?,
            None => read(&options.before, id)?,
        };
        return report::write(&log, None, page);
    }
    let audits = match &options.after {
        Some(after) => {
            let retention = between(&messages(&options.before, id)?, &messages(after, id)?);
            vec![("compaction".to_owned(), retention)]
        }
        None => report::retentions(&read(&options.before, id)?),
    };
    if audits.is_empty() {
        eprintln!("threadfold: {}: the log holds no compaction", options.before.display());
        return Ok(Ended::Unchanged);
    }
    if options.json {
        let audits: Vec<_> = audits
            .iter()
            .map(|(name, retention)| json!({"compaction": name, "retention": retention}))
            .collect();
        say!("{}", serde_json::to_string(&audits)?);
        return Ok(Ended::Done);
    }
    let style = Style::of(&io::stdout());
    for (name, retention) in &audits {
        say!("{}", styled(&style.heading(name), retention, &style));
    }
    Ok(Ended::Done)
}

/// Returns the facts that a compaction kept and lost as text, without colours.
pub(crate) fn text(name: &str, retention: &Retention) -> String {
    styled(name, retention, &Style::default())
}

fn styled(name: &str, retention: &Retention, style: &Style) -> String {
    let mut text = format!("{name}\n{retention}\n");
    for fact in retention.missing.iter().take(LISTED) {
        let class = style.yellow(format!("{:<10}", fact.class.as_str()));
        text.push_str(&format!("  lost {class} {}\n", first_line(&fact.text, 80)));
    }
    if let Some(more) = retention.missing.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text.push_str(&format!("  and {more} more\n"));
    }
    text
}

/// The audit of the second thread against the first, with the facts that only the second states.
fn between(before: &[Message], after: &[Message]) -> Retention {
    let options = RetentionPolicy::default();
    let mut retention = audit(before, after, &options);
    let facts = Facts::of(before, &options);
    let new = after.iter().filter(|message| !before.contains(message));
    for block in new.flat_map(|message| &message.content) {
        let summary = if let ContentBlock::Summary(summary) = block {
            Some(&summary.text)
        } else {
            block.as_text()
        };
        if let Some(summary) = summary {
            retention.invented.extend(invented(summary, &facts, before));
        }
    }
    retention
}

fn messages(path: &Path, thread: Option<&str>) -> Result<Arc<Vec<Message>>, Failure> {
    Ok(Body::read(path, None, thread)?.request.messages)
}

fn read(path: &Path, thread: Option<&str>) -> Result<EventLog, Failure> {
    let hint = "one file is a log; two request bodies are before and after";
    input::log(path, thread, hint)
}

/// Returns a log in which one compaction turns the first thread into the second.
fn log_of(before: &[Message], after: &[Message]) -> Result<EventLog, Failure> {
    let now = std_clock().now();
    let mut log = EventLog::new(ThreadId::random());
    for message in before {
        log.append(now, Event::MessageAppended(message.clone()))?;
    }
    let View { covers, messages, .. } = View::between(before, after);
    let insert = messages.into_iter().map(Insert::from).collect();
    let plan = Plan::from_splices(before.len(), vec![Splice { at: 0..covers, insert }]);
    let (id, reason) = (log.next_compaction(), CompactionReason::default());
    let mut record = CompactionRecord::new(id, reason, "audit of two bodies", plan);
    record.report.before = Size::of(before, &ByteEstimate::TRIGGER);
    record.report.after = Size::of(after, &ByteEstimate::TRIGGER);
    record.report.retention = Some(Box::new(between(before, after)));
    log.append(now, Event::Compacted(Box::new(record)))?;
    Ok(log)
}
