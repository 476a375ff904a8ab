//! Runs an agent that acts at random against sessions, and checks every promise meanwhile.
//!
//! ```text
//! cargo run -q --release --example simulation -- [--turns N] [--seed S] [--seeds K] [--strategy NAME]
//! cargo run -q --release --example simulation -- --rules [--stay] [--model NAME] [--turns N] [--seed S] [--strategy NAME]
//! ```
//!
//! Every strategy runs on its own in every window, known and unknown, with providers that count
//! correctly, twice as much, or not at all; so do a strategy that always fails and one that
//! proposes nonsense. With each seed that makes about N turns in all. The model calls tools with
//! results of any size, answers with nothing, breaks off and reports wrong counts; the store fails;
//! the user drops streams, aborts, compacts, undoes compactions, and restarts the session. In calm
//! worlds an agent only works, fast and for long, and its compactions must come from the soft
//! trigger. Every request is checked: it fits, it is legal, both codecs write it without a repair,
//! and it equals the thread in the store. The first violation ends its session and is printed, and
//! the exit code is 1.
//!
//! With `--rules`, every strategy runs over the rules of every vendor instead, or of those with one
//! model: N turns at each, with changes of the provider, or without these (`--stay`).
//! `simulation/books.rs` says what is counted.
//! The exit code is 1 if a request was illegal, if reasoning was lost without a word, or if less than
//! 90 % of the reasoning of kept turns arrived with the default ladder at a vendor that binds
//! reasoning and compacts itself.

