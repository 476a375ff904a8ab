//! What the lines of a digest tell of calls: failures of every form, what an answer in JSON says, what
//! the agent changed, and the values that a task needs.

use threadfold::{
    Message, Role,
    message::{Json, ToolResult, ToolUse},
    strategy::{Brief, Digest, Snapshot, View, without_model},
};

/// The summary of a digest of at most this many tokens.
fn told(thread: &[Message], target: u64) -> String {
    let brief = Brief { target: Some(target), ..Brief::default() };
    let view = View::new(Snapshot::new(thread.to_vec()), brief);
    let plan = without_model(&Digest::default(), &view).unwrap().plan;
    let after = view.thread.accept(&plan, &view.brief).unwrap();
    after.iter().flat_map(Message::summaries).map(|it| it.text.to_string()).collect()
}

fn called(id: &str, tool: &str, input: serde_json::Value, result: ToolResult) -> [Message; 2] {
    let call = ToolUse::new(id, tool, Json::from(&input));
    [
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::User, vec![result.into()]),
    ]
}

fn ran(id: &str, command: &str, output: impl Into<threadfold::message::Text>) -> [Message; 2] {
    let input = serde_json::json!({ "command": command });
    called(id, "bash", input, ToolResult::text(id, output))
}

/// Reads that follow the steps of a test, so that these are old.
fn later() -> Vec<Message> {
    let read = |at: usize| {
        let lines: String = (0..40).map(|line| format!("a line {line} of part {at}\n")).collect();
        ran(&format!("later{at}"), &format!("cat notes/part{at}.txt"), lines)
    };
    (0..6).flat_map(read).collect()
}

