//! Lines for standard output.

use std::{
    fmt,
    io::{self, ErrorKind, Write},
    process,
};

/// Writes a line. A reader that has left, such as `head`, wants no more, and that is no error; a disk
/// that is full is one.
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
