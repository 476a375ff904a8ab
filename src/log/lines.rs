//! A log as lines of JSON: a header, then one line for each event.
//!
//! ```text
//! {"log":"threadfold","id":"7d20c3b1f0a94e58","major":1,"thread":"main"}
//! {"seq":0,"at":1709164799042,"event":{"message_appended":{"role":"user","content":[...]}}}
//! ```
//!
//! The optional id distinguishes the log from an earlier one of the same thread.
//!
//! A writer that dies may leave an incomplete last line. Reading drops it and reports its offset,
//! so that a store can cut it off. A broken line anywhere else is an error.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::{
    error::{LogError, Result},
    event::LoggedEvent,
    event_log::EventLog,
    form,
    log_id::LogId,
};
use crate::message::{Text, ThreadId};

/// The version of the format that this build writes, and the only one that it reads.
const MAJOR: u32 = 1;

/// The name of the format in the header.
const FORMAT: &str = "threadfold";

/// The beginning of every header, to distinguish a truncated header from another file.
const HEADER_START: &[u8] = br#"{"log":"threadfold","#;

/// A log that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The log, up to the last complete line.
    pub log: EventLog,
    /// The id of the log, if the store keeps ids and the writer gave one.
    pub id: Option<LogId>,
    /// The end of the last complete line, in bytes from the start of the input, where a store
    /// continues to write; 0 if the log was not read from lines.
    pub end: u64,
    /// The bytes of the incomplete last line of a writer that died, if there is one. The next
    /// append removes it.
    pub torn: Option<u64>,
}

impl Loaded {
    /// Returns a loaded log without id and torn line.
    #[must_use]
    pub fn new(log: EventLog) -> Self {
        Self { log, id: None, end: 0, torn: None }
    }
}

/// Writes the first line of a log.
///
/// ```
/// let mut bytes = Vec::new();
/// threadfold::log::write_header(&mut bytes, &"main".parse()?)?;
/// assert_eq!(bytes, b"{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Those of the writer.
pub fn write_header(out: &mut impl Write, thread: &ThreadId) -> io::Result<()> {
    write_named_header(out, None, thread)
}

/// Writes the first line of a log that has this id.
pub(crate) fn write_named_header(
    out: &mut impl Write,
    id: Option<LogId>,
    thread: &ThreadId,
) -> io::Result<()> {
    write_line(out, &Header { log: FORMAT.into(), id, major: MAJOR, thread })
}

