//! What threads cost under a provider's prompt cache, by the policy that compacts them.
//!
//! ```text
//! cargo run -q --release --example cost -- [--threads N] [--messages M] [--window W] [FOLDER]
//! ```
//!
//! Replays generated threads with planted facts, and the transcripts of a folder, request by
//! request against a provider that caches the prompt of the last request for five minutes. Reading
//! from the cache ends at the first message that an edit changed. The table shows the tokens by
//! price class, the money, and how many of the facts are kept, measured six times in each thread.
//! Without a folder it reads the threads of `testdata/threads`.
//!
//! The oracle knows the future. It is not a policy but a lower bound: see `cost/oracle.rs`.

use std::{error::Error, io, path::PathBuf, process::ExitCode};

use cost::{Course, FIXED, OURS, Table};
use lexopt::{Arg, Parser, ValueExt};
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
    folder: PathBuf,
}

impl Options {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/threads"));
        let mut options = Self { threads: 200, messages: 600, window: 64_000, folder };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("threads") => options.threads = parser.value()?.parse()?,
                Arg::Long("messages") => options.messages = parser.value()?.parse()?,
                Arg::Long("window") => options.window = parser.value()?.parse()?,
                Arg::Value(folder) => options.folder = folder.into(),
                Arg::Long(_) | Arg::Short(_) => return Err(argument.unexpected().into()),
            }
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let generated: Vec<Course> = (1..=options.threads)
        .map(|seed| {
            // Threads have between half and all of the messages, because real ones end at any
            // length.
            let less = options.messages / 2 * (seed as usize % 8) / 8;
            let thread = threads::planted(seed, options.messages - less);
            Course::of(&thread.messages, options.window, seed)
        })
        .collect();
    let generated = show(style, "Generated threads", &generated)?;
    if !options.folder.is_dir() {
        println!("skipped: there are no transcripts at {}", options.folder.display());
        return Ok(());
    }
    let recorded: Vec<Course> = threads::real(&options.folder)?
        .into_iter()
        .map(|thread| Course::overflowing(&thread.messages))
        .collect();
    let recorded = show(style, "Transcripts", &recorded)?;
    println!("{}", style.heading("Both together"));
    close(&[&generated, &recorded]);
    Ok(())
}

fn show(style: Style, title: &str, courses: &[Course]) -> Result<Table, Box<dyn Error>> {
    let requests: usize = courses.iter().map(|course| course.steps.len()).sum();
    let tokens: u64 = courses.iter().map(Course::tokens).sum();
    println!("{}", style.heading(title));
    println!(
        "{} threads, {} requests, {} tokens in all\n",
        courses.len(),
        thousands(requests as u64),
        thousands(tokens)
    );
    let table = cost::compare(courses, false)?;
    let head =
        ["fresh", "written", "read", "answers", "money", "compacted", "facts", "rules", "paths"];
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
    close(&[&table]);
    Ok(table)
}

/// Prints the planner's bill relative to the fixed threshold and the oracle, over all of these
/// threads.
fn close(tables: &[&Table]) {
    let sum = |money: fn(&Table) -> i64| tables.iter().map(|table| money(table)).sum::<i64>();
    let ours = sum(|table| table.of(OURS).money);
    let percent = |of: i64| (ours as f64 / of as f64 - 1.0) * 100.0;
    println!(
        "The planner's bill is {:.1} % below the fixed threshold's and {:.1} % above the oracle's.\n",
        -percent(sum(|table| table.of(FIXED).money)),
        percent(sum(|table| table.oracle))
    );
}
