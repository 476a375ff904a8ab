//! The program `threadfold`.

use std::process::ExitCode;

fn main() -> ExitCode {
    threadfold_cli::run(std::env::args_os())
}
