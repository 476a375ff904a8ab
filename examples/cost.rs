//! What threads cost under a provider's prompt cache, by the policy that compacts them.
//!
//! ```text
//! cargo run -q --release --example cost -- [--threads N] [--messages M] [--window W] [--days] [FOLDER]
//! ```
//!
//! Replays generated threads with planted facts, and the transcripts of a folder, request by
//! request against a provider that caches the prompt of the last request for five minutes. Reading
//! from the cache ends at the first message that an edit changed. The table shows the tokens by
//! price class, the money, and how many of the facts are kept, measured six times in each thread.
//! Without a folder it reads the threads of `testdata/threads`.
//!
//! With `--days` users are away for minutes, hours and nights, and a model writes the summaries. There
//! is a table for each target and each life of a cache, with the rules that products follow while a
//! user is away.
//!
//! The oracle knows the future. It is not a policy but a lower bound: see `cost/oracle.rs`.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use cost::{Course, Pauses, Table, policy::OURS};
use lexopt::{Arg, Parser, ValueExt};
use threadfold::compact::CacheLife;
use threadfold_terminal::{Style, thousands};

#[path = "cost/mod.rs"]
mod cost;
#[path = "retention/threads.rs"]
#[expect(dead_code, reason = "the example `retention` takes all of it")]
mod threads;

fn main() -> ExitCode {
    match Options::from_arguments().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cost: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The options of the command line.
struct Options {
    threads: u64,
    messages: usize,
    window: u64,
    is_days: bool,
    folder: PathBuf,
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/threads"));
        let mut options =
            Self { threads: 200, messages: 600, window: 64_000, is_days: false, folder };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("threads") => options.threads = parser.value()?.parse()?,
                Arg::Long("messages") => options.messages = parser.value()?.parse()?,
                Arg::Long("window") => options.window = parser.value()?.parse()?,
                Arg::Long("days") => options.is_days = true,
                Arg::Value(folder) => options.folder = folder.into(),
                Arg::Long(_) | Arg::Short(_) => return Err(argument.unexpected().into()),
            }
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let pauses = if options.is_days { Pauses::Days } else { Pauses::Short };
    let generated: Vec<Course> = (1..=options.threads)
        .map(|seed| {
            // Threads have between half and all of the messages, because real ones end at any
            // length.
            let less = options.messages / 2 * (seed as usize % 8) / 8;
            let thread = threads::planted(seed, options.messages - less);
            Course::of(&thread.messages, options.window, seed, pauses)
        })
        .collect();
    let recorded = match options.folder.is_dir() {
        true => transcripts(&options.folder, pauses)?,
        false => Vec::new(),
    };
    let groups = [("Generated threads", generated), ("Transcripts", recorded)];
    let show = if options.is_days { days } else { short };
    println!("Prices: {}.\n", cost::SOURCE);
    show(Style::of(&io::stdout()), groups.each_ref().map(|(name, of)| (*name, of.as_slice())))
}

/// The courses of a table, with their name.
type Group<'a> = (&'a str, &'a [Course]);

/// Prints the tables with short pauses, and the planner's bill over all of them.
fn short(style: Style, groups: [Group<'_>; 2]) -> Result<(), Box<dyn Error>> {
    let mut tables = Vec::new();
    for (title, courses) in groups {
        let table = cost::compare(courses, false)?;
        show(style, title, courses, &table);
        tables.push(table);
    }
    println!("{}", style.heading("Both together"));
    close(&tables.iter().collect::<Vec<_>>());
    Ok(())
}

/// Prints the tables with pauses of days: for each group, target and life of a cache.
fn days(style: Style, groups: [Group<'_>; 2]) -> Result<(), Box<dyn Error>> {
    let lives = [CacheLife::FIVE_MINUTES, CacheLife::HOUR];
    for (kind, courses) in groups {
        // Half of the window is the default. Products keep a tenth or less.
        for (target, share) in [("half", 0.5), ("a tenth", 0.1)] {
            let tables = cost::compare_away(courses, share, &lives)?;
            for (life, table) in lives.iter().zip(&tables) {
                let minutes = life.ms / 60_000;
                let title = format!("{kind}: to {target}, a cache of {minutes} minutes");
                show(style, &title, courses, table);
            }
        }
    }
    Ok(())
}

fn transcripts(folder: &Path, pauses: Pauses) -> Result<Vec<Course>, String> {
    let threads = threads::real(folder)?.into_iter();
    Ok(threads.map(|thread| Course::overflowing(&thread.messages, pauses)).collect())
}

/// Prints a table, if there are courses.
fn show(style: Style, title: &str, courses: &[Course], table: &Table) {
    println!("{}", style.heading(title));
    if courses.is_empty() {
        println!("skipped: there are no threads\n");
        return;
    }
    let requests: usize = courses.iter().map(|course| course.steps.len()).sum();
    let tokens: u64 = courses.iter().map(Course::tokens).sum();
    println!(
        "{} threads, {} requests, {} tokens in all\n",
        courses.len(),
        thousands(requests as u64),
        thousands(tokens)
    );
    let head = ["fresh", "written", "read", "answers", "money", "compacted", "facts", "paths"];
    let head: Vec<String> = head.iter().map(|name| format!("{name:>14}")).collect();
    println!("{}", style.bold(format!("{:<30}{}", "policy", head.concat())));
    for row in &table.rows {
        let (name, it) = (row.policy, &row.outcome);
        let fresh = it.billed.input - it.billed.cache_read - it.billed.cache_write;
        let numbers =
            [fresh, it.billed.cache_write, it.billed.cache_read, it.billed.output].map(thousands);
        let numbers: String = numbers.iter().map(|number| format!("{number:>14}")).collect();
        let kept = [it.facts, it.paths].map(|kept| {
            format!("{:>10}.{} %", kept.per_mille() / 10, kept.per_mille() % 10).to_owned()
        });
        let note = if it.is_too_long { "  over the window" } else { "" };
        let money = it.money as f64 / 1e6;
        println!("{name:<30}{numbers}{money:>14.2}{:>14}{}{note}", it.compactions, kept.concat());
    }
    println!("{:<30}{:>70.2}\n", "oracle", table.oracle as f64 / 1e6);
    close(&[table]);
}

/// Prints the planner's bill relative to the oracle and to rules with fixed numbers, over all of
/// these tables.
fn close(tables: &[&Table]) {
    let sum = |money: &dyn Fn(&Table) -> i64| tables.iter().map(|table| money(table)).sum::<i64>();
    let ours = sum(&|table| table.of(OURS).money);
    let oracle = sum(&|table| table.oracle);
    if oracle == 0 {
        println!("skipped: there are no threads\n");
        return;
    }
    let below = |bill: i64, of: i64| (1.0 - bill as f64 / of.max(1) as f64) * 100.0;
    println!("Our bill is {:.1} % above the oracle's.", -below(ours, oracle));
    for row in tables.iter().take(1).flat_map(|table| &table.rows).filter(|row| row.is_fixed) {
        let fixed = sum(&|table| table.of(row.policy).money);
        let (ours, oracle) = (below(ours, fixed), below(oracle, fixed));
        println!("{:<30}: we are {ours:.1} % below it, the oracle {oracle:.1} %.", row.policy);
    }
    println!();
}
