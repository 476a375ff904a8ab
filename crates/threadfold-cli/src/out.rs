//! The output of commands: to standard output, or to a file.

use std::{
    fmt,
    io::{self, ErrorKind, Write},
    path::Path,
    process,
};

use threadfold::store::replace_file;

use crate::error::Failure;

/// Writes the result of a command to this file, or to standard output if there is none. After a
/// failure the file is as it was before.
pub(crate) fn write(file: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    let Some(file) = file else {
        let mut out = io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.map_err(|error| format!("standard output: {error}").into());
    };
    replace_file(file, bytes).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Writes a line. If the reader has closed the pipe, as `head` does, the program ends successfully;
/// any other error, such as a full disk, is a failure.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let Err(error) = out.write_fmt(text).and_then(|()| out.write_all(b"\n")) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        process::exit(0);
    }
    eprintln!("threadfold: standard output: {error}");
    process::exit(1);
}

/// [`println!`] without a panic.
macro_rules! say {
    () => { $crate::out::line(format_args!("")) };
    ($($text:tt)*) => { $crate::out::line(format_args!($($text)*)) };
}

pub(crate) use say;
