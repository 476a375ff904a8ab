//! Reading request bodies, and threads in every other form, from files.

use std::{
    io::{self, Read},
    path::Path,
};

use threadfold::{
    EventLog, Message, Request,
    wire::{DecodeOptions, Dialect, find_body, recognised},
};

use crate::{
    error::Failure,
    files::{self, bytes_without_mark, is_log, is_store},
    import,
    log_file::{self, is_json},
    stored::stored_thread,
};

/// Reads a log: a file of `JsonlStore` or `threadfold import`, or a thread of a store. The error for
/// other files ends with this hint. Lines that cannot be read are named on standard error.
pub(crate) fn log(file: &Path, thread: Option<&str>, hint: &str) -> Result<EventLog, Failure> {
    if is_store(file) { stored_thread(file, thread) } else { log_file::read(file, hint) }
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
        let mut bytes = Vec::new();
        if file.as_os_str() == "-" {
            io::stdin().read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
        } else {
            bytes = files::bytes(file)?;
        }
        let bytes = bytes_without_mark(&bytes);
        if is_log(bytes) {
            return Self::of_log(&log_file::log_of(bytes, &name.to_string())?, dialect);
        }
        // A dialect that is named says that the file is a body.
        if dialect.is_none()
            && let Some(found) = import::of_agent(bytes)
        {
            return Self::of_agent(found, &name.to_string());
        }
        let input = find_body(bytes, dialect).map_err(|error| {
            let hint = if has_lines(bytes) {
                " (lines of JSON, and the log of no agent that `threadfold import --help` lists)"
            } else {
                ""
            };
            format!("{name}: {error}{hint}")
        })?;
        let format = input.dialect;
        let request = format.decode_slice(input.body.as_bytes(), &DecodeOptions::default());
        let mut request = request.map_err(|error| {
            let read_as = format.name();
            format!("{name}: {error} (read as {read_as}; --from names another dialect)")
        })?;
        if let Some(messages) = recognised(&request.messages) {
            request.messages = messages.into();
        }
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

    /// The thread in the log of an agent, as `threadfold import` reads it.
    fn of_agent(found: import::Found, name: &str) -> Result<Self, Failure> {
        let agent = found.agent();
        let thread = import::thread(found, None, name)?;
        eprintln!(
            "threadfold: {name}: a log of {agent}, {} messages; `threadfold import` says what is left \
             out",
            thread.request.messages.len()
        );
        let import::Thread { request, dialect, model, .. } = thread;
        Ok(Self { request, dialect, model, source: None })
    }

    fn of_log(log: &EventLog, dialect: Option<Dialect>) -> Result<Self, Failure> {
        let request = Request::new(log.replay());
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
    use std::fs;

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
