//! The commands of the program `threadfold`. Its `main` only calls [`run`]; the library exists for
//! tests.

#![forbid(unsafe_code)]

use std::{ffi::OsString, process::ExitCode};

use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use error::{Ended, Failure};

mod args;
mod audit;

mod chunked;
mod compact;
mod context;
mod doctor;
#[doc(hidden)]
pub mod edl;
mod error;
mod files;
mod hindsight;
mod import;
mod input;
mod log_file;
mod mcp;
mod models;
mod out;
pub mod proxy;
pub mod relay;
#[doc(hidden)]
pub mod report;
mod run;
mod status;
mod stored;
mod strategies;
mod when_quiet;
mod words;

/// Runs the command with these arguments, and returns its exit code: 0 for success, 1 for failure,
/// 2 for an invalid command line, 3 if there was nothing to do; of `run`, the code of the agent.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Writing to a closed pipe is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match carry_out(arguments.command) {
        Ok(ended) => ended.code(),
        Err(failure) => {
            eprintln!("threadfold: {}", threadfold_terminal::plain(failure.line()));
            ExitCode::FAILURE
        }
    }
}

/// Checks a command line without running it. The help counts as valid.
///
/// # Errors
///
/// The message of [`run`] for an invalid command line.
pub fn check(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    match Arguments::try_parse_from(arguments) {
        Err(error) if error.exit_code() != 0 => Err(error.to_string()),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn carry_out(command: Command) -> Result<Ended, Failure> {
    match command {
        Command::Compact(options) => {
            options.model.run(async |models| compact::run(&options, models).await)
        }
        Command::Audit(options) => audit::run(&options),
        Command::Context(options) => context::run(&options),
        Command::Strategies(options) => {
            options.model.run(async |models| strategies::run(&options, models).await)
        }
        Command::Hindsight(options) => {
            options.model.run(async |models| hindsight::run(&options, models).await)
        }
        Command::Chunked(options) => {
            options.model.run(async |models| chunked::run(&options, models).await)
        }
        Command::Edl(options) => edl::run(&options),
        Command::Report(options) => report::run(options),
        Command::Import(options) => import::run(&options),
        Command::Run(options) => run::run(options),
        Command::Proxy(options) => proxy::run(options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Status(options) => status::run(&options),
        Command::Watch(options) => status::watch(&options),
        Command::Mcp(options) => mcp::run(&options),
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Arguments::command(),
                "threadfold",
                &mut std::io::stdout(),
            );
            Ok(Ended::Done)
        }
        Command::Man => {
            clap_mangen::Man::new(Arguments::command()).render(&mut std::io::stdout())?;
            Ok(Ended::Done)
        }
    }
}
