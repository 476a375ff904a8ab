//! Every command, run as a program on a real thread.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::folder::Folder;

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
    let arguments = ["chunked", "--json", "--chunk", "1000", "--store", text(&run), THREAD];
    let first = out(0, &arguments);
    let summary: Value = serde_json::from_str(&first).unwrap();
    assert!(!summary["summary"].as_str().unwrap().is_empty());
    // The stored run is at its end, so it says the same again.
    assert_eq!(out(0, &arguments), first);
    let other = [&arguments[..], &[THREAD]].concat();
    assert!(errors(1, &other).contains("the run of another thread"));
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
        "chunked",
        "edl",
        "report",
        "import",
        "proxy",
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
    assert!(words.contains("no log of Claude Code, Codex or pi"), "{words}");
}

/// A line without its figures and rules.
fn words(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_ascii_digit() && !c.is_whitespace() && !",─".contains(*c))
        .collect()
}

#[test]
fn the_guide_shows_what_the_program_prints() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = Folder::new();
    fs::create_dir_all(folder.join("examples/data")).unwrap();
    fs::copy(THREAD, folder.join("examples/data/coding-thread.json")).unwrap();
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pi-session.jsonl");
    fs::copy(log, folder.join("pi-session.jsonl")).unwrap();
    fs::write(folder.join("notes.md"), "status: open\n").unwrap();
    let script = "file `notes.md`\nselect /status: \\w+/\nreplace \"status: done\"\n";
    fs::write(folder.join("script.edl"), script).unwrap();
    let guide = fs::read_to_string(root.join("docs/guide/command-line.md")).unwrap();
    let (mut commands, mut printed) = (0, Vec::new());
    for block in guide.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let Some(command) = line.strip_prefix("$ ") else {
                let shown = words(line);
                let at = printed.iter().position(|line: &String| *line == shown);
                let at = at.unwrap_or_else(|| panic!("not printed: {line}\n{printed:#?}"));
                printed.drain(..=at);
                continue;
            };
            let Some(command) = command.strip_prefix("threadfold ") else { continue };
            let (command, file) =
                command.split_once(" > ").map_or((command, None), |(a, b)| (a, Some(b)));
            let mut program = Command::new(env!("CARGO_BIN_EXE_threadfold"));
            let output = program.args(command.split(' ')).current_dir(&*folder).output().unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{command}: {errors}");
            let out = String::from_utf8(output.stdout).unwrap();
            printed = errors.lines().map(words).collect();
            match file {
                Some(file) => fs::write(folder.join(file), out).unwrap(),
                None => printed.extend(out.lines().map(words)),
            }
            commands += 1;
        }
    }
    assert!(commands > 9, "{commands}");
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
        assert!(said.contains(":memory: names no file or folder"), "{said}");
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
