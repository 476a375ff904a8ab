//! `edl`: runs an edit script over files.
//!
//! The script runs on a workspace that holds the files under the given names. With `--write` all
//! files that the script changed or created are written, or none if any edit failed or two names
//! belong to one file. Only files in the working folder are written: no path with `..`, no absolute
//! path, and nothing through a link.

use std::{collections::BTreeMap, io, path::Path};

use serde_json::json;
use threadfold_edl::{Report, Script, Workspace};
use write::write_all;

use crate::{
    args::EdlOptions,
    error::{Ended, Failure},
    files,
    out::say,
};

pub mod write;

pub(crate) fn run(options: &EdlOptions) -> Result<Ended, Failure> {
    let script = match options.script.as_str() {
        "-" => files::without_mark(io::read_to_string(io::stdin())?),
        path => files::text(Path::new(path))?,
    };
    let script = Script::parse(&script)?;
    let mut workspace = load(&options.files)?;
    let report = script.run(&mut workspace);
    if options.write && report.is_ok() {
        write_all(Path::new("."), &report, &workspace)?;
    }
    if options.text {
        say!("{report}");
    } else {
        say!("{}", as_json(&options.files, &workspace, &report)?);
    }
    if options.write && !report.is_ok() {
        return Err("nothing was written, because an edit failed".into());
    }
    Ok(Ended::Done)
}

fn load(names: &[String]) -> Result<Workspace, Failure> {
    let mut workspace = Workspace::new();
    for name in names {
        if workspace.insert(name, files::text_with_mark(Path::new(name))?)?.is_some() {
            return Err(format!("{name} is named twice").into());
        }
    }
    Ok(workspace)
}

/// Returns the files under the given names, and new ones under theirs.
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
