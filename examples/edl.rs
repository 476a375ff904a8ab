//! Runs an edit script over files.
//!
//! ```text
//! cargo run -q --example edl -- [--text] [--write] SCRIPT FILE...
//! ```
//!
//! The files go into a workspace under the names given, and the script (`-` is standard input) runs
//! there. Prints `{"files": {name: text}, "failures": [...], "warnings": [...]}`, or with `--text` the
//! report that a model would get. Nothing on disk changes unless `--write` is given: then all files that
//! the script changed or made are written, or none of them if any failed or if two names are of one file.
//! Only files in the working folder are written: no path with `..`, no absolute one, and none over a link.
//! Exits with 1 and one line on standard error if there is nothing to run, or nothing could be written.

use std::{collections::BTreeMap, error::Error, fs, io, path::Path, process::ExitCode};

use serde_json::json;
use threadfold::edl::{Report, Script, Workspace};
use write::write_all;

#[path = "edl/write.rs"]
mod write;

const USAGE: &str = "usage: edl [--text] [--write] SCRIPT FILE...";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("edl: {}", error.to_string().replace('\n', "; "));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let options = Options::read(arguments)?;
    let script = match options.script.as_str() {
        "-" => io::read_to_string(io::stdin())?,
        path => read(path)?,
    };
    let script = Script::parse(&script)?;
    let mut workspace = load(&options.files)?;
    let report = script.run(&mut workspace);
    if options.write && report.is_ok() {
        write_all(Path::new("."), &report, &workspace)?;
    }
    if options.text {
        println!("{report}");
    } else {
        println!("{}", as_json(&options.files, &workspace, &report)?);
    }
    if options.write && !report.is_ok() {
        return Err("nothing was written, because a file failed".into());
    }
    Ok(())
}

/// What the command line asks for.
struct Options {
    text: bool,
    write: bool,
    script: String,
    files: Vec<String>,
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (flags, names): (Vec<_>, Vec<_>) = arguments.partition(|it| it.starts_with("--"));
        if let Some(flag) = flags.iter().find(|it| !matches!(it.as_str(), "--text" | "--write")) {
            return Err(format!("unknown option {flag}; {USAGE}"));
        }
        let has = |name: &str| flags.iter().any(|flag| flag == name);
        let (text, write) = (has("--text"), has("--write"));
        let mut names = names.into_iter();
        let script = names.next().ok_or_else(|| format!("no script; {USAGE}"))?;
        Ok(Self { text, write, script, files: names.collect() })
    }
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

fn load(names: &[String]) -> Result<Workspace, Box<dyn Error>> {
    let mut workspace = Workspace::new();
    for name in names {
        if workspace.insert(name, read(name)?)?.is_some() {
            return Err(format!("{name} is named twice").into());
        }
    }
    Ok(workspace)
}

/// The files under the names that were given, and new ones under theirs.
fn as_json(
    names: &[String],
    workspace: &Workspace,
    report: &Report,
) -> Result<String, serde_json::Error> {
    let given = names.iter().map(|name| (name.as_str(), workspace.text(name)));
    let created = report.changes.iter().filter(|change| change.created);
    let created = created.map(|it| (it.path.as_str(), workspace.text(it.path.as_str())));
    let files: BTreeMap<_, _> = given.chain(created).collect();
    serde_json::to_string_pretty(&json!({
        "files": files,
        "failures": report.failures,
        "warnings": report.warnings,
    }))
}
