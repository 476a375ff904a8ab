//! Reading request bodies, logs and texts from files.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use threadfold::{EventLog, Request, WireFormat, log::Loaded, wire::DecodeOptions};

use crate::error::Failure;

#[path = "../../../examples/transcript/input.rs"]
mod found;

use found::BYTE_ORDER_MARK;
pub(crate) use found::named;
pub(crate) use threadfold::wire::Dialect;

/// Reads a file. The error names it.
pub(crate) fn whole(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()).into())
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

/// Reads a log. The error for other files ends with this hint.
pub(crate) fn log(file: &Path, hint: &str) -> Result<Loaded, Failure> {
    let name = file.display();
    let opened = opened(file).map_err(|error| format!("{name}: {error}"))?;
    let read = EventLog::read(opened);
    read.map_err(|error| format!("{name}: {error} ({hint})").into())
}

/// Refuses SQLite's name for a database in memory as the name of a file or folder to save in.
pub(crate) fn check_stored(path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == ":memory:" {
        return Err(
            ":memory: names no file or folder, and what is stored must outlive this command".into(),
        );
    }
    Ok(())
}

/// Opens a file after its byte order mark, if it begins with one.
fn opened(file: &Path) -> io::Result<BufReader<File>> {
    let mut opened = BufReader::new(File::open(file)?);
    if opened.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        opened.consume(BYTE_ORDER_MARK.len());
    }
    Ok(opened)
}

/// A request body that was read from a file.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) request: Request,
    pub(crate) dialect: Dialect,
    pub(crate) model: Option<String>,
}

impl Body {
    /// Reads a file, or standard input if it is called `-`.
    pub(crate) fn read(file: &Path, dialect: Option<Dialect>) -> Result<Self, Failure> {
        let name = file.display();
        let bytes = if file.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(file)
        };
        let bytes = bytes.map_err(|error| format!("{name}: {error}"))?;
        let input = found::read(&bytes, dialect).map_err(|error| format!("{name}: {error}"))?;
        let format = input.dialect;
        let request = format.decode_slice(input.body.as_bytes(), &DecodeOptions::default());
        let request = request.map_err(|error| {
            let read_as = format.name();
            format!("{name}: {error} (read as {read_as}; --from names another dialect)")
        })?;
        Ok(Self { request, dialect: input.dialect, model: input.model })
    }
}
