//! Measures what summaries lose: every strategy over five compactions, with and without its
//! addendum.
//!
//! ```text
//! cargo run -q --release --example retention -- [--transcripts FOLDER] [--markdown]
//!     [--generated] [--strategy NAME] [--addendum TOKENS] [--wanted PERCENT] [--minimum PERCENT]
//! ```
//!
//! A thread comes in five parts. After each part it is compacted to half of its size. The facts of
//! all messages so far are compared with the present thread: how much of the user's demands, paths,
//! commands and errors is still stated, by weight. The comparison is by words, not by meaning.
//!
//! Four models write the summaries: one extracts informative sentences, one answers "ok", one
//! repeats the same sentence, and one never stops. The threads are generated, with planted facts,
//! or taken from a folder of request bodies.

#![allow(clippy::wildcard_enum_match_arm, reason = "it plants what it plants, and no more")]

use std::{
    collections::BTreeMap,
    env, io,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    thread::{self, available_parallelism},
};

use lexopt::{Arg, Parser, ValueExt};
use table::{Row, Table};
use threadfold::{CompactionStrategy, StrategyRegistry, retention::RetentionPolicy};
use threadfold_terminal::Style;
use trial::{Course, Round, Trial};
use writers::{ALONE, WRITERS, Writer};

#[path = "retention/table.rs"]
mod table;
#[path = "retention/threads.rs"]
mod threads;
#[path = "retention/trial.rs"]
mod trial;
#[path = "retention/writers.rs"]
mod writers;

fn main() -> ExitCode {
    match Options::from_arguments().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("retention: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Strategies that call no model, for which the writer makes no difference.
const MODELLESS: [&str; 4] = ["clear-results", "digest", "keep-recent", "trim-tool-results"];

struct Options {
    transcripts: Option<PathBuf>,
    markdown: bool,
    /// The only strategy to try.
    strategy: Option<String>,
    policy: RetentionPolicy,
}

impl Options {
    fn from_arguments() -> Result<Self, String> {
        const USAGE: &str = "usage: retention [--transcripts FOLDER] [--generated] [--markdown] [--strategy NAME] [--addendum TOKENS] [--wanted PERCENT] [--minimum PERCENT]";
        let mut options = Self {
            transcripts: env::var_os("THREADFOLD_TRANSCRIPTS").map(PathBuf::from),
            markdown: false,
            strategy: None,
            policy: RetentionPolicy::default(),
        };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                Arg::Long("markdown") => options.markdown = true,
                Arg::Long("addendum") => options.policy.addendum_tokens = number(&mut parser)?,
                Arg::Long("wanted") => options.policy.wanted = number(&mut parser)?,
                Arg::Long("strategy") => {
                    let name = parser.value().and_then(ValueExt::string);
                    options.strategy = Some(name.map_err(|error| error.to_string())?);
                }
                Arg::Long("minimum") => options.policy.minimum = number(&mut parser)?,
                Arg::Long("generated") => options.transcripts = None,
                Arg::Long("transcripts") => {
                    let folder = parser.value().map_err(|error| error.to_string())?;
                    options.transcripts = Some(folder.into());
                }
                Arg::Long(_) | Arg::Short(_) | Arg::Value(_) => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}

fn number(parser: &mut Parser) -> Result<u64, String> {
    parser.value().and_then(|value| value.parse()).map_err(|error| error.to_string())
}

fn run(options: &Options) -> Result<(), String> {
    let threads = match &options.transcripts {
        Some(folder) => threads::real(folder)?,
        None => threads::generated(),
    };
    if threads.is_empty() {
        return Err("there is no thread that is long enough".to_owned());
    }
    let courses: Vec<Course> =
        threads.iter().map(|thread| Course::of(thread, &options.policy)).collect();
    let rows = rows(&courses, options)?;
    let style = Style::of(&io::stdout());
    let table = Table { style, threads: &threads, policy: &options.policy, rows };
    if options.markdown {
        table.markdown()
    } else {
        table.print()
    }
    Ok(())
}

/// A row for each strategy and writer, without and with an addendum.
fn rows(courses: &[Course], options: &Options) -> Result<Vec<Row>, String> {
    let registry = StrategyRegistry::default();
    let names: Vec<&str> = match &options.strategy {
        Some(name) => vec![name],
        // No writer here is a provider with a compaction of its own.
        None => registry.names().filter(|name| *name != "native").collect(),
    };
    let mut jobs = Vec::new();
    let writers: Vec<&Writer> = std::iter::once(&ALONE).chain(&WRITERS).collect();
    for writer in writers {
        for name in names.iter().copied() {
            if MODELLESS.contains(&name) == (writer.name == ALONE.name) {
                let strategy = registry.get(name).map_err(|error| error.to_string())?;
                jobs.extend([None, Some(&options.policy)].map(|policy| (writer, strategy, policy)));
            }
        }
    }
    let cores = available_parallelism().map_or(1, usize::from);
    let mut rows = BTreeMap::new();
    thread::scope(|scope| {
        let jobs = &jobs;
        let workers: Vec<_> = (0..cores)
            .map(|worker| {
                let own = jobs.iter().enumerate().skip(worker).step_by(cores);
                scope.spawn(move || {
                    own.map(|(at, job)| Ok((at, row(courses, job)?))).collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in workers {
            let done = worker.join().map_err(|_| "a worker panicked".to_owned())?;
            rows.extend(done.into_iter().collect::<Result<Vec<_>, String>>()?);
        }
        Ok(rows.into_values().collect())
    })
}

type Job<'a> = (&'a Writer, &'a Arc<dyn CompactionStrategy>, Option<&'a RetentionPolicy>);

fn row(courses: &[Course], (writer, strategy, policy): &Job<'_>) -> Result<Row, String> {
    let mut rounds: Vec<Round> = Vec::new();
    for course in courses {
        let model = (writer.make)();
        let trial = Trial { strategy: strategy.as_ref(), model, retention: *policy };
        for (at, round) in course.run(&trial)?.into_iter().enumerate() {
            match rounds.get_mut(at) {
                Some(sum) => *sum += round,
                None => rounds.push(round),
            }
        }
    }
    let strategy = strategy.name().to_owned();
    Ok(Row { writer: writer.name, strategy, addendum: policy.is_some(), rounds })
}