use std::{
    collections::BTreeMap,
    error::Error,
    io,
    process::ExitCode,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use lexopt::{Arg, Parser, ValueExt};
use simulation::{
    Kind, Tally, Violation,
    books::{self, Judged, Travels, Vendor},
    run_all,
};
use threadfold::StrategyRegistry;
use threadfold_terminal::{Style, thousands};

#[path = "simulation/mod.rs"]
mod simulation;

fn main() -> ExitCode {
    let right = Options::from_arguments().and_then(|options| match options.rules {
        true => over_rules(&options),
        false => Ok(simulate(&options).is_empty()),
    });
    match right {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("simulation: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The options of the command line.
struct Options {
    turns: u64,
    seed: u64,
    seeds: u64,
    strategy: Option<String>,
    /// Over the rules of the vendors.
    rules: bool,
    /// The model of the vendors, or `None` for all.
    model: Option<String>,
    travels: Travels,
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let travels = Travels::Sometimes;
        let (strategy, model) = (None, None);
        let mut options =
            Self { turns: 10_000, seed: 0, seeds: 1, strategy, rules: false, model, travels };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("turns") => options.turns = parser.value()?.parse()?,
                Arg::Long("seed") => options.seed = parser.value()?.parse()?,
                Arg::Long("seeds") => options.seeds = parser.value()?.parse()?,
                Arg::Long("rules") => options.rules = true,
                Arg::Long("stay") => options.travels = Travels::Never,
                Arg::Long("model") => options.model = Some(parser.value()?.string()?),
                Arg::Long("strategy") => options.strategy = Some(parser.value()?.string()?),
                Arg::Long(_) | Arg::Short(_) | Arg::Value(_) => {
                    return Err(argument.unexpected().into());
                }
            }
        }
        Ok(options)
    }
}

/// The results of every strategy at every vendor, as far as they are there.
type Table = BTreeMap<(usize, usize), Result<Judged, String>>;

/// Runs every strategy over the rules of every vendor, several at a time, prints a line for each, and
/// returns whether all promises were kept.
fn over_rules(options: &Options) -> Result<bool, Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    println!("{}", style.heading("Every strategy over the rules of every vendor"));
    let registry = StrategyRegistry::default();
    let names = registry
        .names()
        .filter(|name| options.strategy.as_ref().is_none_or(|wanted| wanted == name));
    let names: Vec<&str> = names.collect();
    let turns = options.turns.div_ceil(names.len().max(1) as u64);
    let is_wanted = |it: &Vendor| options.model.as_ref().is_none_or(|wanted| wanted == it.model);
    let vendors: Vec<Vendor> = Vendor::ALL.into_iter().filter(is_wanted).collect();
    let runs =
        (0..vendors.len()).flat_map(|vendor| (0..names.len()).map(move |name| (vendor, name)));
    let next = Mutex::new(runs);
    // The table, and the number of vendors that were printed.
    let done: Mutex<(Table, usize, Vec<String>)> = Mutex::default();
    let work = || {
        // The locks are never poisoned, because no code panics while one is held.
        while let Some(place) = next.lock().ok().and_then(|mut runs| runs.next()) {
            let (Some(vendor), Some(name)) = (vendors.get(place.0), names.get(place.1)) else {
                return;
            };
            let judged = books::run(*vendor, name, (options.seed, turns), options.travels);
            let Ok(mut done) = done.lock() else { return };
            let (table, printed, complaints) = &mut *done;
            table.insert(place, judged);
            while let Some(vendor) = vendors.get(*printed)
                && table.range((*printed, 0)..(*printed + 1, 0)).count() == names.len()
            {
                let rows = table.range((*printed, 0)..(*printed + 1, 0));
                let rows =
                    rows.filter_map(|((_, name), judged)| names.get(*name).zip(Some(judged)));
                complaints.extend(of_vendor(style, *vendor, rows));
                *printed += 1;
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (_, printed, complaints) = done.into_inner().unwrap_or_default();
    Ok(complaints.is_empty() && printed == vendors.len() && printed > 0)
}

/// Prints the results of the strategies at a vendor, and returns what is wrong with them.
fn of_vendor<'a>(
    style: Style,
    vendor: Vendor,
    rows: impl Iterator<Item = (&'a &'a str, &'a Result<Judged, String>)>,
) -> Vec<String> {
    let head = [
        "turns",
        "requests",
        "compacted",
        "refused",
        "failed",
        "illegal",
        "kept",
        "announced",
        "left out",
        "silent",
        "arrived %",
    ];
    let head: Vec<String> = head.iter().map(|name| format!("{name:>9}")).collect();
    println!("{}", style.bold(format!("{:<42}{}", vendor.to_string(), head.join(" "))));
    let (mut all, mut wrong) = (Judged::default(), Vec::new());
    for (name, judged) in rows {
        let judged = match judged {
            Ok(judged) => judged.clone(),
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        println!("{}", line(name, &judged));
        let illegal = judged.illegal.iter().take(3).map(|text| format!("{name}: illegal: {text}"));
        let failed = judged.failed.iter().take(3).map(|text| format!("{name}: failed: {text}"));
        wrong.extend(illegal.chain(failed));
        if judged.silent > 0 {
            wrong.push(format!("{name}: reasoning was lost without a word"));
        }
        let is_short = judged.share().is_some_and(|share| share < 90);
        if *name == "ladder" && is_short && vendor.keeps_bound_reasoning() {
            wrong.push(format!("{name}: too little of the reasoning of kept turns arrived"));
        }
        all += judged;
    }
    println!("{}", line("all", &all));
    for (reason, count) in &all.left_out {
        println!("{}", style.dim(format!("  left out: {reason} ({})", thousands(*count))));
    }
    wrong.iter().for_each(|text| println!("{} {text}", style.red("violation")));
    println!();
    wrong
}

fn line(name: &str, judged: &Judged) -> String {
    let numbers = [
        judged.turns,
        judged.requests,
        judged.compactions,
        judged.overflows,
        judged.failed.len() as u64,
        judged.illegal.len() as u64,
        judged.kept,
        judged.announced,
        judged.left_out.values().sum(),
        judged.silent,
    ];
    let numbers = numbers.map(|number| format!(" {:>9}", thousands(number))).concat();
    let share = judged.share().map_or("-".to_owned(), |share| share.to_string());
    format!("{name:<41}{numbers} {share:>9}")
}

/// The results of a strategy.
#[derive(Default)]
struct Came {
    sessions: u64,
    tally: Tally,
    violations: Vec<Violation>,
}

/// Runs the seeds, prints the results, and returns the violations.
fn simulate(options: &Options) -> Vec<Violation> {
    let style = Style::of(&io::stdout());
    println!("{}", style.heading("An agent at random under every strategy"));
    let begun = Instant::now();
    let came: Mutex<BTreeMap<String, Came>> = Mutex::default();
    for seed in (options.seed..).take(options.seeds as usize) {
        let wanted = |name: &str| options.strategy.as_ref().is_none_or(|wanted| wanted == name);
        run_all(seed, options.turns, wanted, |world, tally, violation| {
            // The lock is never poisoned, because no code panics while it is held.
            let Ok(mut came) = came.lock() else { return };
            let came = came.entry(world.strategy.clone()).or_default();
            came.sessions += 1;
            came.tally += tally;
            came.violations.extend(violation);
        });
    }
    let came = came.into_inner().unwrap_or_default();
    let all = came.values().fold(Tally::default(), |mut all, came| {
        all += came.tally.clone();
        all
    });
    table(style, &came);
    show(style, &all, begun.elapsed());
    let violations: Vec<Violation> = came.into_values().flat_map(|came| came.violations).collect();
    close(style, &violations);
    violations
}

/// Prints a line for each strategy: its results, how often the soft trigger fired in time in calm
/// sessions, and how many sessions ended with a violation.
fn table(style: Style, came: &BTreeMap<String, Came>) {
    let head = [
        "sessions",
        "turns",
        "requests",
        "summaries",
        "compacted",
        "failed",
        "soft %",
        "locked",
        "too long",
        "illegal",
        "untold",
        "log",
        "other",
    ];
    let head: Vec<String> = head.iter().map(|name| format!("{name:>9}")).collect();
    println!("{}", style.bold(format!("{:<18}{}", "strategy", head.join(" "))));
    for (strategy, Came { sessions, tally, violations }) in came {
        let of = |kind| violations.iter().filter(|it| it.fault.kind == kind).count() as u64;
        let did = [
            *sessions,
            tally.turns,
            tally.requests,
            tally.summaries,
            tally.compactions.values().sum(),
            tally.failed,
        ];
        let kinds =
            [Kind::Locked, Kind::TooLong, Kind::Illegal, Kind::Told, Kind::Log, Kind::Other];
        let numbers = |numbers: &[u64]| -> String {
            numbers.iter().map(|number| format!(" {:>9}", thousands(*number))).collect()
        };
        let soft = tally.soft_percent().map_or("-".to_owned(), |percent| percent.to_string());
        let broken = numbers(&kinds.map(of));
        let broken = if violations.is_empty() { broken } else { style.red(broken) };
        println!("{strategy:<17}{} {soft:>9}{broken}", numbers(&did));
    }
    println!();
}

fn show(style: Style, all: &Tally, elapsed: Duration) {
    let row = |name: &str, count: u64, about: &str| {
        let row = format!("  {name:<22} {:>12}", thousands(count));
        let about = if about.is_empty() { about.to_owned() } else { format!("   {about}") };
        println!("{row}{}", style.dim(about));
    };
    row("turns", all.turns, "");
    row("requests", all.requests, &format!("{} at most in one turn", all.max_requests));
    row("  for summaries", all.summaries, &format!("{} at most for one", all.max_summaries));
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
    row("model refused", all.overflows, "longer than a window that nobody named");
    row("store failed", all.store_failures, "before, within or after a write");
    row("refused", all.refused, "too long, whatever would be compacted");
    row("streams dropped", all.dropped, "at any await");
    row("turns aborted", all.aborted, "");
    row("messages queued", all.queued, "");
    row("sessions started again", all.resumed, "from what the store held");
    println!();
    row("events in the log", all.events, "");
    println!("  {:<22} {:>10.1} s", "time", elapsed.as_secs_f64());
}

fn close(style: Style, violations: &[Violation]) {
    println!();
    for violation in violations {
        println!("{} {violation}", style.red("violation"));
    }
    match violations.len() {
        0 => println!(
            "  {} no session locked up; every request fitted, was legal, and was the thread that the \
             store held.",
            style.green("✓")
        ),
        count => println!("  {} {count} sessions came upon a violation.", style.red("✗")),
    }
}