#[test]
fn a_failure_in_an_object_is_a_failure_and_says_why() {
    let rows = [
        (r#"{"ok":false,"error":"E_LOCKED: item is being picked"}"#, "E_LOCKED: item is being"),
        (r#"{"success":false,"message":"card expired"}"#, "card expired"),
        (r#"{"status":"failed","reason":"limit reached"}"#, "limit reached"),
        (r#"{"errors":["no such order"],"ledger":[1,2,3]}"#, "no such order"),
        (r#"{"error":true,"message":"disk full"}"#, "disk full"),
        (r#"{"exit_code":127,"stderr":"pay: command not found"}"#, "pay: command not found"),
    ];
    let mut thread = vec![Message::user("Refund these orders, and tell which ones failed.")];
    for (at, (result, _)) in rows.iter().enumerate() {
        let (id, input) = (format!("r{at}"), serde_json::json!({"order": format!("RF-{at}")}));
        thread.extend(called(&id, "refund", input, ToolResult::text(id.as_str(), *result)));
    }
    let fine = r#"{"ok":true,"error":0.031,"order":"RF-9","status":"refunded","trace":null}"#;
    let input = serde_json::json!({"order": "RF-9"});
    thread.extend(called("fine", "refund", input, ToolResult::text("fine", fine)));
    thread.extend(later());
    let text = told(&thread, 1_400);
    let (account, failed) = text.split_once("## Failed last").unwrap();
    for (at, (_, why)) in rows.iter().enumerate() {
        let row = format!("- `refund: RF-{at}` → ");
        assert!(account.contains(&format!("{row}failed: {why}")), "{text}");
        // The last four are listed.
        assert!(at < 2 || failed.contains(&format!("{row}{why}")), "{text}");
    }
    assert!(
        account.contains("- `refund: RF-9` → error: 0.031, ok: true, status: refund"),
        "{text}"
    );
    assert!(!failed.contains("RF-9"), "{text}");
}

#[test]
fn the_reason_of_a_long_failure_is_its_last_line() {
    let install: String = (0..30).map(|line| format!("Collecting package {line}\n")).collect();
    let error = |text: String| {
        let mut result = ToolResult::text("i", text);
        result.is_error = true;
        called("i", "bash", serde_json::json!({"command": "make env"}), result)
    };
    for (text, why) in [
        (format!("{install}The environment is broken"), "The environment is broken"),
        ("Exit code 2\nno rule to make it".to_owned(), "Exit code 2 no rule to make it"),
        ("The command `make env` timed out and was killed.".to_owned(), "timed out and was"),
        ("LibMambaError: Problems while solving:\n- a 1.0 needs b".to_owned(), "LibMambaError: "),
    ] {
        let mut thread = vec![Message::user("Make the environment.")];
        thread.extend(error(text));
        thread.extend(later());
        let told = told(&thread, 900);
        assert!(told.contains("→ failed: ") && told.contains(why), "{told}");
    }
}

#[test]
fn what_only_read_is_left_out_before_what_changed_something() {
    let mut thread = vec![Message::user("Mend the parser in src/parse.py.")];
    thread.extend(ran("edit", "sed -i 's/old_name/new_name/' src/parse.py", ""));
    for at in 0..60 {
        let command = format!("grep -n name_{at} src/part{at}.py");
        thread.extend(ran(&format!("g{at}"), &command, format!("{at}: def name_{at}(): pass")));
    }
    thread.extend(ran("move", "mkdir -p src/old && mv src/lex.py src/old && ls src/old", "lex.py"));
    for at in 60..80 {
        let command = format!("grep -rn name_{at} src 2>/dev/null | head -5");
        thread.extend(ran(&format!("g{at}"), &command, format!("{at}: def name_{at}(): pass")));
    }
    let text = told(&thread, 1_800);
    assert!(text.contains("old steps left out)"), "{text}");
    assert!(text.contains("mv src/lex.py src/old"), "{text}");
    assert!(text.contains("sed -i 's/old_name/new_name/' src/parse.py"), "{text}");
}

#[test]
fn a_call_that_is_made_again_with_the_same_outcome_is_one_line() {
    let mut thread = vec![Message::user("Make the tests pass.")];
    for at in 0..4 {
        thread.extend(ran(&format!("e{at}"), &format!("sed -i '{at}d' src/a.py"), ""));
        thread.extend(ran(&format!("t{at}"), "python run.py", "KeyError: 'total'"));
    }
    thread.extend(later());
    let text = told(&thread, 900);
    let line = "- `bash: python run.py` → failed: KeyError: 'total' (4 times)";
    assert_eq!(text.matches("python run.py` → failed").count(), 1, "{text}");
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_script_that_failed_is_mended_by_the_next_one() {
    let mut thread = vec![Message::user("Compare the groups.")];
    let failed = "ValueError: Need at least two groups";
    thread.extend(ran("a", "python -c \"import stats; stats.kruskal(one)\"", failed));
    thread.extend(ran("b", "python -c \"import stats; stats.kruskal(one, two)\"", "p=0.0413"));
    thread.extend(later());
    assert!(!told(&thread, 900).contains("## Failed last"));
    // Another command of a shell is another try.
    let mut thread = vec![Message::user("Make the tests pass.")];
    thread.extend(ran("a", "bash -c 'cargo test'", "error: test failed"));
    thread.extend(ran("b", "bash -c 'ls src'", "lib.rs"));
    thread.extend(later());
    assert!(told(&thread, 900).contains("## Failed last"));
}

#[test]
fn values_with_a_point_or_a_comma_may_be_needed() {
    let mut thread = vec![Message::user("Write the table of the medians of all sites.")];
    for at in 0..12 {
        let log: String =
            (0..12).map(|line| format!("read /data/log_{at}_{line}.bin serial {line}\n")).collect();
        let output = format!("{log}site {at}: the median is {at}299.{at}3, in all {at},250 EUR");
        thread.extend(ran(&format!("m{at}"), &format!("python median.py --site {at}"), output));
    }
    thread.extend(later());
    let text = told(&thread, 1_500);
    let shown = (0..12).filter(|at| text.contains(&format!("{at}299.{at}3")));
    assert!(shown.count() >= 6, "{text}");
}

#[test]
fn what_the_host_says_within_the_thread_is_listed() {
    let mut thread = vec![
        Message::system("You work on a parser. Answer in English."),
        Message::user("```\nparse error\n```"),
    ];
    thread.extend(ran("a", "cat src/parse.py", "def parse(): pass"));
    let mode = "From now on never touch prod.db.\n\nAllowed:\n```\nmake deploy_staging\n```";
    thread.push(Message::system(mode));
    thread.extend(later());
    thread.extend(later());
    let text = told(&thread, 900);
    assert!(text.contains("- system said: From now on never touch prod.db."), "{text}");
    assert!(text.contains("make deploy_staging"), "{text}");
    assert!(!text.contains("You work on a parser."), "{text}");
}
