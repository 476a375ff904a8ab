//! Reading a log from its lines.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use threadfold::{
    EventLog,
    log::{Event, Loaded, LogError, LoggedEvent},
    store::{StoreError, stored_event},
};

use crate::{error::Failure, files::bytes_without_mark};

/// Reads a file with one log. The error for other files ends with this hint. Lines that cannot be
/// read are named on standard error.
pub(crate) fn read(file: &Path, hint: &str) -> Result<EventLog, Failure> {
    let name = file.display();
    let opened = opened(file).map_err(|error| format!("{name}: {error}"))?;
    log_of(opened, &name.to_string())
        .map_err(|error| format!("{name}: {} ({hint})", error.line()).into())
}

/// Opens a file after its byte order mark, if it begins with one.
fn opened(file: &Path) -> io::Result<BufReader<File>> {
    let mut opened = BufReader::new(File::open(file)?);
    let start = opened.fill_buf()?;
    let mark = start.len() - bytes_without_mark(start).len();
    opened.consume(mark);
    Ok(opened)
}

/// Reads a log from its lines. The events after a line that cannot be read follow those before it;
/// each such line is named on standard error, without its text.
pub(crate) fn log_of(mut input: impl BufRead, name: &str) -> Result<EventLog, Failure> {
    let mut line = Vec::new();
    read_line(&mut input, &mut line)?;
    let Loaded { mut log, .. } = EventLog::read(line.as_slice())?;
    let (mut number, mut unread) = (1_u64, 0_u64);
    while read_line(&mut input, &mut line)? {
        number += 1;
        let event = std::str::from_utf8(&line).ok().map(str::trim_end);
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
            Some(Err(_)) if is_json(&line) => "not an event",
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

/// Reads a line of a log; false at the end.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Failure> {
    line.clear();
    let limit = EventLog::MAX_LINE_BYTES;
    let bytes = input.by_ref().take(limit + 1).read_until(b'\n', line)? as u64;
    if bytes > limit {
        return Err(format!("a line is longer than {limit} bytes").into());
    }
    Ok(bytes > 0)
}
