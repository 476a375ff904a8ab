//! Every command, run as a program on a real thread.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use threadfold_testing::shared::Folder;

use crate::writer::model;

const THREAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/coding-thread.json");

fn threadfold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_threadfold")).args(arguments).output().unwrap()
}

/// What the program wrote to standard output; it ended with this code.
fn out(code: i32, arguments: &[&str]) -> String {
    let output = threadfold(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn errors(code: i32, arguments: &[&str]) -> String {
    let output = threadfold(arguments);
    assert_eq!(output.status.code(), Some(code));
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn compact_writes_a_smaller_body_of_any_dialect() {
    let smaller = out(0, &["compact", "--target", "2000", THREAD]);
    let before: Value = serde_json::from_str(&fs::read_to_string(THREAD).unwrap()).unwrap();
    let after: Value = serde_json::from_str(&smaller).unwrap();
    let count = |body: &Value| body["messages"].as_array().map_or(0, Vec::len);
    assert!(count(&after) > 0 && after.to_string().len() < before.to_string().len() / 2);
    let other = out(0, &["compact", "--keep-size", "--to", "gemini", THREAD]);
    let other: Value = serde_json::from_str(&other).unwrap();
    assert!(other["contents"].is_array());
}

#[test]
fn a_file_that_was_compacted_is_continued_by_the_next_compaction() {
    let folder = Folder::new();
    let (whole, half) = (folder.join("whole.json"), folder.join("half.json"));
    let step = |number: usize| {
        let (id, path) = (format!("call_{number}"), format!("src/step_{number}.rs"));
        let output = format!("fn step_{number}() {{}}\n").repeat(60);
        json!([
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "read", "input": {"path": path}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": output}]},
        ])
    };
    let add = |body: &mut Value, steps: std::ops::Range<usize>| {
        let messages = body["messages"].as_array_mut().unwrap();
        messages.extend(steps.flat_map(|number| step(number).as_array().unwrap().clone()));
    };
    let task = json!([{"role": "user", "content": "Mend the steps, but leave src/lib.rs."}]);
    let mut body = json!({"model": "claude-x", "max_tokens": 9, "messages": task});
    for round in 0..3 {
        add(&mut body, round * 8..round * 8 + 8);
        fs::write(&whole, body.to_string()).unwrap();
        out(0, &["compact", "--target", "1500", text(&whole), "-o", text(&half)]);
        body = serde_json::from_str(&fs::read_to_string(&half).unwrap()).unwrap();
    }
    let written = body.to_string();
    assert!(written.contains("Mend the steps, but leave src/lib.rs."), "{written}");
    assert_eq!(written.matches("<conversation-summary>").count(), 1, "{written}");
    let lost: Vec<_> = (0..24).filter(|n| !written.contains(&format!("step_{n}.rs"))).collect();
    assert!(lost.len() <= 2, "{lost:?}: {written}");
}

#[test]
fn a_thread_that_cannot_shrink_is_written_as_it_was_with_code_3() {
    let folder = Folder::new();
    let file = folder.join("short.json");
    fs::write(&file, r#"[{"role":"user","content":"Hi."}]"#).unwrap();
    assert_eq!(
        out(3, &["compact", text(&file)]),
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi.\"}]}\n"
    );
}

#[test]
fn errors_name_the_file_and_leave_standard_output_empty() {
    let folder = Folder::new();
    let file = folder.join("broken.json");
    fs::write(&file, "{").unwrap();
    let file = text(&file);
    let rows: [(&[&str], i32, &str); 4] = [
        (&["compact", "missing.json"], 1, "threadfold: missing.json: "),
        (&["compact", file], 1, "broken.json: not JSON"),
        (&["compact", "--strategy", "magic", THREAD], 1, "magic"),
        (&["compact", "--to", "cobol", THREAD], 2, "there are anthropic"),
    ];
    for (arguments, code, expected) in rows {
        let output = threadfold(arguments);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(code), true));
        assert!(words.contains(expected), "{words}");
    }
}

#[test]
fn strategies_and_chunked_speak_to_machines() {
    let table: Value = serde_json::from_str(&out(0, &["strategies", "--json", THREAD])).unwrap();
    assert!(table["strategies"].as_array().unwrap().len() > 4);
    let folder = Folder::new();
    let run = folder.join("run.json");
    let own = ["chunked", "--json", "--chunk", "1000", "--store", text(&run), THREAD];
    let arguments = [&own[..], &model()].concat();
    let first = out(0, &arguments);
    let summary: Value = serde_json::from_str(&first).unwrap();
    assert!(!summary["summary"].as_str().unwrap().is_empty());
    // The stored run is at its end, so it says the same again, and needs no model.
    assert_eq!(out(0, &own), first);
    let other = [&arguments[..], &[THREAD]].concat();
    assert!(errors(1, &other).contains("the run of another thread"));
    // The model writes lists of quotes into the file, which are no part of the summary.
    assert!(fs::read_to_string(&run).unwrap().contains("<user_rules>"));
    assert!(!first.contains("user_rules"));
    let plain: Vec<&str> = arguments.into_iter().filter(|it| *it != "--json").collect();
    assert!(!out(0, &plain).contains("user_rules"));
}

#[test]
fn without_a_model_a_strategy_that_needs_one_says_how_to_name_it() {
    for arguments in [&["chunked", THREAD][..], &["compact", "--strategy", "summarize", THREAD]] {
        let said = errors(1, arguments);
        assert!(said.contains("a model") && said.contains("--model"), "{said}");
    }
    let table: Value = serde_json::from_str(&out(0, &["strategies", "--json", THREAD])).unwrap();
    let need_a_model = |table: &Value| -> Vec<String> {
        let rows = table["strategies"].as_array().unwrap().iter();
        let failed = rows.filter(|row| row["failure"].to_string().contains("needs a model"));
        failed.map(|row| row["strategy"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(need_a_model(&table), ["chunked", "rolling", "summarize"]);
    let with = out(0, &[&["strategies", "--json", THREAD][..], &model()].concat());
    assert_eq!(need_a_model(&serde_json::from_str(&with).unwrap()), Vec::<String>::new());
}

#[test]
fn hindsight_compares_strategies_with_the_naive_tail() {
    let rows = out(0, &["hindsight", "--json", "--strategy", "digest", THREAD]);
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(rows.len(), 4 * 2, "two lines for each of four targets");
    let kept = |strategy: &str, share: f64| {
        let row = rows.iter().find(|row| row["strategy"] == strategy && row["share"] == share);
        row.unwrap()["kept"].as_f64().unwrap()
    };
    for share in [0.1, 0.2, 0.3, 0.5] {
        assert!(kept("digest", share) >= kept("naive tail", share), "at {share}: {rows:?}");
    }
    let table = out(0, &["hindsight", "--share", "0.3", "--cut", "0.5", THREAD]);
    assert!(table.contains("naive tail") && table.contains("gone most often"), "{table}");
    assert!(table.contains("Without a model"), "{table}");
    assert!(table.contains("With a model that picks sentences"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let with = ["hindsight", "--share", "0.3", "--cut", "0.5", THREAD];
    assert!(out(0, &[&with[..], &model()].concat()).contains("With claude-haiku-4-5"));
    assert!(errors(1, &["hindsight", "--strategy", "magic", THREAD]).contains("magic"));
}

#[test]
fn the_page_of_hindsight_shows_every_strategy_and_quotes_what_is_gone() {
    let folder = Folder::new();
    let file = folder.join("<b>page.html");
    let (file, thread) = (file.to_str().unwrap(), folder.join("<b>thread.json"));
    fs::copy(THREAD, &thread).unwrap();
    out(
        0,
        &[
            "hindsight",
            "--share",
            "0.2",
            "--share",
            "0.5",
            "--page",
            file,
            thread.to_str().unwrap(),
        ],
    );
    let page = fs::read_to_string(file).unwrap();
    for part in ["naive tail", "<td>ladder</td>", "<polyline", "<details>", "Without a model"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<b>thread") && !page.contains("<script"), "texts are escaped");
    assert!(errors(2, &["hindsight", "--json", "--page", file, THREAD]).contains("--page"));
}

#[test]
fn help_completions_and_man_page_name_every_command() {
    let help = out(0, &["--help"]);
    let (man, bash) = (out(0, &["man"]), out(0, &["completions", "bash"]));
    for command in [
        "compact",
        "audit",
        "context",
        "strategies",
        "hindsight",
        "chunked",
        "edl",
        "report",
        "import",
        "proxy",
        "doctor",
        "status",
        "watch",
        "mcp",
    ] {
        for text in [&help, &man, &bash] {
            assert!(text.contains(command), "{command}");
        }
    }
    assert!(errors(2, &[]).contains("Usage: threadfold"));
}

#[test]
fn names_from_a_thread_command_no_terminal_and_no_window_is_empty() {
    let folder = Folder::new();
    let file = folder.join("escapes.json");
    let tool =
        json!({"name": "re\u{1b}[31md", "description": "", "input_schema": {"type": "object"}});
    let messages = json!([{"role": "user", "content": "hi"}]);
    let body = json!({"model": "m", "max_tokens": 9, "tools": [tool], "messages": messages});
    fs::write(&file, body.to_string()).unwrap();
    let shown = out(0, &["context", text(&file)]);
    assert!(shown.contains("31md") && !shown.contains("re\u{1b}"), "{shown:?}");
    assert!(errors(2, &["context", "--window", "0", text(&file)]).contains("--window"));
}

#[test]
fn audit_tells_what_a_compaction_lost() {
    let folder = Folder::new();
    let file = folder.join("after.json");
    out(0, &["compact", "--target", "2000", "--output", text(&file), THREAD]);
    let audits: Value =
        serde_json::from_str(&out(0, &["audit", "--json", THREAD, text(&file)])).unwrap();
    let overall = &audits[0]["retention"]["overall"];
    assert!(overall["facts"].as_u64() > overall["kept"].as_u64());
    // The summary only repeats what the thread before states.
    assert_eq!(audits[0]["retention"]["invented"], serde_json::Value::Null);
    assert!(out(0, &["audit", THREAD, text(&file)]).contains("lost"));
    assert!(errors(1, &["audit", THREAD]).contains("two request bodies"));
    let page = folder.join("audit.html");
    out(0, &["audit", "--html", text(&page), THREAD, text(&file)]);
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("<html") && page.contains("src/"), "{page}");
}

#[test]
fn context_adds_up() {
    let whole: Value = serde_json::from_str(&out(0, &["context", "--json", THREAD])).unwrap();
    let parts = whole["parts"].as_array().unwrap().iter();
    let sum: u64 = parts.map(|part| part["tokens"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), whole["tokens"].as_u64());
    assert_eq!(whole["messages"].as_array().unwrap().len(), 10);
}

/// The lines of an import's report: how many are the thread, how many there are, and the others.
fn accounted(report: &str) -> (u64, u64, u64) {
    let number = |word: &str| word.replace(',', "").parse::<u64>().unwrap();
    let head: Vec<&str> = report.lines().next().unwrap().split(' ').collect();
    let of = head.iter().position(|word| *word == "of").unwrap();
    let others = report.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let others = others.filter_map(|word| word.parse::<u64>().ok()).sum();
    (number(head[of - 1]), number(head[of + 1]), others)
}

#[test]
fn every_line_of_an_agents_log_is_accounted_for() {
    let mut logs =
        vec![concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pi-session.jsonl").to_owned()];
    // Logs of more agents, where there are some.
    if let Ok(folder) = std::env::var("THREADFOLD_TRANSCRIPTS") {
        for name in ["claude-code-session.jsonl", "codex-rollout.jsonl"] {
            logs.push(format!("{folder}/raw/{name}"));
        }
    }
    for log in logs.iter().filter(|log| Path::new(log).exists()) {
        let (carried, all, others) = accounted(&errors(0, &["import", log]));
        assert_eq!((carried > 0, carried + others), (true, all), "{log}");
        for to in ["anthropic", "openai-chat", "openai-responses"] {
            let folder = Folder::new();
            let file = folder.join("body.json");
            out(0, &["import", "--to", to, "--output", text(&file), log]);
            // What was imported is a thread like any other.
            let context: Value =
                serde_json::from_str(&out(0, &["context", "--json", text(&file)])).unwrap();
            assert!(context["tokens"].as_u64().unwrap() > 50, "{log} to {to}");
        }
    }
}

#[test]
fn an_imported_log_of_pi_is_the_branch_that_it_ended_on() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pi-session.jsonl");
    let body: Value =
        serde_json::from_str(&out(0, &["import", "--to", "openai-chat", log])).unwrap();
    let texts = body["messages"].to_string();
    assert!(texts.contains("Earlier the parser was read.") && texts.contains("call_2"), "{texts}");
    assert!(!texts.contains("Read the parser.") && !texts.contains("Never mind."), "{texts}");
}

#[test]
fn a_file_that_is_no_log_is_refused_with_what_to_do() {
    let words = errors(1, &["import", THREAD]);
    assert!(words.contains("a request body; `compact`"), "{words}");
}

#[test]
fn a_byte_order_mark_is_skipped_wherever_text_is_read() {
    let folder = Folder::new();
    let marked = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, [b"\xef\xbb\xbf", bytes].concat()).unwrap();
        path
    };
    let body = marked("thread.json", &fs::read(THREAD).unwrap());
    let plain = out(0, &["compact", "--target", "2000", THREAD]);
    assert_eq!(out(0, &["compact", "--target", "2000", text(&body)]), plain);
    let input = fs::File::open(&body).unwrap();
    let piped = Command::new(env!("CARGO_BIN_EXE_threadfold"))
        .args(["compact", "--target", "2000", "-"])
        .stdin(input)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), plain);

    let log = folder.join("log.jsonl");
    let session =
        marked("session.jsonl", br#"{"type":"user","message":{"role":"user","content":"Hi."}}"#);
    let agent = ["import", "--agent", "claude-code", "-o", text(&log), text(&session)];
    assert!(errors(0, &agent).contains("1 of 1 lines are the thread"));
    let log = marked("marked.jsonl", &fs::read(&log).unwrap());
    let page = folder.join("page.html");
    out(0, &["report", "-o", text(&page), text(&log)]);

    let script = marked("script.edl", b"file a.txt\nselect bof-eof\nreplace \"new\"\n");
    let edited = marked("a.txt", b"old");
    let run = Command::new(env!("CARGO_BIN_EXE_threadfold"))
        .args(["edl", "--write", text(&script), "a.txt"])
        .current_dir(&*folder)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    assert_eq!(fs::read_to_string(edited).unwrap(), "new");
}

#[test]
fn a_store_in_memory_is_refused_and_leaves_no_file() {
    let folder = Folder::new();
    for arguments in
        [["chunked", "--store", ":memory:", THREAD], ["proxy", "--folder", ":memory:", "--shadow"]]
    {
        let run = Command::new(env!("CARGO_BIN_EXE_threadfold"))
            .args(arguments)
            .current_dir(&*folder)
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(":memory: is not a file or folder"), "{said}");
        assert_eq!(fs::read_dir(&*folder).unwrap().count(), 0);
    }
}

#[test]
fn a_bare_array_of_any_dialect_is_read() {
    let folder = Folder::new();
    let call = json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "A poem."});
    let part = |text: &str| json!([{"text": text, "function_call": null}]);
    for (array, dialect) in [
        (json!([{"role": "user", "content": "Read a.txt."}, call, output]), "openai-responses"),
        (json!([{"role": "user", "parts": part("Read a.txt.")}]), "gemini"),
        (json!([{"role": "user", "content": "Read a.txt."}]), "openai-chat"),
    ] {
        let path = folder.join("array.json");
        fs::write(&path, array.to_string()).unwrap();
        let said = errors(0, &["compact", "--keep-size", text(&path)]);
        assert!(said.contains(dialect), "{said}");
        let translated = out(0, &["compact", "--keep-size", "--to", "anthropic", text(&path)]);
        assert!(translated.contains("Read a.txt."), "{translated}");
    }
}

#[test]
fn a_window_that_the_system_prompt_fills_is_refused_with_the_reason() {
    let folder = Folder::new();
    let path = folder.join("thread.json");
    let messages = json!([{"role": "user", "content": "Hi."}]);
    let body = json!({"system": "Be brief. ".repeat(900), "messages": messages});
    fs::write(&path, body.to_string()).unwrap();
    let said = errors(1, &["compact", "--window", "2000", text(&path)]);
    assert!(said.contains("so no thread fits a window of 2000"), "{said}");
}

#[cfg(unix)]
#[test]
fn every_output_is_a_new_file_of_its_owner_and_follows_no_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (secret, run, log) = (at("secret"), at("run.json"), at("log.jsonl"));
    fs::write(&secret, "mine").unwrap();
    symlink(&secret, at("link")).unwrap();
    fs::write(at("run.new"), "mine").unwrap();
    out(0, &[&["chunked", "--json", "--store", &run, THREAD][..], &model()].concat());
    out(0, &["compact", "--keep-size", "-o", &at("out.json"), THREAD]);
    fs::write(&log, session_log(&[])).unwrap();
    out(0, &["report", "-o", &at("page.html"), &log]);
    for made in [run, at("out.json"), at("page.html")] {
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o600, "{made}");
    }
    let link = at("link");
    for arguments in [
        ["chunked", "--store", &link, THREAD],
        ["compact", "-o", &link, THREAD],
        ["report", "-o", &link, &log],
    ] {
        assert!(errors(1, &arguments).contains("a symbolic link; links are not followed"));
    }
    assert_eq!(fs::read(&secret).unwrap(), b"mine");
    assert_eq!(fs::read(at("run.new")).unwrap(), b"mine");
    // `/dev/full` refuses every write, as a full disk does.
    if Path::new("/dev/full").exists() {
        assert!(errors(1, &["compact", "-o", "/dev/full", THREAD]).contains("/dev/full: "));
    }
    let hidden = |name: &str| name.starts_with(".threadfold");
    let names = fs::read_dir(&*folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| hidden(name.to_str().unwrap())));
}

