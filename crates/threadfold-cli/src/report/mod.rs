//! `report`: a page about the compactions of a thread, which is one HTML file, runs no script and fetches
//! nothing.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a page shows only some kinds of events and blocks"
)]

use std::{io, path::Path};

use threadfold::{EventLog, retention::Retention};
use threadfold_terminal::{Style, thousands};

use crate::{
    args::ReportOptions,
    error::{Ended, Failure},
    input,
    out::{self, say},
};

mod card;
mod chart;
mod escape;
mod page;
pub mod story;

pub(crate) use escape::{escaped, line, short};
pub use page::{MAX_BYTES, page};
pub(crate) use page::{document, page_of_list};

use story::{Outcome, Story};

pub(crate) fn run(options: ReportOptions) -> Result<Ended, Failure> {
    let log = input::log(&options.log, options.thread.id(), "`threadfold import` makes a log")?;
    write(&log, options.window, &options.output)
}

/// Writes the page about a log to a file.
pub(crate) fn write(log: &EventLog, window: Option<u64>, file: &Path) -> Result<Ended, Failure> {
    let page = page(log, window);
    out::write(Some(file), page.as_bytes())?;
    let style = Style::of(&io::stdout());
    say!(
        "{} {}: {} bytes about {} events",
        style.green("✓"),
        style.bold(file.display()),
        thousands(page.len() as u64),
        thousands(log.len())
    );
    Ok(Ended::Done)
}

/// The retention of each compaction in a log: as recorded, or else computed from the log.
pub(crate) fn retentions(log: &EventLog) -> Vec<(String, Retention)> {
    let compactions = Story::of(log, None).compactions;
    let audits = compactions.into_iter().filter_map(|compaction| {
        let Outcome::Done(done) = compaction.outcome else { return None };
        let name = format!("compaction {} by {}", compaction.id, compaction.strategy);
        Some((name, done.retention?))
    });
    audits.collect()
}
