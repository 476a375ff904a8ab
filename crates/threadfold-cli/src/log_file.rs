//! Reading a log from its lines.

use std::path::Path;

use threadfold::{
    EventLog,
    log::{Event, Loaded, LogError, LoggedEvent},
    store::{StoreError, stored_event},
};

use crate::{error::Failure, files};

/// Reads a file with one log. The error for other files ends with this hint. Lines that cannot be
/// read are named on standard error.
pub(crate) fn read(file: &Path, hint: &str) -> Result<EventLog, Failure> {
    let (name, bytes) = (file.display().to_string(), files::bytes(file)?);
    log_of(files::bytes_without_mark(&bytes), &name)
        .map_err(|error| format!("{name}: {} ({hint})", error.line()).into())
}

/// Reads a log from its lines. The events after a line that cannot be read follow those before it;
/// each such line is named on standard error, without its text.
pub(crate) fn log_of(bytes: &[u8], name: &str) -> Result<EventLog, Failure> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let Loaded { mut log, .. } = EventLog::read(lines.next().unwrap_or_default())?;
    let (mut number, mut unread) = (1_u64, 0_u64);
    for line in lines {
        number += 1;
        let event = std::str::from_utf8(line).ok().map(str::trim_end);
        let event = event.map(|text| stored_event(name, log.len(), text));
        let reason = match event {
            Some(Ok(LoggedEvent { event: Event::Malformed { .. }, .. })) => {
                "a compaction that cannot be read"
            }
            Some(Ok(event)) => match log.append_logged(LoggedEvent { seq: log.len(), ..event }) {
                Ok(_) => continue,
                Err(_) => "an event that cannot be appended",
            },
            Some(Err(StoreError::Unreadable { source: LogError::UnknownKind { .. }, .. })) => {
                "an event of an unknown kind"
            }
            Some(Err(_)) if is_json(line) => "not an event",
            Some(Err(_)) if line.last() != Some(&b'\n') => "incomplete",
            Some(Err(_)) => "not JSON",
            None => "not UTF-8",
        };
        unread += 1;
        eprintln!("threadfold: {name}: line {number} is skipped: {reason}");
    }
    if unread > 0 {
        eprintln!("threadfold: {name}: {unread} of {number} lines are skipped");
    }
    Ok(log)
}

pub(crate) fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}
