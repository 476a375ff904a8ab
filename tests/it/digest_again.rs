//! What becomes of the task, the user's words, lines and failures when a digest is compacted again.

use std::sync::Arc;

use threadfold::{
    Message, Role,
    message::{Json, ToolResult, ToolUse},
    retention::{Facts, RetentionPolicy},
    strategy::{Brief, Digest, Snapshot, View, without_model},
    tokens::{ByteEstimate, TokenCounter},
};

/// The thread after a digest of at most this many tokens.
fn digested(thread: &[Message], target: u64) -> Vec<Message> {
    let brief = Brief { target: Some(target), ..Brief::default() };
    let view = View::new(Snapshot::new(thread.to_vec()), brief);
    let plan = without_model(&Digest::default(), &view).unwrap().plan;
    view.thread.accept(&plan, &view.brief).unwrap()
}

fn summary(thread: &[Message]) -> String {
    thread.iter().flat_map(Message::summaries).map(|it| it.text.to_string()).collect()
}

fn ran(id: &str, command: &str, result: ToolResult) -> [Message; 2] {
    let input = Json::from(&serde_json::json!({ "command": command }));
    let call = ToolUse::new(id, "bash", input);
    [
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::User, vec![result.into()]),
    ]
}

/// A command in an answer, and its output as a message of the user.
fn asked_in_text(step: usize, output: String) -> [Message; 2] {
    let asks = format!("I look at it.\n\n```bash\ncat src/part_{step}.rs\n```");
    [Message::assistant(asks), Message::user(output)]
}

/// Six files that an agent reads, each with lines of its own.
fn reads(part: usize) -> impl Iterator<Item = Message> {
    (0..6).flat_map(move |file| {
        let id = format!("c{part}_{file}");
        let line = |at: usize| format!("def f_{part}_{file}_{at}(value): return {}\n", at * 7);
        let text: String = (0..25).map(line).collect();
        ran(&id, &format!("cat src/part_{part}_{file}.py"), ToolResult::text(id.as_str(), text))
    })
}

/// A thread of three texts of the user, with work after each.
fn talk() -> Vec<Message> {
    let texts = [
        "Write a price list for the club in src/list.py.",
        "The fee of the hall is $30 a day.",
        "The fee of the hall is $45 a day from now on.",
    ];
    let turns = texts.into_iter().enumerate();
    turns.flat_map(|(part, text)| [Message::user(text)].into_iter().chain(reads(part))).collect()
}

#[test]
fn the_newest_value_of_the_user_is_the_last_that_is_read_after_every_digest() {
    for target in [700, 900, 1_200, 2_500] {
        let mut thread = talk();
        for part in 3..7 {
            thread = digested(&thread, target);
            let texts: String = thread.iter().flat_map(Message::texts).map(|it| &**it).collect();
            let all = summary(&thread) + &texts;
            let place = |value: &str| all.rfind(value).unwrap_or_else(|| panic!("{value}: {all}"));
            assert!(part > 3 && target < 900 || place("$30") < place("$45"), "{target}: {all}");
            thread.push(Message::user(format!("Next the mail of part {part}, please.")));
            thread.extend(reads(part));
        }
    }
}

#[test]
fn a_short_text_that_stays_before_the_digest_ends_its_list() {
    let newest = "Prices in Swiss francs.";
    let mut thread = talk();
    thread.push(Message::user(newest));
    thread.extend(reads(3));
    let thread = digested(&thread, 1_200);
    let stays = thread.iter().take_while(|message| !message.is_summary());
    assert!(stays.flat_map(Message::texts).any(|text| **text == *newest), "{thread:?}");
    assert!(summary(&thread).ends_with(&format!(" from now on.\n- {newest}")), "{thread:?}");
}

#[test]
fn results_in_user_messages_are_not_the_users_words_whatever_facts_say() {
    let mut thread = vec![Message::user("Mend the parser. Never touch the lexer.")];
    thread.extend((0..40).flat_map(|step| {
        let lines = format!("It folds part {step}, and then part {step} again.\n").repeat(9);
        asked_in_text(step, format!("Output: {lines}"))
    }));
    let policy = RetentionPolicy::default();
    let facts = Arc::new(Facts::of(&thread, &policy));
    let brief = Brief { target: Some(1_500), retention: Some(policy), ..Brief::default() };
    let view = View::new(Snapshot::new(thread).with_facts(facts), brief);
    let plan = without_model(&Digest::default(), &view).unwrap().plan;
    let digest = summary(&view.thread.accept(&plan, &view.brief).unwrap());
    let (_, said) = digest.split_once("The user's words:\n").unwrap_or((&digest, ""));
    assert!(!said.contains("Output") && !said.contains("folds"), "{digest}");
}

