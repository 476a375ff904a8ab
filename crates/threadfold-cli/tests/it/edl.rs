//! What an edit script may write: only in its folder, all of it or nothing.

use std::{fs, path::Path};

use threadfold_edl::{Script, Workspace};
use threadfold_testing::shared::Folder;

use threadfold_cli::edl::write;

/// Everything in a folder, each with its text if it is a file.
fn all_in(folder: &Path) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let link = fs::symlink_metadata(&path).unwrap().is_symlink();
        all.push((path.display().to_string(), fs::read_to_string(&path).ok()));
        if path.is_dir() && !link {
            all.extend(all_in(&path));
        }
    }
    all.sort();
    all
}

/// Runs a script over these files of a folder, and writes what it did there.
fn edit(folder: &Path, files: &[&str], script: &str) -> Result<(), String> {
    let mut workspace = Workspace::new();
    for name in files {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        workspace.insert(name, text).unwrap();
    }
    let report = Script::parse(script).unwrap().run(&mut workspace);
    assert!(report.is_ok(), "{report}");
    write::write_all(folder, &report, &workspace)
}

fn made(path: &str) -> String {
    format!("newfile `{path}`\nselect bof\ninsert_before \"new\"\n")
}

fn changed(path: &str) -> String {
    format!("file `{path}`\nselect bof\ninsert_before \"new\"\n")
}

#[test]
fn a_script_writes_in_its_folder() {
    let folder = Folder::new();
    fs::write(folder.join("a.txt"), "old").unwrap();
    let script = [changed("a.txt"), made("b.txt"), made("c/d/e.txt")].concat();
    edit(&folder, &["a.txt"], &script).unwrap();
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!([text("a.txt"), text("b.txt"), text("c/d/e.txt")], ["newold", "new", "new"]);
    assert_eq!(all_in(&folder).len(), 5);
}

#[test]
fn a_script_that_leads_out_of_its_folder_writes_nothing_and_leaves_nothing() {
    let home = Folder::new();
    let work = home.join("work");
    fs::create_dir(&work).unwrap();
    fs::write(home.join("above.txt"), "old").unwrap();
    let absolute = fs::canonicalize(&*home).unwrap().join("absolute.txt").display().to_string();
    let above = fs::canonicalize(home.join("above.txt")).unwrap().display().to_string();
    let rows: [(&[&str], String); 5] = [
        (&[], made("../x.txt")),
        (&[], made("a/../../x/y.txt")),
        (&[], made(&absolute)),
        (&["../above.txt"], changed("../above.txt")),
        (&[&above], changed(&above)),
    ];
    for (files, script) in rows {
        // A file before it in the same script, in a folder that would be new, is not written either.
        let script = made("new/folder/b.txt") + &script;
        let before = all_in(&home);
        let error = edit(&work, files, &script).unwrap_err();
        assert!(error.starts_with("nothing was written: "), "{error}");
        assert!(error.ends_with("it leads out of the working folder"), "{error}");
        assert_eq!(all_in(&home), before);
    }
}

#[cfg(unix)]
#[test]
fn a_script_crosses_no_link_and_replaces_none() {
    use std::os::unix::fs::symlink;
    let home = Folder::new();
    let (work, elsewhere) = (home.join("work"), home.join("elsewhere"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("a.txt"), "old").unwrap();
    symlink(&elsewhere, work.join("linked")).unwrap();
    symlink(elsewhere.join("a.txt"), work.join("a.txt")).unwrap();
    symlink(elsewhere.join("nothing"), work.join("dangling")).unwrap();
    let rows: [(&[&str], String); 5] = [
        (&[], made("linked/x.txt")),
        (&[], made("linked/x/y.txt")),
        (&["linked/a.txt"], changed("linked/a.txt")),
        (&["a.txt"], changed("a.txt")),
        (&[], made("dangling")),
    ];
    for (files, script) in rows {
        let script = made("new/folder/b.txt") + &script;
        let before = all_in(&home);
        let error = edit(&work, files, &script).unwrap_err();
        assert!(error.starts_with("nothing was written: "), "{error}");
        assert_eq!(all_in(&home), before, "{error}");
    }
}

#[test]
fn what_fails_midway_is_undone_with_its_folders() {
    let folder = Folder::new();
    fs::write(folder.join("a.txt"), "old").unwrap();
    let before = all_in(&folder);
    // `b` is to be a file and a folder, which only shows when it is written.
    let script = [changed("a.txt"), made("b"), made("b/c/d.txt")].concat();
    let error = edit(&folder, &["a.txt"], &script).unwrap_err();
    assert!(error.starts_with("nothing was written: "), "{error}");
    assert_eq!(all_in(&folder), before);
}
