//! The MCP server, asked by the protocol's own client over the pipes of a process.

use std::{fs, path::Path, process::Stdio};

use rmcp::{RoleClient, ServiceExt, model::CallToolRequestParams, service::RunningService};
use serde_json::{Value, json};
use threadfold::{
    EventLog, Message, Plan,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event},
    message::{CompactionReason, Timestamp},
};
use tokio::process::{Child, Command};

use crate::{
    folder::Folder,
    proxy::{MESSAGES, Served, agent::Agent, options, run, upstream::Upstream},
};

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
        (text, result.is_error == Some(true))
    }
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

        let (recalled, _) = client.call("recall", json!({"thread": thread, "message": 0})).await;
        assert!(recalled.contains("The port of two is 8443."), "{recalled}");
        let (found, _) = client.call("search", json!({"query": "port 8443"})).await;
        assert!(found.contains("port of one") && found.contains("port of two"), "{found}");
        let only = json!({"query": "port 8443", "thread": thread});
        let (found, _) = client.call("search", only).await;
        assert!(!found.contains("port of one") && found.contains("port of two"), "{found}");
        let (audit, _) = client.call("audit", json!({"thread": thread})).await;
        assert!(audit.contains("overall") && audit.contains("compaction 0 by"), "{audit}");

        for (tool, input, words) in [
            ("recall", json!({}), "name a thread"),
            ("recall", json!({"thread": "nobody"}), "there is no thread \"nobody\""),
            ("recall", json!({"thread": 7}), "thread must be an id"),
            ("recall", json!({"thread": thread, "message": 1_000_000}), "not among those"),
            ("search", json!({}), "needs a query"),
            ("delete", json!({}), "there is no tool"),
        ] {
            let (text, is_error) = client.call(tool, input).await;
            assert!(is_error && text.contains(words), "{tool}: {text}");
        }
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
