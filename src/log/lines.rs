//! A log as lines of JSON: a header, then one line for each event.
//!
//! ```text
//! {"log":"threadfold","id":"7d20c3b1f0a94e58","major":1,"thread":"main"}
//! {"seq":0,"at":1709164799042,"event":{"message_appended":{"role":"user","content":[...]}}}
//! ```
//!
//! The optional id distinguishes the log from an earlier one of the same thread.
//!
//! A writer that dies may leave an incomplete last line. Reading drops it and reports its offset, so
//! that a store can cut it off. A broken line anywhere else is an error.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::{event::LoggedEvent, event_log::EventLog, form, log_id::LogId};
use crate::message::{Text, ThreadId};

/// The version of the format that this build writes, and the only one that it reads.
const MAJOR: u32 = 1;

/// The name of the format in the header.
const FORMAT: &str = "threadfold";

/// The beginning of every header, to distinguish a truncated header from another file.
const HEADER_START: &[u8] = br#"{"log":"threadfold","#;

/// Limits for reading a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogReadOptions {
    /// The most bytes that a line may have. A longer one is an error.
    pub max_line_bytes: u64,
}

impl Default for LogReadOptions {
    /// Returns a limit of 512 MiB for each line.
    fn default() -> Self {
        Self { max_line_bytes: 512 << 20 }
    }
}

/// The result of reading a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogRead {
    /// The log, up to the last complete line.
    pub log: EventLog,
    /// The id in the header.
    pub id: Option<LogId>,
    /// The end of the last complete line, in bytes from the start of the input. A store continues to
    /// write here.
    pub end: u64,
    /// The incomplete line after `end`, if any.
    pub torn: Option<TornTail>,
}

