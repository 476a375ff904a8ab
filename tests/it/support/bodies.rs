//! Bodies from outside, in the folder that `THREADFOLD_BODIES` names.

use std::{env, fs, path::PathBuf};

/// Returns the bodies of a dialect, sorted by name. Without a folder there are none, and a line
/// says so.
pub(crate) fn of(dialect: &str) -> Vec<(String, Vec<u8>)> {
    let Some(folder) = env::var_os("THREADFOLD_BODIES").map(PathBuf::from) else {
        println!("skipped: THREADFOLD_BODIES names no folder");
        return Vec::new();
    };
    let Ok(files) = fs::read_dir(folder.join(dialect)) else { return Vec::new() };
    let mut bodies: Vec<(String, Vec<u8>)> = files
        .map(|file| {
            let file = file.unwrap();
            (file.file_name().to_string_lossy().into_owned(), fs::read(file.path()).unwrap())
        })
        .collect();
    bodies.sort();
    bodies
}
