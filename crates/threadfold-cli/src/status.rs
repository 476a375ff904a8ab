//! `status` and `watch`: the proxies of a folder and the threads that they compacted.

use std::{
    io::{self, IsTerminal},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use threadfold::model::{Clock, std_clock};
use threadfold_terminal::{Style, counted, first_line, thousands};

use crate::{
    args::StatusOptions,
    error::{Ended, Failure},
    out::say,
    proxy::{
        Running, prices,
        views::{Listed, Views},
    },
    report::short,
    words::minute,
};

/// How often `watch` looks again.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) fn run(options: &StatusOptions) -> Result<Ended, Failure> {
    say!("{}", text(options)?);
    Ok(Ended::Done)
}

/// Prints the status whenever it changed. A terminal shows only the newest.
pub(crate) fn watch(options: &StatusOptions) -> Result<Ended, Failure> {
    let clears = io::stdout().is_terminal() && !options.json;
    let mut shown = String::new();
    loop {
        let text = text(options)?;
        if text != shown {
            let clear = if clears { "\u{1b}[2J\u{1b}[H" } else { "" };
            say!("{clear}{text}");
            shown = text;
        }
        thread::sleep(PAUSE);
    }
}

fn text(options: &StatusOptions) -> Result<String, Failure> {
    let seen = Seen::in_folder(options)?;
    Ok(match options.json {
        true => seen.json().to_string(),
        false => seen.lines(options, Style::of(&io::stdout())).join("\n"),
    })
}

/// What a folder says now.
#[derive(Default)]
struct Seen {
    running: Vec<Running>,
    listed: Vec<Listed>,
    /// The number of all threads.
    threads: u64,
}

impl Seen {
    /// Reads the folder, which stays as it is. A folder without a proxy is empty.
    fn in_folder(options: &StatusOptions) -> Result<Self, Failure> {
        let Some(views) = Views::open_read_only(&options.folder.join("threads.db"))? else {
            return Ok(Self::default());
        };
        let (running, _) = views.running(std_clock().now())?;
        let (mut listed, threads) = views.list()?;
        listed.truncate(options.threads);
        Ok(Self { running, listed, threads })
    }

    fn json(&self) -> Value {
        let listed = self.listed.iter().map(|thread| {
            let Listed { about, times, saved } = thread;
            json!({"about": about, "times": times, "saved": saved, "dollars": thread.dollars()})
        });
        let listed: Vec<Value> = listed.collect();
        json!({"proxies": self.running, "threads": listed, "all_threads": self.threads})
    }

    fn lines(&self, options: &StatusOptions, style: Style) -> Vec<String> {
        let folder = first_line(&options.folder.display().to_string(), 50);
        let mut lines = vec![style.bold(format!("Proxies in {folder}"))];
        if self.running.is_empty() {
            lines.push(
                "none runs; `threadfold run -- AGENT` or `threadfold proxy` starts one".into(),
            );
        }
        for Running { address, since, counts, .. } in &self.running {
            let address = style.cyan(format!("http://{address}/threadfold"));
            lines.push(format!("{address}  since {}", minute(*since)));
            let done = counts.words().unwrap_or_else(|| "no request came through yet".to_owned());
            lines
                .extend(threadfold_terminal::wrapped(&done, 76).iter().map(|it| format!("  {it}")));
        }
        lines.extend([String::new(), style.bold("Threads that were compacted")]);
        match (self.threads, self.threads.saturating_sub(self.listed.len() as u64)) {
            (0, _) => lines.push(
                "none; a thread is compacted when it fills most of its model's window".to_owned(),
            ),
            (_, rest) => {
                lines.extend(self.listed.iter().flat_map(|thread| row(thread, style)));
                let more = counted(rest, "more thread");
                lines.extend((rest > 0).then(|| style.dim(format!("and {more}"))));
                lines
                    .push(style.dim("Tokens are estimates; the money is what they cost at least."));
            }
        }
        lines
    }
}

/// A thread, on three lines of at most 80 columns.
fn row(thread: &Listed, style: Style) -> [String; 3] {
    let Listed { about, times, saved } = thread;
    let words = match about.words.trim() {
        "" => "(no person typed)".to_owned(),
        words => first_line(words, 78),
    };
    let names = [&about.client, &about.model].map(|name| first_line(name, 24));
    let names: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let who = [&names[..], &[&*minute(about.at)]].concat().join(", ");
    let often = match times {
        1 => "compacted once".to_owned(),
        _ => format!("compacted {} times", thousands(*times)),
    };
    let mut done = format!("{often}, last {} to {}", short(about.before), short(about.after));
    if saved.tokens > 0 {
        done += &format!("; {} tokens not sent", short(saved.tokens));
    }
    if let Some(money) = thread.dollars() {
        done += &format!(", {}", prices::dollars(money));
    }
    [words, style.dim(format!("  {who}")), format!("  {done}")]
}
