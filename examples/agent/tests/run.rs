//! Runs of the program without a key and with a model.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::{self, JoinHandle},
};

/// A temporary folder, removed on drop.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("threadfold-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn agent(temporary: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agent"))
        .args(arguments)
        .env("TMPDIR", temporary)
        .env_remove("ANTHROPIC_API_KEY")
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_run_without_a_key_fixes_the_project_and_compacts_meanwhile() {
    let place = Temporary::new("run");
    let said = said(&agent(&place.0, &[]));
    for part in [
        "because the window is getting full",
        "because you asked for it",
        "messages became",
        "✓ taken back: ",
        "typed text",
        "  -                 let right = self.sum()?;",
        "  +         while let Some(operator) = self.operator(&table) {",
        "  +     assert_eq!(calc(\"2 - 3 - 4\"), \"-5\");",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    assert!(!said.contains('✗'), "something failed\n{said}");
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0, "the project is still there");
}

#[test]
fn a_run_with_a_store_can_be_resumed() {
    let place = Temporary::new("store");
    let store = place.0.join("threads");
    let arguments = ["--store", store.to_str().unwrap()];
    let first = said(&agent(&place.0, &arguments));
    assert!(!first.contains("taken up again"), "{first}");
    let second = said(&agent(&place.0, &arguments));
    // The first run undid its second compaction.
    assert!(second.contains("✓ taken up again: 13 messages, 1 compactions"), "{second}");
    assert!(second.contains("We mended `sum` in src/parser.rs"), "{second}");
}

#[test]
fn invalid_arguments_are_refused_with_one_line() {
    let place = Temporary::new("refused");
    for arguments in [&["--moon"][..], &["--folder", "."], &["--model", "m", "--dialect", "latin"]]
    {
        let output = agent(&place.0, arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("agent: "));
    }
}

/// Answers each connection with the next of these streams, and returns the request bodies.
fn provider(listener: TcpListener, streams: Vec<String>) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let answer = |stream: String| {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut read, mut piece) = (Vec::new(), [0; 4_096]);
            let body = loop {
                let count = socket.read(&mut piece).unwrap();
                assert!(count > 0, "the request ended too early");
                read.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&read).to_lowercase();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if body.len() == length {
                    break body.to_owned();
                }
            };
            let head =
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{stream}", stream.len());
            socket.write_all(answer.as_bytes()).unwrap();
            body
        };
        streams.into_iter().map(answer).collect()
    })
}

/// Returns an answer in the dialect of OpenAI: a text, or a call of `read`.
fn streamed(text: &str, path: Option<&str>) -> String {
    let call = |path| {
        let arguments = serde_json::json!({ "path": path }).to_string();
        serde_json::json!([{"index": 0, "id": "c1", "type": "function",
            "function": {"name": "read", "arguments": arguments}}])
    };
    let reason = if path.is_some() { "tool_calls" } else { "stop" };
    let delta =
        serde_json::json!({"role": "assistant", "content": text, "tool_calls": path.map(call)});
    let choice = serde_json::json!({"index": 0, "delta": delta, "finish_reason": reason});
    format!("data: {}\n\ndata: [DONE]\n\n", serde_json::json!({"id": "1", "choices": [choice]}))
}

#[test]
fn a_run_with_a_model_changes_only_its_folder() {
    let place = Temporary::new("model");
    fs::create_dir(place.0.join("work")).unwrap();
    fs::write(place.0.join("work/a.txt"), "the lamp was lit in 1874").unwrap();
    fs::write(place.0.join("secret.txt"), "nobody may know").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let provider = provider(
        listener,
        vec![
            streamed("I look.", Some("a.txt")),
            streamed("And there.", Some("../secret.txt")),
            streamed("It was lit in 1874.", None),
        ],
    );
    let mut agent = Command::new(env!("CARGO_BIN_EXE_agent"))
        .args(["--dialect", "compatible", "--base-url", &url, "--model", "m", "--window", "32000"])
        .arg("--folder")
        .arg(place.0.join("work"))
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "When was it lit?\n/context\n/undo\n/redo\n/quit\n";
    agent.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let said = said(&agent.wait_with_output().unwrap());
    for part in [
        "• read   a.txt                the lamp was lit in 1874",
        "✗ read   ../secret.txt        ../secret.txt leads out of the folder",
        "It was lit in 1874.",
        "results of read",
        "There is no compaction to take back.",
        "No compaction was taken back.",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let bodies = provider.join().unwrap();
    assert!(bodies[1].contains("the lamp was lit in 1874"));
    assert!(bodies[2].contains("leads out of the folder"));
    assert!(!bodies[2].contains("nobody may know"));
}