#[test]
fn a_task_that_no_longer_stays_as_a_message_is_the_task_of_the_next_digest() {
    let points: String =
        (1..80).map(|at| format!("{at}. Column {at} must be written as text.\n")).collect();
    let task = format!("Mend the export of invoices.\n\n{points}\n```python\nexport(rows)\n```");
    let mut thread = vec![Message::user(task.clone())];
    thread.extend((0..3).flat_map(reads));
    let mut thread = digested(&thread, 3_000);
    assert!(thread[0].texts().any(|text| **text == *task), "it is the newest text of the user");
    for part in 3..6 {
        thread.push(Message::user(format!("Also handle the empty list {part}, please.")));
        thread.extend(reads(part));
        thread = digested(&thread, 2_000);
        let digest = summary(&thread);
        let (_, told) = digest.split_once("## The task\n\n> Mend the export").expect(&digest);
        assert!(told.contains("\n> 1. Column 1 must be") && told.contains("\n> 2. "), "{digest}");
        assert!(!thread[0].texts().any(|text| text.starts_with("Mend")), "{thread:?}");
    }
}

#[test]
fn lines_stay_under_the_call_that_gave_them() {
    let mut thread = talk();
    for part in 3..6 {
        thread = digested(&thread, 4_000);
        let digest = summary(&thread);
        let (mut heading, mut earlier) = ("", 0);
        for line in digest.lines().skip_while(|line| *line != "## Lines that may be needed") {
            if let Some(of) = line.strip_prefix("- ") {
                heading = of;
            } else if let Some(name) = line.strip_prefix("  def f_") {
                let file: String = name.chars().take(3).collect();
                assert_eq!(heading, format!("`bash: cat src/part_{file}.py` gave:"), "{line}");
                earlier += usize::from(name < &*format!("{}_", part - 1));
            }
        }
        assert!(earlier > 3, "{digest}");
        thread.push(Message::user(format!("Go on with part {part}.")));
        thread.extend(reads(part));
    }
}

#[test]
fn what_failed_is_told_until_it_is_mended() {
    let mut thread = vec![Message::user("Make the tests pass.")];
    let failed = ToolResult::error("t1", "FAILED tests/test_fee.py::test_hall - assert 30 == 45");
    thread.extend(ran("t1", "make test", failed));
    thread.extend((0..3).flat_map(reads));
    for part in 3..6 {
        thread = digested(&thread, 1_500);
        let digest = summary(&thread);
        let row = "- `bash: make test` → FAILED tests/test_fee.py::test_hall";
        assert!(digest.split_once("## Failed last").unwrap().1.contains(row), "{digest}");
        thread.push(Message::user(format!("Go on with part {part}.")));
        thread.extend(reads(part));
    }
    thread.extend(ran("t2", "make test", ToolResult::text("t2", "1 passed")));
    thread.extend(reads(7));
    let digest = summary(&digested(&thread, 1_500));
    assert!(!digest.contains("## Failed last"), "{digest}");
}

#[test]
fn a_result_in_a_user_message_stays_with_the_answer_that_asked_for_it() {
    let mut thread = vec![Message::user("Mend the parser. Answer with one command.")];
    thread.extend((0..40).flat_map(|step| {
        let lines = format!("12: fn fold_{step}()\n").repeat(9 + step % 3 * 14);
        asked_in_text(step, format!("<output>\n{lines}</output>"))
    }));
    for target in [900, 1_200, 1_500, 2_000, 3_000, 4_000] {
        let after = digested(&thread, target);
        let own = after.iter().position(Message::is_summary).unwrap();
        let first = after[own + 1].texts().next().unwrap();
        assert!(!first.starts_with("<output>"), "{target}: {first}");
        assert!(ByteEstimate::TRIGGER.messages(&after) <= target);
    }
}

#[test]
fn the_cut_end_of_a_long_line_is_marked() {
    let record = |at: usize| {
        format!(
            "{{\"bike_id\": \"B-{at}\", \"battery_wh\": {}, \"note\": \"{}\"}}",
            at * 3,
            "x ".repeat(60)
        )
    };
    let line: String = (100..140).map(|at| record(at) + ", ").collect();
    let mut thread = vec![Message::user("Which bike has a large battery?")];
    thread.extend(ran("t1", "search bikes", ToolResult::text("t1", line)));
    thread
        .extend((0..30).map(|at| Message::assistant(format!("{at} {}", "I compare. ".repeat(30)))));
    let digest = summary(&digested(&thread, 1_500));
    let (_, lines) = digest.split_once("gave:\n").expect(&digest);
    let cut: Vec<&str> = lines.lines().filter(|line| line.contains("bike_id")).collect();
    assert!(!cut.is_empty(), "{digest}");
    for line in cut {
        let line = line.trim_start();
        assert!(line.starts_with('…') || line.starts_with("{\"bike_id\": \"B-100"), "{line}");
        assert!(line.ends_with('…'), "{line}");
    }
}
