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
//! Exits with 1 and one line on standard error if there is nothing to run, or nothing could be written.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use threadfold::edl::{Report, Script, Workspace};

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
        write_all(&report, &workspace)?;
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
    let warnings: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    serde_json::to_string_pretty(&json!({
        "files": files,
        "failures": report.failures,
        "warnings": warnings,
    }))
}

/// A file that is written beside its place, and then moved there.
struct Staged<'a> {
    target: PathBuf,
    temporary: PathBuf,
    before: Option<&'a str>,
}

/// Writes every file that changed, or none.
fn write_all(report: &Report, workspace: &Workspace) -> Result<(), String> {
    let mut staged: Vec<Staged<'_>> = Vec::new();
    for (index, change) in report.changes.iter().enumerate() {
        let path = change.path.as_str();
        let text = workspace.text(path).unwrap_or_default();
        match stage(path, text, change.before.as_deref(), index) {
            Ok(file) => staged.push(file),
            Err(error) => return Err(undo(&staged, 0, &format!("{path}: {error}"))),
        }
    }
    let mut targets = BTreeSet::new();
    if let Some(file) = staged.iter().find(|file| !targets.insert(&file.target)) {
        let error = format!("{} was edited under two names", file.target.display());
        return Err(undo(&staged, 0, &error));
    }
    for (written, file) in staged.iter().enumerate() {
        if let Err(error) = fs::rename(&file.temporary, &file.target) {
            let error = format!("{}: {error}", file.target.display());
            return Err(undo(&staged, written, &error));
        }
    }
    Ok(())
}

/// Puts back the files that were written, removes the others' texts, and says so.
fn undo(staged: &[Staged<'_>], written: usize, error: &str) -> String {
    let undone = staged.iter().take(written).try_for_each(|file| match file.before {
        Some(text) => fs::write(&file.target, text),
        None => fs::remove_file(&file.target),
    });
    for file in staged.iter().skip(written) {
        // What is left behind is a stray hidden file; the error is what matters.
        let _ = fs::remove_file(&file.temporary);
    }
    match undone {
        Ok(()) => format!("nothing was written: {error}"),
        Err(undo) => format!("{error}; files written before could not be put back: {undo}"),
    }
}

fn stage<'a>(
    path: &str,
    text: &str,
    before: Option<&'a str>,
    index: usize,
) -> io::Result<Staged<'a>> {
    let target = match before {
        // The file itself, not a link to it.
        Some(_) => fs::canonicalize(path)?,
        None if fs::symlink_metadata(path).is_ok() => {
            return Err(io::Error::other("the script makes this file, but it is on disk already"));
        }
        None => PathBuf::from(path),
    };
    let folder = target.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // Two names of one file are told by this, also if the file is new.
    let folder = fs::canonicalize(folder)?;
    let target = target.file_name().map_or_else(|| target.clone(), |name| folder.join(name));
    let temporary = folder.join(format!(".edl-{}-{index}", std::process::id()));
    let staged = Staged { target, temporary, before };
    let mut written = fs::write(&staged.temporary, text);
    if before.is_some() {
        let permissions = fs::metadata(&staged.target).map(|it| it.permissions());
        let set = |it| fs::set_permissions(&staged.temporary, it);
        written = written.and(permissions.and_then(set));
    }
    if let Err(error) = written {
        let _ = fs::remove_file(&staged.temporary);
        return Err(error);
    }
    Ok(staged)
}
