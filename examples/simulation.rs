//! An agent works at random against a session, for as long as you like, and nothing may go wrong.
//!
//! ```text
//! cargo run -q --release --example simulation -- [--turns N] [--seed S] [--seeds K]
//! ```
//!
//! Each seed is a life of its own, of so many turns in a window of 32,000 tokens. The model calls
//! tools of any size, answers with nothing, breaks off, counts nonsense; the store fails; the person
//! drops streams, aborts, compacts, takes compactions back, and starts the session again. Every
//! request is looked at: it fits, it is legal, both codecs write it without a repair, and it is the
//! thread that the store holds. The first violation of a seed ends it and is told, and the exit
//! code is 1.

use std::{
    error::Error,
    io,
    process::ExitCode,
    sync::Mutex,
    time::{Duration, Instant},
};

use lexopt::{Arg, Parser, ValueExt};
use simulation::{Tally, Violation, WINDOW, run_all};
use terminal::{Style, thousands};

#[path = "simulation/mod.rs"]
mod simulation;
mod terminal;

fn main() -> ExitCode {
    match Options::from_arguments().map(|options| simulate(&options)) {
        Ok(violations) if violations.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("simulation: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
struct Options {
    turns: u64,
    seed: u64,
    seeds: u64,
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut options = Self { turns: 500, seed: 0, seeds: 4 };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("turns") => options.turns = parser.value()?.parse()?,
                Arg::Long("seed") => {
                    options.seed = parser.value()?.parse()?;
                    options.seeds = 1;
                }
                Arg::Long("seeds") => options.seeds = parser.value()?.parse()?,
                Arg::Long(_) | Arg::Short(_) | Arg::Value(_) => {
                    return Err(argument.unexpected().into());
                }
            }
        }
        Ok(options)
    }
}

/// Runs the seeds, shows what happened, and returns what should not have.
fn simulate(options: &Options) -> Vec<Violation> {
    let style = Style::of(&io::stdout());
    let Options { turns, seed, seeds } = *options;
    println!("{}", style.heading("An agent at random in a small window"));
    println!(
        "{} turns with each of {} seeds from {seed} on; the window holds {} tokens.\n",
        thousands(turns),
        thousands(seeds),
        thousands(WINDOW)
    );
    let begun = Instant::now();
    let (all, violations) = (Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    run_all(seed..seed.saturating_add(seeds), turns, |_, ran| match ran {
        Ok(tally) => all.lock().into_iter().for_each(|mut all| *all += tally.clone()),
        Err(violation) => {
            println!("{} {violation}", style.red("violation"));
            violations.lock().into_iter().for_each(|mut all| all.push(violation.clone()));
        }
    });
    // Nobody panics with them in hand.
    let all = all.into_inner().unwrap_or_default();
    let violations = violations.into_inner().unwrap_or_default();
    show(style, &all, begun.elapsed());
    close(style, &violations, seeds);
    violations
}

fn show(style: Style, all: &Tally, elapsed: Duration) {
    let row = |name: &str, count: u64, about: &str| {
        let row = format!("  {name:<22} {:>12}", thousands(count));
        println!(
            "{row}{}",
            if about.is_empty() { String::new() } else { style.dim(format!("   {about}")) }
        );
    };
    row("turns", all.turns, "");
    row("requests", all.requests, &format!("{} at most in one turn", all.max_requests));
    row("  for summaries", all.summaries, &format!("{} at most for one", all.max_summaries));
    println!("  {:<22} {}", "fullest request", style.meter(all.fullest, WINDOW));
    println!();
    row("compactions", all.compactions.values().sum(), "");
    for (reason, count) in &all.compactions {
        row(&format!("  {reason}"), *count, "");
    }
    row("  came to nothing", all.failed, "the thread stayed as it was");
    row("  cancelled", all.cancelled, "their stream was dropped");
    row("  taken back", all.undone, "the last one each time");
    println!();
    row("model failed", all.model_failures, "errors, streams that broke off");
    row("store failed", all.store_failures, "before, within or behind a write");
    row("refused", all.refused, "too long, whatever would be compacted");
    row("streams dropped", all.dropped, "at any await");
    row("turns aborted", all.aborted, "");
    row("messages queued", all.queued, "");
    row("sessions started again", all.resumed, "from what the store held");
    println!();
    row("events in the log", all.events, "");
    println!("  {:<22} {:>10.1} s", "time", elapsed.as_secs_f64());
}

fn close(style: Style, violations: &[Violation], seeds: u64) {
    println!();
    match violations.len() {
        0 => println!(
            "  {} every request fitted, was legal, and was the thread that the store held.",
            style.green("✓")
        ),
        count => println!("  {} {count} of {seeds} seeds came upon a violation.", style.red("✗")),
    }
}
