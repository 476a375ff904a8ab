//! Processes that open a new database at the same time and write to it.

use std::{env, fs, path::Path, sync::Barrier, thread};

use crate::support::{CHILD, Folder, append, child, open, said, texts};

const PROCESSES: usize = 3;

#[test]
fn processes_that_start_at_once_share_a_new_database() {
    if let Ok(input) = env::var(CHILD) {
        let (name, folder) = input.split_once(' ').unwrap();
        return start(name, Path::new(folder));
    }
    for _ in 0..15 {
        let folder = Folder::new();
        let names: Vec<String> = (0..PROCESSES).map(|index| format!("process{index}")).collect();
        let test = "processes::processes_that_start_at_once_share_a_new_database";
        let start = |name: &String| child(test, &format!("{name} {}", folder.display()));
        let children: Vec<_> = names.iter().map(start).collect();
        while fs::read_dir(&*folder).unwrap().count() < PROCESSES {
            thread::yield_now();
        }
        fs::write(folder.join("go"), "").unwrap();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        let store = open(&folder.join("new"));
        for name in &names {
            assert_eq!(texts(&store, name), ["0", "1", "2", "3", "4"]);
        }
    }
}

/// Runs a child process: it reports that it is ready, waits for the others, opens the database and
/// writes.
fn start(name: &str, folder: &Path) {
    fs::write(folder.join(name), "").unwrap();
    while !folder.join("go").exists() {
        thread::yield_now();
    }
    let store = open(&folder.join("new"));
    for seq in 0..5 {
        append(&store, name, &[said(seq, seq.to_string())]).unwrap();
    }
}

#[test]
fn stores_that_open_at_once_in_one_process_share_a_new_database() {
    for _ in 0..5 {
        let (folder, all) = (Folder::new(), Barrier::new(8));
        thread::scope(|scope| {
            for index in 0..8 {
                let (folder, all) = (&folder, &all);
                scope.spawn(move || {
                    all.wait();
                    let store = open(folder);
                    append(&store, &format!("t{index}"), &[said(0, index.to_string())]).unwrap();
                });
            }
        });
        let store = open(&folder);
        for index in 0..8 {
            assert_eq!(texts(&store, &format!("t{index}")), [index.to_string()]);
        }
    }
}
