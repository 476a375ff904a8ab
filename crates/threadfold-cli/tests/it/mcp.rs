//! The MCP server, asked by the protocol's own client over the pipes of a process.

use std::{fs, io::Write as _, path::Path, process::Stdio};

use rmcp::{
    RoleClient, ServiceExt,
    model::CallToolRequestParams,
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
};
use serde_json::{Value, json};
use threadfold::{
    EventLog, Message, Plan,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event},
    message::{CompactionReason, Timestamp, ToolSpec},
};
use threadfold_testing::shared::{Folder, splitmix64};
use tokio::process::{Child, Command};

use crate::proxy::{MESSAGES, Served, agent::Agent, options, run, upstream::Upstream};

const WINDOW: u64 = 4_000;

struct Client {
    service: RunningService<RoleClient, ()>,
    _process: Child,
}

impl Client {
    async fn start(path: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
        command.arg("mcp").arg(path).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pipes = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        Self { service: ().serve(pipes).await.unwrap(), _process: process }
    }

    /// The text of an answer, and whether it is an error.
    async fn call(&self, tool: &'static str, input: Value) -> (String, bool) {
        let input = input.as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool).with_arguments(input);
        let result = self.service.call_tool(call).await.unwrap();
        let text = result.content.iter().filter_map(|block| block.as_text());
        let text: String = text.map(|block| block.text.as_str()).collect();
        let is_error = result.is_error == Some(true);
        (if is_error { text } else { unframed(&text) }, is_error)
    }
}

/// The stored text of an answer, without the lines that mark it as stored.
fn unframed(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap();
    let (begin, rest) = rest.split_once('\n').unwrap();
    let mark = begin.strip_prefix("begin ").unwrap();
    assert!(first.contains(mark) && first.contains("not a request"), "{text}");
    let inner = rest.strip_suffix(&format!("\nend {mark}")).unwrap();
    assert!(!inner.contains(mark), "{text}");
    inner.to_owned()
}

#[test]
fn an_agent_reads_what_the_proxy_took_out_of_its_thread() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        for name in ["one", "two"] {
            let mut agent = Agent::new(&proxy.url(), MESSAGES, false);
            agent.messages.push(threadfold::Message::user(format!("The port of {name} is 8443.")));
            for number in 0..20 {
                agent.turn(number).await.unwrap();
            }
        }
        // The proxy is still at work.
        let client = Client::start(&folder).await;
        let tools = client.service.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["threads", "recall", "search", "audit"]);
        let reads = |tool: &rmcp::model::Tool| tool.annotations.as_ref().unwrap().read_only_hint;
        assert!(tools.iter().all(|tool| reads(tool) == Some(true)));

        let (listed, _) = client.call("threads", json!({})).await;
        assert!(listed.starts_with("2 threads\n"), "{listed}");
        // The latest comes first.
        let line = listed.lines().nth(1).unwrap();
        assert!(line.ends_with("The port of two is 8443."), "{listed}");
        let thread = line.split(':').next().unwrap();

        // The task stays in the thread; what was done first was taken out.
        let (recalled, _) = client.call("recall", json!({"thread": thread, "message": 1})).await;
        assert!(recalled.contains("Go on with part 0."), "{recalled}");
        // The beginning of the id is enough, and models write numbers as text.
        assert!(thread.len() == "thread-01234567".len(), "{thread}");
        let as_text = client.call("recall", json!({"thread": thread, "message": "1"})).await;
        assert_eq!(as_text, (recalled, false));
        let (found, _) = client.call("search", json!({"query": "part 0"})).await;
        assert_eq!(found.matches("Go on with part 0.").count(), 2, "{found}");
        let only = json!({"query": "part 0", "thread": thread});
        let (found, _) = client.call("search", only).await;
        assert_eq!(found.matches("Go on with part 0.").count(), 1, "{found}");
        let (audit, _) = client.call("audit", json!({"thread": thread})).await;
        assert!(audit.contains("overall") && audit.contains("compaction 0 by"), "{audit}");

        for (tool, input, words) in [
            ("recall", json!({}), "name a thread"),
            ("recall", json!({"thread": "nobody"}), "there is no thread \"nobody\""),
            ("recall", json!({"thread": 7}), "thread must be an id"),
            (
                "recall",
                json!({"thread": thread, "message": 1_000_000}),
                "was not removed by a compaction",
            ),
            ("search", json!({}), "needs a query"),
            ("search", json!({"query": "x", "deep": 1}), "\"deep\" is not a field of search"),
            ("threads", json!({"deep": 1}), "\"deep\" is not a field of threads"),
            ("audit", json!({"deep": 1}), "\"deep\" is not a field of audit"),
            ("delete", json!({}), "there is no tool"),
        ] {
            let (text, is_error) = client.call(tool, input).await;
            assert!(is_error && text.contains(words), "{tool}: {text}");
        }
    });
}