/// An incomplete last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// Its start, in bytes from the start of the input.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReadError {
    /// The reader of the input failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The input is empty or ends within its header, so it holds no event.
    #[error("the log has no complete header, only {bytes} bytes of one")]
    NoHeader {
        /// The length of the input in bytes.
        bytes: u64,
    },
    /// The first line is not the header of a log.
    #[error("not a log of threadfold: the first line is no header")]
    NotALog,
    /// The log was written in another version of the format.
    #[error("the log has version {found}, this build reads {MAJOR}")]
    Version {
        /// The version of the log.
        found: u32,
    },
    /// A line before the last is no JSON.
    #[error("line {line} of the log is broken: {reason}")]
    Broken {
        /// The number of the line. The header is line 1.
        line: u64,
        /// The error of the parser.
        reason: Text,
    },
    /// A line is JSON, but no event with `seq` and time.
    #[error("line {line} of the log is no event: {reason}")]
    NotAnEvent {
        /// The number of the line. The header is line 1.
        line: u64,
        /// The error of the parser.
        reason: Text,
    },
    /// A line is longer than the options allow.
    #[error("line {line} of the log has more than {limit} bytes")]
    LineTooLong {
        /// The number of the line. The header is line 1.
        line: u64,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// An event is missing, duplicated or out of order.
    #[error("line {line} of the log holds event {found}, event {expected} belongs there")]
    Seq {
        /// The number of the line. The header is line 1.
        line: u64,
        /// The `seq` of the next event.
        expected: u64,
        /// The `seq` in the line.
        found: u64,
    },
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

/// The first line. [`Version`] is read before it, because another version may have other fields after
/// `major`.
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
    /// Those of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write_header(out, self.thread_id())?;
        self.events().iter().try_for_each(|event| write_event(out, event))
    }

    /// Reads a log from its lines. An incomplete last line is dropped and reported.
    ///
    /// Events that do not fit the events before them are no error here;
    /// [`projection`](Self::projection) skips them.
    ///
    /// ```
    /// use threadfold::log::{EventLog, LogReadError};
    ///
    /// let stored = "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n{\"seq\":0,\"at";
    /// let read = EventLog::read(stored.as_bytes())?;
    /// assert_eq!(read.log.len(), 0);
    /// assert_eq!((read.end, read.torn.map(|torn| torn.bytes)), (47, Some(12)));
    /// assert!(matches!(EventLog::read(&b""[..]), Err(LogReadError::NoHeader { bytes: 0 })));
    /// # Ok::<(), LogReadError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogReadError`] for an input without a complete header, of another format or version, with a
    /// broken line before the last, or with a line that is no event, too long or out of order.
    pub fn read(input: impl BufRead) -> Result<LogRead, LogReadError> {
        Self::read_with(input, &LogReadOptions::default())
    }

    /// As [`read`](Self::read), with these options.
    ///
    /// ```
    /// use threadfold::log::{EventLog, LogReadError, LogReadOptions};
    ///
    /// let options = LogReadOptions { max_line_bytes: 1 << 20 };
    /// let endless = std::io::BufReader::new(std::io::repeat(b'{'));
    /// let error = EventLog::read_with(endless, &options);
    /// assert!(matches!(error, Err(LogReadError::LineTooLong { line: 1, .. })));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_with(
        input: impl BufRead,
        options: &LogReadOptions,
    ) -> Result<LogRead, LogReadError> {
        let mut lines = Lines { input, limit: options.max_line_bytes, line: 0, start: 0, end: 0 };
        let mut buffer = Vec::new();
        let complete = lines.next(&mut buffer)?;
        let Header { id, thread, .. } = header(&buffer, complete)?;
        let mut log = Self::new(thread);
        while lines.next(&mut buffer)? {
            match event(&buffer, lines.line) {
                Ok(event) => log.append_line(event, lines.line)?,
                Err(LogReadError::Broken { .. }) if lines.is_last()? => {
                    return Ok(lines.torn(log, id));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(lines.torn(log, id))
    }

    fn append_line(&mut self, event: LoggedEvent, line: u64) -> Result<(), LogReadError> {
        let (expected, found) = (self.len(), event.seq);
        match self.append_logged(event) {
            Ok(_) => Ok(()),
            Err(_) => Err(LogReadError::Seq { line, expected, found }),
        }
    }
}

/// Parses the first line.
fn header(line: &[u8], complete: bool) -> Result<Header<ThreadId>, LogReadError> {
    if !complete {
        let common = line.len().min(HEADER_START.len());
        let begun = line.get(..common) == HEADER_START.get(..common);
        let bytes = line.len() as u64;
        return Err(if begun { LogReadError::NoHeader { bytes } } else { LogReadError::NotALog });
    }
    let version: Version = serde_json::from_slice(line).map_err(|_| LogReadError::NotALog)?;
    if version.log != FORMAT {
        return Err(LogReadError::NotALog);
    }
    if version.major != MAJOR {
        return Err(LogReadError::Version { found: version.major });
    }
    serde_json::from_slice(line).map_err(|_| LogReadError::NotALog)
}

fn event(bytes: &[u8], line: u64) -> Result<LoggedEvent, LogReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| broken(line, &error))?;
    form::read(text).map_err(|error| {
        // Serde reports a wrong field before it reaches broken JSON after it.
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => LogReadError::NotAnEvent { line, reason: error.to_string().into() },
            Err(error) => broken(line, &error),
        }
    })
}

fn broken(line: u64, error: &dyn std::error::Error) -> LogReadError {
    LogReadError::Broken { line, reason: error.to_string().into() }
}

/// The lines of an input.
struct Lines<R> {
    input: R,
    /// The most bytes of a line.
    limit: u64,
    /// The number of the last line read, from 1.
    line: u64,
    /// The byte offset at which it begins.
    start: u64,
    /// The byte offset at which it ends.
    end: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line into the buffer and returns whether it is complete. The line at the end of
    /// the input is incomplete, and may be empty.
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<bool, LogReadError> {
        buffer.clear();
        let most = self.limit.saturating_add(1);
        let bytes = self.input.by_ref().take(most).read_until(b'\n', buffer)? as u64;
        (self.line, self.start, self.end) = (self.line + 1, self.end, self.end + bytes);
        if bytes > self.limit {
            return Err(LogReadError::LineTooLong { line: self.line, limit: self.limit });
        }
        Ok(buffer.last() == Some(&b'\n'))
    }

    fn is_last(&mut self) -> Result<bool, LogReadError> {
        Ok(self.input.fill_buf()?.is_empty())
    }

    /// Returns the log, and the last line read as the torn one.
    fn torn(self, log: EventLog, id: Option<LogId>) -> LogRead {
        let Self { start, end, .. } = self;
        let torn = (start < end).then_some(TornTail { offset: start, bytes: end - start });
        LogRead { log, id, end: start, torn }
    }
}
