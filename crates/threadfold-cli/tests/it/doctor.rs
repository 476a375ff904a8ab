//! `threadfold doctor`: what it finds, and that it shows no key.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Output},
    thread,
};

use serde_json::json;
use threadfold_testing::{
    rulebook::{Reply, ReplyBody, serve},
    shared::Folder,
};

use crate::proxy::{MESSAGES, Served, agent::Agent, options, run, upstream::Upstream};

const THREAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/coding-thread.json");

/// Examines a proxy on a free port, unless the arguments name one, whose servers are all at this
/// address.
fn doctor(folder: &Folder, server: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
    command.args(["doctor", "--anthropic", server, "--openai", server]);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.args(["--gemini", server, "--folder"]).arg(folder.join("state")).args(arguments);
    for name in
        ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY"]
    {
        command.env_remove(name);
    }
    command.env("ANTHROPIC_API_KEY", "sk-ant-hunter2").env("OPENAI_API_KEY", "sk-ant-hunter3");
    command.output().unwrap()
}

/// The points, with the blanks of their lines made one.
fn points(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn keys_are_named_and_never_shown_and_nothing_is_created() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let output = doctor(&folder, &server, &[]);
    let said = points(&output);
    for part in [
        "127.0.0.1:0 is free",
        "does not exist yet; the proxy creates it",
        "Anthropic: ANTHROPIC_API_KEY is set",
        "OpenAI: OPENAI_API_KEY is set, but it has the form of a key of Anthropic",
        "Google: none in the environment",
        &format!("OpenAI: {server}/ can be reached"),
        "no refusal stated one",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(output.status.success());
    let json = doctor(&folder, &server, &["--json"]);
    assert!(serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap().is_array());
    for output in [output, json] {
        let all = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8(all).unwrap().contains("hunter"));
    }
    assert!(!folder.join("state").exists());
}

#[test]
fn what_keeps_a_proxy_from_running_is_a_trouble() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    thread::spawn(move || taken.incoming().for_each(drop));
    let output = doctor(&folder, "ftp://nowhere", &["--listen", &address]);
    let said = points(&output);
    assert!(said.contains("is taken by another program"), "{said}");
    assert!(said.contains("begins with http:// or https://"), "{said}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("a proxy cannot run: 4 troubles"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_request_is_judged_as_the_proxy_would() {
    let folder = Folder::new();
    let of = |window: &str| {
        points(&doctor(&folder, "http://127.0.0.1:1", &["--window", window, THREAD]))
    };
    let small = of("32768");
    assert!(
        small.contains("--window states 32,768") && small.contains("32,768 are used"),
        "{small}"
    );
    assert!(small.contains("compacted by ladder to at most about"), "{small}");
    assert!(small.contains("cannot be reached"), "{small}");
    let arguments = ["--window", "32768", "--shadow", THREAD];
    let shadow = points(&doctor(&folder, "http://127.0.0.1:1", &arguments));
    assert!(shadow.contains("sent as it came, with a line"), "{shadow}");
    let large = of("200000");
    assert!(large.contains("sent as it came; compacted from 0.8 of the window on"), "{large}");
}

#[test]
fn a_request_that_no_server_of_the_proxy_understands_is_not_judged() {
    let folder = Folder::new();
    let body = json!({"modelId": "m", "system": [{"text": "be brief"}],
        "messages": [{"role": "user", "content": [{"text": "hi"}]}]});
    let file = folder.join("body.json");
    fs::write(&file, body.to_string()).unwrap();
    let points = points(&doctor(&folder, "http://127.0.0.1:1", &[file.to_str().unwrap()]));
    assert!(points.contains("a proxy does not serve bedrock-converse"), "{points}");
}

#[test]
fn a_proxy_that_runs_is_recognised_and_so_is_a_view_of_it() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(4_000).await);
        let state = Folder::new();
        fs::create_dir_all(folder.join("state")).unwrap();
        let proxy = Served::in_folder(options(&upstream, Some(4_000)), &folder.join("state")).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, false);
        for number in 0..20 {
            agent.turn(number).await.unwrap();
        }
        let file = state.join("thread.json");
        fs::write(&file, agent.body()).unwrap();
        let address = proxy.url().replace("http://", "");
        let arguments = ["--window", "4000", "--listen", &address, file.to_str().unwrap()];
        let output = doctor(&folder, &upstream.url(), &arguments);
        let said = points(&output);
        for part in
            ["a proxy of threadfold listens", "holds 1 compacted thread", "the view of thread-"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(output.status.success());
        let rows = rusqlite::Connection::open(folder.join("state/threads.db")).unwrap();
        rows.execute("UPDATE proxy_views SET messages = '['", []).unwrap();
        let said = points(&doctor(&folder, &upstream.url(), &arguments));
        assert!(said.contains("a view of its thread is not read: it is damaged"), "{said}");
    });
}

#[test]
fn the_window_that_a_local_server_states_is_compared() {
    let (folder, listener) = (Folder::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        serve(&listener, |_, call| {
            let models = json!({"data": [{"id": "own", "max_model_len": 8192}]});
            let status = if call.path == "/v1/models" { 200 } else { 404 };
            Reply { status, headers: Vec::new(), body: ReplyBody::Json(models) }
        })
    });
    let file = folder.join("thread.json");
    let body = json!({"model": "own", "messages": [{"role": "user", "content": "Hi."}]});
    fs::write(&file, body.to_string()).unwrap();
    let said = points(&doctor(&folder, &server, &[file.to_str().unwrap()]));
    assert!(said.contains("own, the server states 8,192, none is known"), "{said}");
    assert!(said.contains("name the server's by --window 8192"), "{said}");
}