#[test]
fn a_compacted_thread_names_the_tool_as_its_agent_does() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(16_000).await);
        let proxy = Served::in_folder(options(&upstream, Some(16_000)), &folder).await;
        let client = Client::start(&folder).await;
        let tools = client.service.list_all_tools().await.unwrap();
        let tool = tools.iter().find(|tool| tool.name == "recall").unwrap();
        let schema = Value::Object((*tool.input_schema).clone());
        let mut agent = Agent::new(&proxy.url(), MESSAGES, false);
        agent.tools.push(ToolSpec::new("mcp__threadfold__recall", "Reads again.", schema));
        for number in 0..60 {
            agent.turn(number).await.unwrap();
        }
        let (_, _, sent) = upstream.seen.last.lock().unwrap().clone();
        let sent = String::from_utf8_lossy(&sent).into_owned();
        assert!(sent.contains("can be read with the tool mcp__threadfold__recall."), "{sent}");
    });
}

/// A log of two messages, of which the first was compacted away.
fn log() -> EventLog {
    let mut log = EventLog::new("notes".parse().unwrap());
    for text in ["The key is in drawer 4711.", "Where is the key?"] {
        log.append(Timestamp(0), Event::MessageAppended(Message::user(text))).unwrap();
    }
    let insert = vec![Insert::Message { message: Message::user("A drawer was named.") }];
    let plan = Plan::from_splices(2, vec![Splice { at: 0..1, insert }]);
    let id = log.next_compaction();
    let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    log.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
    log
}

#[test]
fn the_only_thread_needs_no_name() {
    run(async {
        let folder = Folder::new();
        let mut lines = Vec::new();
        log().write(&mut lines).unwrap();
        let file = folder.join("notes.jsonl");
        fs::write(&file, lines).unwrap();
        // One log, and a folder of logs.
        for path in [file.as_path(), &folder] {
            let client = Client::start(path).await;
            let (text, _) = client.call("recall", json!({})).await;
            assert!(text.contains("drawer 4711"), "{text}");
        }
    });
}

#[test]
fn a_thread_that_cannot_be_read_is_named_and_the_others_are_searched() {
    run(async {
        let folder = Folder::new();
        stored_log(&folder);
        fs::write(folder.join("broken.jsonl"), "no log\n").unwrap();
        let client = Client::start(&folder).await;
        let (text, is_error) = client.call("search", json!({"query": "drawer"})).await;
        assert!(!is_error && text.contains("drawer 4711"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("broken: ")), "{text}");
        let (text, is_error) = client.call("search", json!({"query": "elephant"})).await;
        assert!(!is_error && text.lines().any(|line| line.starts_with("broken: ")), "{text}");
        // As the tool of the library reports it.
        for input in [json!({"offset": "ten"}), json!({"offset": -1})] {
            let listed = client.call("threads", input.clone()).await;
            assert!(listed.0.contains("offset must be a whole number from 0"), "{}", listed.0);
            let mut input = input;
            input["thread"] = "notes".into();
            assert_eq!(listed, client.call("recall", input).await);
        }
        assert!(!client.call("threads", json!({"offset": null})).await.1);
    });
}

/// Writes lines to a server, closes its input, and returns what it wrote.
fn answers(path: &Path, lines: &[u8]) -> Vec<Value> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_threadfold"));
    command.arg("mcp").arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::null()).spawn().unwrap();
    let (mut input, lines) = (process.stdin.take().unwrap(), lines.to_owned());
    let writing = std::thread::spawn(move || input.write_all(&lines).unwrap());
    let output = process.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn stored_log(folder: &Folder) -> std::path::PathBuf {
    let (mut lines, file) = (Vec::new(), folder.join("notes.jsonl"));
    log().write(&mut lines).unwrap();
    fs::write(&file, lines).unwrap();
    file
}