/// Writes an event as one line, in many small writes: pass a `Vec` or a `BufWriter`.
///
/// ```
/// use threadfold::{Message, log::{Event, EventLog, write_event, write_header}, message::Timestamp};
///
/// let mut log = EventLog::new("main".parse()?);
/// let mut bytes = Vec::new();
/// write_header(&mut bytes, log.thread_id())?;
/// write_event(&mut bytes, log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?)?;
/// assert_eq!(EventLog::read(bytes.as_slice())?.log, log);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Those of the writer.
pub fn write_event(out: &mut impl Write, event: &LoggedEvent) -> io::Result<()> {
    write_line(out, event)
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The first line. [`Version`] is read before it, because another version may have other fields
/// after `major`.
#[derive(Serialize, Deserialize)]
struct Header<T> {
    log: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<LogId>,
    major: u32,
    thread: T,
}

#[derive(Deserialize)]
struct Version {
    log: Text,
    major: u32,
}

impl EventLog {
    /// Writes the whole log: its header and every event, in many small writes like [`write_event`].
    ///
    /// ```
    /// use threadfold::log::EventLog;
    ///
    /// let mut bytes = Vec::new();
    /// EventLog::new("main".parse()?).write(&mut bytes)?;
    /// assert_eq!(EventLog::read(bytes.as_slice())?.log.thread_id().as_str(), "main");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the writer, and [`LogError::NotHeld`] if the log is not whole.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.state().check_whole().map_err(io::Error::other)?;
        write_header(out, self.thread_id())?;
        self.events().iter().try_for_each(|event| write_event(out, event))
    }

    /// Reads a log from its lines. An incomplete last line is dropped and reported.
    ///
    /// Events that do not fit the earlier ones are no error here; [`replay`](Self::replay) skips
    /// them.
    ///
    /// ```
    /// use threadfold::log::{EventLog, LogError};
    ///
    /// let stored = "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n{\"seq\":0,\"at";
    /// let read = EventLog::read(stored.as_bytes())?;
    /// assert_eq!(read.log.len(), 0);
    /// assert_eq!((read.end, read.torn), (47, Some(12)));
    /// assert!(matches!(EventLog::read(&b""[..]), Err(LogError::NoHeader { bytes: 0 })));
    /// # Ok::<(), LogError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError`] for an input without a complete header, of another format or version, with a
    /// broken line before the last, or with a line that is not an event, has an unknown kind, is too
    /// long or is out of order.
    pub fn read(input: impl BufRead) -> Result<Loaded> {
        Self::read_within(input, Self::MAX_LINE_BYTES)
    }

    /// The maximum bytes of a line that [`read`](Self::read) accepts: 512 MiB.
    pub const MAX_LINE_BYTES: u64 = 512 << 20;

    /// Same as [`read`](Self::read), with another limit on the bytes of a line.
    ///
    /// ```
    /// use threadfold::log::{EventLog, LogError};
    ///
    /// let endless = std::io::BufReader::new(std::io::repeat(b'{'));
    /// let error = EventLog::read_within(endless, 1 << 20);
    /// assert!(matches!(error, Err(LogError::LineTooLong { line: 1, .. })));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_within(input: impl BufRead, max_line_bytes: u64) -> Result<Loaded> {
        let mut lines = Lines { input, limit: max_line_bytes, line: 0, start: 0, end: 0 };
        let mut buffer = Vec::new();
        let complete = lines.next(&mut buffer)?;
        let Header { id, thread, .. } = header(&buffer, complete)?;
        let mut log = Self::new(thread);
        while lines.next(&mut buffer)? {
            match event(&buffer, lines.line) {
                Ok(event) => log.append_line(event, lines.line)?,
                Err(LogError::Broken { .. }) if lines.is_last()? => {
                    return Ok(lines.torn(log, id));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(lines.torn(log, id))
    }

    fn append_line(&mut self, event: LoggedEvent, line: u64) -> Result<()> {
        let (expected, found) = (self.len(), event.seq);
        match self.append_logged(event) {
            Ok(_) => Ok(()),
            Err(_) => Err(LogError::Misplaced { line, expected, found }),
        }
    }
}

/// Parses the first line.
fn header(line: &[u8], complete: bool) -> Result<Header<ThreadId>> {
    if !complete {
        let common = line.len().min(HEADER_START.len());
        let begun = line.get(..common) == HEADER_START.get(..common);
        let bytes = line.len() as u64;
        return Err(if begun { LogError::NoHeader { bytes } } else { LogError::NotALog });
    }
    let line = std::str::from_utf8(line).map_err(|_| LogError::NotALog)?;
    let version: Version = serde_json::from_str(line).map_err(|_| LogError::NotALog)?;
    if version.log != FORMAT {
        return Err(LogError::NotALog);
    }
    if version.major != MAJOR {
        return Err(LogError::Version { found: version.major, expected: MAJOR });
    }
    serde_json::from_str(line).map_err(|_| LogError::NotALog)
}

fn event(bytes: &[u8], line: u64) -> Result<LoggedEvent> {
    match std::str::from_utf8(bytes) {
        Ok(text) => form::read(text, line),
        Err(error) => Err(LogError::Broken { line, reason: error.to_string().into() }),
    }
}

/// The lines of an input.
struct Lines<R> {
    input: R,
    /// The maximum bytes of a line.
    limit: u64,
    /// The number of the last line read, from 1.
    line: u64,
    /// The byte offset at which it begins.
    start: u64,
    /// The byte offset at which it ends.
    end: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line into the buffer and returns whether it is complete. The line at the end
    /// of the input is incomplete, and may be empty.
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        let most = self.limit.saturating_add(1);
        let bytes = self.input.by_ref().take(most).read_until(b'\n', buffer)? as u64;
        (self.line, self.start, self.end) = (self.line + 1, self.end, self.end + bytes);
        if bytes > self.limit {
            return Err(LogError::LineTooLong { line: self.line, limit: self.limit });
        }
        Ok(buffer.last() == Some(&b'\n'))
    }

    fn is_last(&mut self) -> Result<bool> {
        Ok(self.input.fill_buf()?.is_empty())
    }

    /// Returns the log, and the last line read as the torn one.
    fn torn(self, log: EventLog, id: Option<LogId>) -> Loaded {
        let Self { start, end, .. } = self;
        let torn = (start < end).then_some(end - start);
        Loaded { log, id, end: start, torn }
    }
}
