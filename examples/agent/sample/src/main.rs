//! The command line: `calc "2 * (3 + 4)"`.

mod eval;
mod lexer;
mod parser;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let text: Vec<String> = env::args().skip(1).collect();
    match calculate(&text.join(" ")) {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("calc: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the value of an expression, or a line that says why it has none.
fn calculate(text: &str) -> Result<f64, String> {
    let tokens = lexer::tokens(text).map_err(|error| format!("{error:?}"))?;
    let tree = parser::parse(&tokens).map_err(|error| format!("{error:?}"))?;
    eval::value(&tree).map_err(|error| format!("{error:?}"))
}
