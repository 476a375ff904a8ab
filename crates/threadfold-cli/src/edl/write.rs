//! Writing the files that a script changed, only within one folder.
//!
//! All checks come before the first change: every path stays in the folder without `..`, no link is
//! followed or replaced, and files that the script creates do not exist. Then folders are created,
//! and each text is written to a new file and renamed. A failure undoes all steps, including new
//! folders. Another process that replaces folders by links at the same time is not detected; run
//! such scripts in a folder of their own.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Component, Path, PathBuf},
};

use threadfold_edl::{Report, Workspace};

/// A change that passed the checks.
struct Checked<'a> {
    target: PathBuf,
    text: &'a str,
    before: Option<&'a str>,
}

/// The steps so far, to be undone after a failure.
#[derive(Default)]
struct Begun<'a> {
    /// New folders, each after its parent.
    folders: Vec<PathBuf>,
    /// Texts in new files that are not renamed yet, in order.
    staged: Vec<(PathBuf, &'a Checked<'a>)>,
    /// The number of renamed files.
    moved: usize,
}

/// Writes every changed file under this folder, or none.
///
/// # Errors
///
/// The path that cannot be written, and why.
pub fn write_all(folder: &Path, report: &Report, workspace: &Workspace) -> Result<(), String> {
    let root = fs::canonicalize(folder);
    let root = root.map_err(|error| nothing_written(&folder.display().to_string(), error))?;
    let mut changes = Vec::new();
    let mut targets = BTreeSet::new();
    for change in &report.changes {
        let path = change.path.as_str();
        let before = change.before.as_deref();
        let target = check(&root, Path::new(path), before.is_some());
        let target = target.map_err(|error| nothing_written(path, error))?;
        // On a file system that ignores case, two names may belong to one file.
        if !targets.insert(fs::canonicalize(&target).unwrap_or_else(|_| target.clone())) {
            return Err(nothing_written(path, io::Error::other("it was edited under two names")));
        }
        let text = workspace.text(path).ok_or_else(|| format!("{path} is not in the workspace"))?;
        changes.push(Checked { target, text, before });
    }
    let mut begun = Begun::default();
    let written = changes.iter().enumerate().try_for_each(|(index, change)| {
        begun.stage(&root, change, index).map_err(|error| (&change.target, error))
    });
    let written = written.and_then(|()| begun.move_all());
    written.map_err(|(target, error)| begun.undo(&format!("{}: {error}", target.display())))
}

fn nothing_written(path: &str, error: io::Error) -> String {
    format!("nothing was written: {path}: {error}")
}

/// Returns the path of a workspace file on disk, if it may be written.
fn check(root: &Path, path: &Path, is_there: bool) -> io::Result<PathBuf> {
    let stays = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !stays {
        return Err(io::Error::other("it leads out of the working folder"));
    }
    let target = root.join(path);
    let mut above: Vec<&Path> =
        target.ancestors().skip(1).take_while(|folder| *folder != root).collect();
    above.reverse();
    for folder in above {
        match fs::symlink_metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::other(format!("{} is not a folder", folder.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    match fs::symlink_metadata(&target) {
        Ok(_) if !is_there => Err(io::Error::other("the script creates this file, but it exists")),
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        Ok(_) => Ok(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_there => Ok(target),
        Err(error) => Err(error),
    }
}

impl<'a> Begun<'a> {
    /// Writes a text to a new file in the folder of its target.
    fn stage(&mut self, root: &Path, change: &'a Checked<'a>, index: usize) -> io::Result<()> {
        let folder = change.target.parent().unwrap_or(root);
        self.make_folder(folder)?;
        let beside = folder.join(format!(".edl-{}-{index}", std::process::id()));
        // `create_new` follows no link and overwrites no file.
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        self.staged.push((beside.clone(), change));
        file.write_all(change.text.as_bytes())?;
        if change.before.is_some() {
            fs::set_permissions(&beside, fs::metadata(&change.target)?.permissions())?;
        }
        Ok(())
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        let mut missing: Vec<&Path> = missing.collect();
        missing.reverse();
        for folder in missing {
            fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    fn move_all(&mut self) -> Result<(), (&'a PathBuf, io::Error)> {
        for (beside, change) in &self.staged {
            fs::rename(beside, &change.target).map_err(|error| (&change.target, error))?;
            self.moved += 1;
        }
        Ok(())
    }

    /// Restores the changed files and removes the new ones, and returns the message for both.
    fn undo(&self, error: &str) -> String {
        let (moved, beside) = self.staged.split_at(self.moved);
        let undone = moved.iter().try_for_each(|(_, change)| match change.before {
            Some(text) => fs::write(&change.target, text),
            None => fs::remove_file(&change.target),
        });
        for (beside, _) in beside {
            // If this fails, a hidden file stays; the first error is more important.
            let _ = fs::remove_file(beside);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        match undone {
            Ok(()) => format!("nothing was written: {error}"),
            Err(undo) => format!("{error}; files written before could not be put back: {undo}"),
        }
    }
}