#[test]
fn every_line_gets_its_answer_or_its_error_whatever_came_before() {
    let folder = Folder::new();
    let file = stored_log(&folder);
    let seeds = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"recall","arguments":{"message":0}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"search","arguments":{"query":"drawer"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
    ];
    for seed in 0..20_u64 {
        let mut state = seed;
        let mut random = |below: usize| (splitmix64(&mut state) % below as u64) as usize;
        let mut lines = Vec::new();
        for number in 0..150 {
            let mut line = seeds[random(seeds.len())].as_bytes().to_vec();
            for _ in 0..random(4) {
                if line.is_empty() {
                    break;
                }
                let at = random(line.len());
                match random(4) {
                    0 => line[at] = random(256) as u8,
                    1 => drop(line.remove(at)),
                    2 => line.truncate(at.max(1)),
                    _ => line.insert(at, line[random(line.len())]),
                }
            }
            line.retain(|byte| *byte != b'\n');
            lines.extend_from_slice(&line);
            // A valid request after each of them.
            let ping =
                format!("\n{{\"jsonrpc\":\"2.0\",\"id\":\"ping {number}\",\"method\":\"ping\"}}\n");
            lines.extend_from_slice(ping.as_bytes());
        }
        let answers = answers(&file, &lines);
        for number in 0..150 {
            let expected = json!({"jsonrpc": "2.0", "id": format!("ping {number}"), "result": {}});
            assert!(answers.contains(&expected), "seed {seed}, ping {number}");
        }
    }
}

#[test]
fn a_client_of_the_version_without_a_handshake_is_served() {
    run(async {
        let folder = Folder::new();
        let file = stored_log(&folder);
        let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
        command.arg("mcp").arg(&file).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pipes = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        let versions = vec![rmcp::model::ProtocolVersion::LATEST];
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions: versions };
        let service = ().serve_with_lifecycle(pipes, lifecycle).await.unwrap();
        assert_eq!(service.list_all_tools().await.unwrap().len(), 4);
        let result = service.call_tool(CallToolRequestParams::new("recall")).await.unwrap();
        assert_eq!(result.is_error, None);
    });
}

#[test]
fn a_store_is_only_read() {
    let folder = Folder::new();
    let (empty, writes) = (folder.join("empty.db"), folder.join("threads.db"));
    fs::write(&empty, "").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_threadfold"))
        .arg("mcp")
        .arg(&empty)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && errors.contains("empty.db"), "{errors}");
    assert_eq!(fs::read(&empty).unwrap(), b"");
    drop(threadfold_sqlite::SqliteStore::open(&writes).unwrap());
    let before = fs::read(&writes).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"threads"}}"#;
    let answers = answers(&folder, call.as_bytes());
    let text = answers[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(unframed(text), "0 threads");
    assert_eq!(fs::read(&writes).unwrap(), before);
}

#[test]
fn texts_of_the_caller_are_cut_in_errors() {
    let folder = Folder::new();
    let file = stored_log(&folder);
    let long = "x".repeat(100_000);
    let lines: String = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "recall", "arguments": {"thread": long}}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": long}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": long}),
        json!({"jsonrpc": "2.0", "id": long, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
            "params": {"name": "recall", "arguments": {"from": long, "message": long}}}),
    ]
    .iter()
    .map(|line| format!("{line}\n"))
    .collect();
    let answers = answers(&file, lines.as_bytes());
    assert_eq!(answers.len(), 5);
    for answer in answers {
        assert!(answer.to_string().len() < 1_000, "{}", answer.to_string().len());
    }
}

#[test]
fn what_is_no_store_is_refused_with_what_to_do() {
    let folder = Folder::new();
    fs::write(folder.join("notes.txt"), "Buy milk.").unwrap();
    for (path, words) in [("missing", "name the folder of a proxy"), ("notes.txt", "import")] {
        let path = folder.join(path);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_threadfold"))
            .arg("mcp")
            .arg(&path)
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(words), "{errors}");
        assert!(!folder.join("missing").exists());
    }
}
