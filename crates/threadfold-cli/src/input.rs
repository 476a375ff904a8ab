//! Reading request bodies, logs and texts from files.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use threadfold::{
    EventLog, Message, Request, WireFormat,
    wire::{DecodeOptions, find_body},
};

use crate::{
    error::Failure,
    log_file::{self, BYTE_ORDER_MARK, is_json},
    stored::stored_thread,
};

pub(crate) use threadfold::wire::Dialect;

/// Reads a file. The error names it.
pub(crate) fn whole(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Reads the bytes of a file, which may not be UTF-8. The error names the file.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Reads a text, without a byte order mark. The error names the file.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    whole(file).map(without_mark)
}

/// Returns the text without a byte order mark at its start.
pub(crate) fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Reads a log: a file of `JsonlStore` or `threadfold import`, or a thread of a store. The error for
/// other files ends with this hint. Lines that cannot be read are named on standard error.
pub(crate) fn log(file: &Path, thread: Option<&str>, hint: &str) -> Result<EventLog, Failure> {
    if is_store(file) { stored_thread(file, thread) } else { log_file::read(file, hint) }
}

/// Whether the path is a folder or a database, and not a file with one thread.
pub(crate) fn is_store(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|extension| extension == "db")
}

/// Refuses SQLite's name for a database in memory as the name of a file or folder to save in.
pub(crate) fn check_stored(path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == ":memory:" {
        return Err(
            ":memory: is not a file or folder; expected a place that outlives this command".into(),
        );
    }
    Ok(())
}

/// Whether these are the bytes of a log of threadfold: its first line is a header.
pub(crate) fn is_log(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    EventLog::read(line).is_ok()
}

/// Whether the bytes are several values of JSON, one a line.
fn has_lines(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.next().is_some_and(is_json) && lines.next().is_some_and(is_json)
}

/// A request body that was read from a file.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) request: Request,
    pub(crate) dialect: Dialect,
    pub(crate) model: Option<String>,
    /// The body as it was read; `None` for the thread of a log.
    source: Option<String>,
}

impl Body {
    /// Reads a file in any form that the program writes, or standard input if it is called `-`. Of
    /// a store it reads this thread. The thread of a log has no dialect, so it gets the given one,
    /// or Anthropic's, which can express every block.
    pub(crate) fn read(
        file: &Path,
        dialect: Option<Dialect>,
        thread: Option<&str>,
    ) -> Result<Self, Failure> {
        let name = file.display();
        if file.as_os_str() != "-" && is_store(file) {
            return Self::of_log(&stored_thread(file, thread)?, dialect);
        }
        let bytes = if file.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(file)
        };
        let bytes = bytes.map_err(|error| format!("{name}: {error}"))?;
        if is_log(&bytes) {
            let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
            return Self::of_log(&log_file::log_of(bytes, &name.to_string())?, dialect);
        }
        let input = find_body(&bytes, dialect).map_err(|error| {
            let hint = if has_lines(&bytes) {
                " (lines of JSON; `threadfold import` reads the logs of agents)"
            } else {
                ""
            };
            format!("{name}: {error}{hint}")
        })?;
        let format = input.dialect;
        let request = format.decode_slice(input.body.as_bytes(), &DecodeOptions::default());
        let request = request.map_err(|error| {
            let read_as = format.name();
            format!("{name}: {error} (read as {read_as}; --from names another dialect)")
        })?;
        let source = Some(input.body.to_string());
        Ok(Self { request, dialect: input.dialect, model: input.model, source })
    }

    /// Whether a body of the same dialect with these messages says the same as the one that was
    /// read, whatever its white space and the order of its fields.
    pub(crate) fn equals(&self, body: &str, messages: &[Message]) -> bool {
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        match &self.source {
            Some(source) => value(source).is_some_and(|source| value(body) == Some(source)),
            None => *self.request.messages == messages,
        }
    }

    fn of_log(log: &EventLog, dialect: Option<Dialect>) -> Result<Self, Failure> {
        let request = Request::new(log.replay()?);
        Ok(Self {
            request,
            dialect: dialect.unwrap_or(Dialect::Anthropic),
            model: None,
            source: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_of_a_body_is_that_of_its_shape() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/bodies");
        let mut bodies = 0;
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let (_, dialect) = name.rsplit_once('.').unwrap();
            let body = Body::read(&file, None, None).unwrap();
            assert_eq!(body.dialect.name(), dialect, "{name}");
            bodies += 1;
        }
        assert!(bodies > 0);
    }
}
