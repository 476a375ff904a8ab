//! Logs as agents leave them behind: the cases in `testdata/imports`.
//!
//! A case is `--- log`, and `--- expect messages` with the role and the texts of each message, and
//! `--- expect report` with parts of the report, repairs among them if there are any; or `--- expect error` with a part of the error.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use threadfold_testing::shared::Folder;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn threadfold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_threadfold")).args(arguments).output().unwrap()
}

/// The role and the texts, calls and results of a message.
fn written(message: &Value) -> String {
    let content = &message["content"];
    let mut words = vec![message["role"].as_str().unwrap().to_owned()];
    words.extend(content.as_str().map(str::to_owned));
    for block in content.as_array().into_iter().flatten() {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        words.push(match text("type") {
            "tool_use" => format!("call {} {}", text("id"), text("name")),
            "tool_result" => format!("result {}", text("tool_use_id")),
            "thinking" => text("thinking").to_owned(),
            _ => text("text").to_owned(),
        });
    }
    words.join(" ")
}

#[test]
fn every_log_gives_the_thread_that_can_be_read() {
    let folder = Folder::new();
    let log = folder.join("log.jsonl");
    for path in files("imports") {
        let name = path.display();
        // A log may hold bytes that are no text; what is expected of it holds none.
        let case = fs::read(&path).unwrap();
        let expected = String::from_utf8_lossy(&case);
        let (_, expected) = expected.split_once("--- expect ").unwrap();
        let lines = &case[..case.len() - expected.len() - "--- expect ".len()];
        fs::write(&log, lines.strip_prefix(b"--- log\n").unwrap()).unwrap();
        let output = threadfold(&["import", "--to", "anthropic", log.to_str().unwrap()]);
        let report = String::from_utf8(output.stderr).unwrap();
        if let Some(error) = expected.strip_prefix("error\n") {
            assert_eq!(output.status.code(), Some(1), "{name}: {report}");
            assert!(report.contains(error.trim()), "{name}: {report}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{name}: {report}");
        let (messages, parts) = expected.split_once("--- expect report\n").unwrap();
        let messages: Vec<&str> = messages.strip_prefix("messages\n").unwrap().lines().collect();
        let body: Value = serde_json::from_slice(&output.stdout).unwrap();
        let messages_found = body["messages"].as_array().unwrap().iter();
        let found: Vec<String> =
            messages_found.map(|message| written(message).replace('\n', "\\n")).collect();
        assert_eq!(found, messages, "{name}: {report}");
        for part in parts.lines() {
            assert!(report.contains(part), "{name}: {part:?} is not in {report}");
        }
        assert_eq!(report.contains("repaired"), parts.contains("repaired"), "{name}: {report}");
    }
}

#[test]
fn other_commands_read_the_logs_of_agents() {
    let folder = Folder::new();
    let log = folder.join("session.json");
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/imports/inspect-a-log.txt");
    let case = fs::read_to_string(case).unwrap();
    let (text, _) = case.split_once("--- expect ").unwrap();
    fs::write(&log, text.strip_prefix("--- log\n").unwrap()).unwrap();
    let log = log.to_str().unwrap();
    for command in
        [&["context", "--json"][..], &["compact", "--keep-size"], &["hindsight", "--json"]]
    {
        let output = threadfold(&[command, &[log]].concat());
        let report = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(1), "{command:?}: {report}");
        assert!(report.contains("a log of inspect, 4 messages"), "{command:?}: {report}");
    }
}
