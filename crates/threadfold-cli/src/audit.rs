//! `audit`: what a compaction kept, lost and invented.

use std::{fs::File, io, io::BufReader, path::Path};

use serde_json::json;
use threadfold::{
    ContentBlock, EventLog, Message,
    retention::{AuditOptions, Facts, Retention, audit, invented},
};

use crate::{
    args::AuditArguments,
    error::{Ended, Failure},
    input::Body,
    out::say,
    report,
    terminal::{Style, first_line},
};

/// So many missing facts are listed.
const LISTED: usize = 12;

pub(crate) fn run(options: &AuditArguments) -> Result<Ended, Failure> {
    let audits = match &options.after {
        Some(after) => vec![("compaction".to_owned(), of_bodies(&options.before, after)?)],
        None => of_log(&options.before)?,
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
        say!("{}\n{retention}", style.heading(name));
        for fact in retention.missing.iter().take(LISTED) {
            let class = style.yellow(format!("{:<10}", fact.class.as_str()));
            say!("  lost {class} {}", first_line(&fact.text, 80));
        }
        match retention.missing.len().saturating_sub(LISTED) {
            0 => {}
            more => say!("  and {more} more, which --json lists"),
        }
    }
    Ok(Ended::Done)
}

fn of_bodies(before: &Path, after: &Path) -> Result<Retention, Failure> {
    let before = Body::read(before, None)?.request.messages;
    let after = Body::read(after, None)?.request.messages;
    let options = AuditOptions::default();
    let mut retention = audit(&before, &after, &options);
    let facts = Facts::of(&before, options);
    let new = after.iter().filter(|message| !before.contains(message));
    let kept: Vec<Message> =
        after.iter().filter(|message| before.contains(message)).cloned().collect();
    for block in new.flat_map(|message| &message.content) {
        let summary = if let ContentBlock::Summary(summary) = block {
            Some(&summary.text)
        } else {
            block.as_text()
        };
        if let Some(summary) = summary {
            retention.invented.extend(invented(summary, &facts, &kept));
        }
    }
    Ok(retention)
}

fn of_log(path: &Path) -> Result<Vec<(String, Retention)>, Failure> {
    let name = path.display();
    let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
    let read = EventLog::read(BufReader::new(file)).map_err(|error| {
        format!("{name}: {error} (one file is a log; two request bodies are before and after)")
    })?;
    Ok(report::retentions(&read.log))
}
