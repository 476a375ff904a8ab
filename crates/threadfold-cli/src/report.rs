//! `report`: a page about what compactions did to a thread.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    path::Path,
};

use threadfold::{EventLog, retention::Retention};

use crate::{
    args::ReportOptions,
    error::{Ended, Failure},
    out::say,
    terminal::{Style, thousands},
};

#[path = "../../../examples/report/mod.rs"]
mod pages;

pub(crate) use pages::page;
use pages::{Outcome, Story};

pub(crate) fn run(options: ReportOptions) -> Result<Ended, Failure> {
    let name = options.log.display();
    let file = File::open(&options.log).map_err(|error| format!("{name}: {error}"))?;
    let read = EventLog::read(BufReader::new(file)).map_err(|error| format!("{name}: {error}"))?;
    if let Some(bytes) = read.torn {
        eprintln!("threadfold: {name}: {bytes} bytes of a torn last line are left aside");
    }
    write(&read.log, options.window, &options.output)
}

/// Writes the page about a log to a file.
pub(crate) fn write(log: &EventLog, window: Option<u64>, file: &Path) -> Result<Ended, Failure> {
    let (page, out) = (page(log, window), file.display());
    fs::write(file, &page).map_err(|error| format!("{out}: {error}"))?;
    let style = Style::of(&io::stdout());
    say!(
        "{} {}: {} bytes about {} events",
        style.green("✓"),
        style.bold(out),
        thousands(page.len() as u64),
        thousands(log.len())
    );
    Ok(Ended::Done)
}

/// What each compaction of a log kept, as far as the log has it or it can be worked out.
pub(crate) fn retentions(log: &EventLog) -> Vec<(String, Retention)> {
    let compactions = Story::of(log, None).compactions;
    let audits = compactions.into_iter().filter_map(|compaction| {
        let Outcome::Done(done) = compaction.outcome else { return None };
        let name = format!("compaction {} by {}", compaction.id, compaction.strategy);
        Some((name, done.retention?))
    });
    audits.collect()
}