#[test]
fn exit_codes_are_those_of_the_help_with_an_output_file_too() {
    let folder = Folder::new();
    let (short, file) = (folder.join("short.json"), folder.join("out.json"));
    fs::write(&short, r#"[{"role":"user","content":"Hi."}]"#).unwrap();
    let missing = folder.join("no/such/folder.json");
    let rows: [(i32, &[&str]); 4] = [
        (0, &["compact", "--target", "2000", "-o", text(&file), THREAD]),
        (3, &["compact", "-o", text(&file), text(&short)]),
        (1, &["compact", "-o", text(&missing), THREAD]),
        (2, &["compact", "-o"]),
    ];
    for (code, arguments) in rows {
        out(code, arguments);
    }
    // A repair, or another dialect, changes the body.
    let broken = folder.join("broken.json");
    fs::write(
        &broken,
        r#"{"messages":[{"role":"user","content":"Hi."},{"role":"assistant","content":""}]}"#,
    )
    .unwrap();
    let repaired = out(0, &["compact", text(&broken)]);
    assert_eq!(repaired, written_of("Hi."));
    let missed = errors(1, &["compact", "--target", "1", text(&broken)]);
    assert!(missed.contains("repaired"), "{missed}");
    out(0, &["compact", "--to", "gemini", text(&short)]);
    // With code 3 the output equals the input.
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, written_of("Hi."));
    let help = out(0, &["--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("0 success; 1 failure") && help.contains("3 nothing to do"), "{help}");
}

/// The body of a thread of one message, as `compact` writes it.
fn written_of(text: &str) -> String {
    format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}\n")
}

/// A log of a session of six messages, with these lines after its third event.
fn session_log(lines: &[&str]) -> String {
    use threadfold::{EventLog, Message, log::Event, message::Timestamp};

    let mut log = EventLog::new("main".parse().unwrap());
    for number in 0..6 {
        let text = format!("Step {number}. {}", "It went on and on. ".repeat(20));
        let message = if number % 2 == 0 { Message::user(text) } else { Message::assistant(text) };
        log.append(Timestamp(number), Event::MessageAppended(message)).unwrap();
    }
    let mut bytes = Vec::new();
    log.write(&mut bytes).unwrap();
    let whole = String::from_utf8(bytes).unwrap();
    let mut all: Vec<&str> = whole.lines().collect();
    all.splice(4..4, lines.iter().copied());
    all.join("\n") + "\n"
}

#[test]
fn every_command_reads_the_log_of_a_session_and_names_its_bad_lines() {
    let folder = Folder::new();
    let (log, file) = (folder.join("main.jsonl"), folder.join("page.html"));
    let lines = [
        r#"{"hunter2":1}"#,
        "hunter2 {",
        r#"{"seq":3,"at":1,"event":{"message_appended":{"hunter2":1}}}"#,
        r#"{"seq":3,"at":1,"event":{"hunter2":1}}"#,
        r#"{"seq":3,"at":1,"event":{"compacted":{"hunter2":1}}}"#,
    ];
    fs::write(&log, session_log(&lines)).unwrap();
    let path = text(&log);
    let body = out(0, &["compact", "--keep-size", path]);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().len(), 6);
    let whole = out(0, &["context", "--json", path]);
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["messages"].as_array().unwrap().len(), 6);
    out(0, &["strategies", "--json", path]);
    out(0, &[&["chunked", "--json", path][..], &model()].concat());
    out(0, &["audit", "--json", path, path]);
    out(3, &["audit", path]);
    out(0, &["report", "-o", text(&file), path]);
    assert!(errors(1, &["import", path]).contains("a log or a store of threadfold; `compact`"));
    let errors = errors(0, &["context", text(&log)]);
    for expected in [
        "line 5 is skipped: not an event",
        "line 6 is skipped: not JSON",
        "line 7 is skipped: not an event",
        "line 8 is skipped: an event of an unknown kind",
        "line 9 is skipped: a compaction that cannot be read",
        "5 of 12 lines are skipped",
    ] {
        assert!(errors.contains(expected), "{errors}");
    }
    assert!(!errors.contains("hunter2"), "{errors}");
}

#[test]
fn every_command_reads_a_store_and_asks_for_the_thread() {
    let folder = Folder::new();
    let file = folder.join("page.html");
    let store = folder.join("logs");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("main.jsonl"), session_log(&[])).unwrap();
    let path = text(&store);
    let chunked = [&["chunked", "--json", path][..], &model()].concat();
    let commands: [&[&str]; 6] = [
        &["compact", "--keep-size", path],
        &["context", path],
        &["strategies", "--json", path],
        &chunked,
        &["audit", "--json", path, path],
        &["report", "-o", text(&file), path],
    ];
    for command in commands {
        out(0, command);
    }
    assert!(errors(1, &["import", path]).contains("a log or a store of threadfold; `compact`"));
    fs::write(store.join("other.jsonl"), session_log(&[]).replace("main", "other")).unwrap();
    for command in commands {
        let without = errors(1, command);
        assert!(without.contains("--thread ID") && without.contains("other"), "{without}");
        out(0, &[command, &["--thread", "other"]].concat());
    }
}
