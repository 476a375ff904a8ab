//! Reading the bytes and texts of files, and telling their kinds.

use std::{fs, path::Path};

use threadfold::EventLog;

use crate::error::Failure;

/// The mark that some editors and shells write before a text in UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads a text as it is, with its byte order mark. The error names the file.
pub(crate) fn text_with_mark(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Reads the bytes of a file, which may not be UTF-8. The error names the file.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Reads a text, without a byte order mark. The error names the file.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    text_with_mark(file).map(without_mark)
}

/// Returns the text without a byte order mark at its start.
pub(crate) fn without_mark(text: String) -> String {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Returns the bytes without a byte order mark at their start.
pub(crate) fn bytes_without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes)
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

/// Whether these bytes, without byte order mark, are a log of threadfold: the first line is a header.
pub(crate) fn is_log(bytes: &[u8]) -> bool {
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    EventLog::read(line).is_ok()
}
