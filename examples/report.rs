//! A page about what compactions did to a thread: when, why, what went, what is kept, what it cost.
//!
//! ```text
//! cargo run -q --example report -- [LOG.jsonl] [--window TOKENS] [--out FILE]
//! ```
//!
//! LOG is a file of a `JsonlStore`. Without one a session of 500 turns is played and reported on.
//! The page is one HTML file without a script that fetches nothing; whatever is in the log is text
//! in it.

use std::{
    error::Error,
    fs::{self, File},
    io::{self, BufReader},
    path::PathBuf,
    process::ExitCode,
};

use lexopt::{Arg, Parser, ValueExt};
use terminal::{Style, thousands};
use threadfold::EventLog;

#[path = "report/play.rs"]
mod play;
#[path = "report/mod.rs"]
mod report;
mod terminal;

/// The turns and the window of the session that is played.
const TURNS: usize = 500;
const WINDOW: u64 = 16_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let Options { log, window, out } = Options::from_arguments()?;
    let (log, window) = match log {
        Some(path) => {
            let read = EventLog::read(BufReader::new(File::open(path)?))?;
            if let Some(torn) = read.torn {
                eprintln!("report: {} bytes of a torn last line are left aside", torn.bytes);
            }
            (read.log, window)
        }
        None => {
            let window = window.unwrap_or(WINDOW);
            (play::played(TURNS, window)?, Some(window))
        }
    };
    let page = report::page(&log, window);
    fs::write(&out, &page)?;
    let style = Style::of(&io::stdout());
    println!(
        "{} {}: {} bytes about {} events",
        style.green("✓"),
        style.bold(out.display()),
        thousands(page.len() as u64),
        thousands(log.len())
    );
    Ok(())
}

struct Options {
    log: Option<PathBuf>,
    window: Option<u64>,
    out: PathBuf,
}

impl Options {
    fn from_arguments() -> Result<Self, lexopt::Error> {
        const USAGE: &str = "usage: report [LOG.jsonl] [--window TOKENS] [--out FILE]";
        let mut options = Self { log: None, window: None, out: "threadfold-report.html".into() };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("window") => options.window = Some(parser.value()?.parse()?),
                Arg::Long("out") => options.out = parser.value()?.into(),
                Arg::Value(path) if options.log.is_none() => options.log = Some(path.into()),
                Arg::Value(_) | Arg::Long(_) | Arg::Short(_) => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}
