//! The output of commands: to standard output, or to a file.

use std::{
    fmt,
    io::{self, ErrorKind, IsTerminal, Write},
    path::Path,
    process, thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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

/// A line on the terminal that says what the program waits for, with the seconds since then, and goes
/// away when it is dropped. It appears after a second, and only if standard error is a terminal.
pub(crate) struct Waiting(ProgressBar);

impl Waiting {
    pub(crate) fn on(what: fmt::Arguments<'_>) -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        // If the template does not parse, the default style stays.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        let late = bar.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(1));
            if !late.is_finished() {
                late.set_draw_target(ProgressDrawTarget::stderr());
                late.enable_steady_tick(Duration::from_millis(200));
            }
        });
        Self(bar)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
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
