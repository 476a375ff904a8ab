//! The tail that a strategy would keep shrinks to meet the target.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, ContextWindow, Message, Role, StrategyRegistry,
    drive::{self, Models},
    legality,
    message::{CompactionReason, Json, Opaque, Thinking, ToolResult, ToolUse},
    strategy::{Brief, Ladder, Snapshot, StrategyError},
    testing::ScriptedModel,
};

fn named(name: &str) -> Arc<dyn CompactionStrategy> {
    Arc::clone(StrategyRegistry::default().get(name).unwrap())
}

fn count(messages: &[Message]) -> u64 {
    let snapshot = Snapshot::new(messages.to_vec());
    snapshot.counter().messages(messages)
}

/// The thread after a strategy, with a model that answers every question with one sentence.
fn after(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
) -> Result<Vec<Message>, StrategyError> {
    let model = ScriptedModel::new(vec!["They looked at the log and found nothing."; 40]);
    let models = Models::one(&model);
    let proposal = block_on(drive::propose(strategy, thread, brief, models, &mut |_, _| {}));
    let plan = proposal.map_err(|error| error.strategy().unwrap().clone())?.plan;
    Ok(plan.after(thread.messages()).unwrap())
}

#[test]
fn a_compaction_that_the_host_brought_stays_before_what_a_strategy_adds() {
    let says = |codec: &str| match codec {
        "anthropic-messages" => r#"{"type":"compaction","content":"The port is 4711."}"#,
        _ => r#"{"type":"compaction","id":"cmp_1","encrypted_content":"QUJD"}"#,
    };
    for codec in ["anthropic-messages", "openai-responses"] {
        let block = Opaque::new(codec, Json::parse(says(codec)).unwrap());
        let brought = Message::new(Role::Assistant, vec![block.into()]);
        let mut thread = vec![Message::user("Mend the build."), brought.clone()];
        thread.push(Message::user("Go on."));
        for number in 0..20 {
            let call = ToolUse::new(format!("t{number}"), "read", Json::parse("{}").unwrap());
            let found = format!("line {number} {}", "of a file ".repeat(90));
            let result = ToolResult::text(format!("t{number}"), found);
            thread.push(Message::new(Role::Assistant, vec![call.into()]));
            thread.push(Message::new(Role::User, vec![result.into()]));
        }
        let thread = Snapshot::new(thread);
        for name in StrategyRegistry::default().names() {
            let left = match after(named(name).as_ref(), &thread, &towards(2_000)) {
                Ok(left) => left,
                Err(_) if ["native", "clear-results", "trim-tool-results"].contains(&name) => {
                    continue;
                }
                Err(error) => panic!("{codec}: {name}: {error}"),
            };
            let at = |found: &dyn Fn(&Message) -> bool| left.iter().position(found);
            let (block, summary) = (at(&|it| *it == brought), at(&Message::is_summary));
            assert!(block.is_some(), "{codec}: {name} drops it");
            assert!(summary.is_none_or(|at| Some(at) > block), "{codec}: {name}");
            assert_eq!(legality::violations(&left), [], "{codec}: {name}");
        }
    }
}

fn towards(target: u64) -> Brief {
    Brief { target: Some(target), reason: CompactionReason::Threshold, ..Brief::default() }
}

fn call(id: &str) -> Message {
    let call = ToolUse::new(id, "read", Json::parse(r#"{"path":"a.log"}"#).unwrap());
    Message::new(Role::Assistant, vec![call.into()])
}

fn result(id: &str, bytes: usize) -> Message {
    let text = "one line of the log\n".repeat(bytes / 20);
    Message::new(Role::User, vec![ToolResult::text(id, text).into()])
}

/// A prompt, a call with a result of 72 KB, and the answer to it, so that the result was read.
fn four() -> Vec<Message> {
    let answer = Message::assistant("I read it.");
    vec![Message::user("Read the log."), call("t1"), result("t1", 72_000), answer]
}

const ALL: [&str; 6] =
    ["summarize", "digest", "trim-tool-results", "keep-recent", "rolling", "ladder"];

#[test]
fn a_result_that_is_most_of_the_thread_prevents_no_strategy() {
    for window in [None, Some(ContextWindow::new(20_000))] {
        let thread = Snapshot::new(four()).with_window(window);
        for name in ALL {
            let after = after(named(name).as_ref(), &thread, &towards(10_000));
            let after = after.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(count(&after) <= 10_000, "{name}: {}", count(&after));
            assert_eq!(legality::violations(&after), [], "{name}");
            assert!(after.contains(&thread.messages()[0]), "{name}");
        }
    }
}

#[test]
fn eight_messages_are_compacted_if_they_are_large() {
    let mut thread = vec![Message::user("Read the logs.")];
    for id in ["t1", "t2", "t3"] {
        thread.extend([call(id), result(id, 106_000)]);
    }
    thread.push(Message::assistant("All of them are fine."));
    assert!(thread.len() == 8 && count(&thread) > 100_000);
    let thread = Snapshot::new(thread);
    for name in ALL {
        let after = after(named(name).as_ref(), &thread, &towards(20_000));
        let after = after.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(count(&after) <= 20_000, "{name}: {}", count(&after));
    }
}

#[test]
fn the_tail_is_kept_if_the_target_has_room_for_it() {
    let mut thread = vec![Message::user("Read the logs.")];
    for id in ["t1", "t2", "t3"] {
        thread.extend([call(id), result(id, 30_000)]);
    }
    thread.push(Message::assistant("All of them are fine."));
    let snapshot = Snapshot::new(thread.clone());
    for name in ["summarize", "keep-recent", "digest", "rolling"] {
        let after = after(named(name).as_ref(), &snapshot, &towards(22_000)).unwrap();
        assert_eq!(after[after.len() - 3..], thread[5..], "{name}");
    }
}

#[test]
fn a_manual_compaction_summarises_even_two_messages() {
    let answer = Message::assistant("A long story of a parser and its lexer. ".repeat(40));
    let thread = Snapshot::new(vec![Message::user("Tell me."), answer]);
    for strategy in [named("summarize"), Arc::new(Ladder::default())] {
        let asked = after(strategy.as_ref(), &thread, &Brief::default()).unwrap();
        assert!(asked.len() == 2 && asked[1].is_summary(), "{asked:?}");
        // A second compaction does nothing, because no message was added.
        let again = after(strategy.as_ref(), &Snapshot::new(asked), &Brief::default());
        assert!(again.is_err_and(|error| error.is_nothing_to_compact()));
    }
    let brief = Brief { reason: CompactionReason::Threshold, ..Brief::default() };
    let unasked = after(named("summarize").as_ref(), &thread, &brief);
    assert!(unasked.is_err_and(|error| error.is_nothing_to_compact()));
}

#[test]
fn two_manual_compactions_in_a_row_are_one_even_if_trimming_meets_the_target() {
    // The reasoning makes the thread too long, and any edit removes it.
    let mut calling = call("t1");
    calling.make_mut().content.insert(0, Thinking::new("hm, ".repeat(3_000), None).into());
    let answer = Message::assistant("The log has nothing of weight. ".repeat(20));
    let prompt = Message::user("And the other one?");
    let thread = Snapshot::new(vec![
        Message::user("Read it."),
        calling,
        result("t1", 2_000),
        answer,
        prompt,
    ]);
    let brief = Brief { target: Some(1_500), ..Brief::default() };
    for name in ["summarize", "digest", "rolling", "keep-recent"] {
        let asked = after(named(name).as_ref(), &thread, &brief).unwrap();
        assert!(count(&asked) <= 1_500, "{name}");
        let again = after(named(name).as_ref(), &Snapshot::new(asked.clone()), &brief);
        let is_settled = again.as_ref().is_err_and(StrategyError::is_nothing_to_compact);
        assert!(is_settled, "{name}: {asked:#?} {again:#?}");
    }
}

#[test]
fn less_is_kept_if_the_summary_is_longer_than_expected() {
    let turn = |number: usize| {
        let words = "words of no weight ".repeat(90);
        [
            Message::user(format!("{number} {words}")),
            Message::assistant(format!("{number} {words}")),
        ]
    };
    let thread: Vec<Message> = (0..20).flat_map(turn).collect();
    let snapshot = Snapshot::new(thread.clone());
    let summed = |tokens: usize| {
        let model = ScriptedModel::new([&*"sum ".repeat(tokens * 3 / 4)]);
        let (strategy, models) = (named("summarize"), Models::one(&model));
        let brief = towards(10_000);
        let proposal =
            block_on(drive::propose(strategy.as_ref(), &snapshot, &brief, models, &mut |_, _| {}));
        proposal.unwrap().plan.after(&thread).unwrap()
    };
    let (brief, long) = (summed(500), summed(5_500));
    assert!(count(&brief) <= 10_000 && count(&long) <= 10_000);
    let typed = |messages: &[Message]| messages.iter().filter(|message| message.is_typed()).count();
    assert!(typed(&long) < typed(&brief), "{} {}", typed(&long), typed(&brief));
    assert_eq!(long.last(), thread.last());
}

#[test]
fn failed_results_and_results_next_to_typed_text_are_trimmed_as_a_last_resort() {
    let mut failed = ToolResult::text("t1", "it broke\n".repeat(8_000));
    failed.is_error = true;
    let content = vec![failed.into(), threadfold::ContentBlock::text("And look at b.log.")];
    let results = Message::new(Role::User, content);
    // The answer makes the results read: what is unread stays whole.
    let answer = Message::assistant("I see.");
    let thread = Snapshot::new(vec![Message::user("Read it."), call("t1"), results, answer]);
    for name in ["trim-tool-results", "digest", "keep-recent"] {
        let after = after(named(name).as_ref(), &thread, &towards(1_000)).unwrap();
        assert!(count(&after) <= 1_000, "{name}");
    }
}

/// An agent that writes commands into its text and gets their outputs as user messages; the last
/// output was read.
fn protocol(task: &str, steps: usize) -> Vec<Message> {
    let mut thread = vec![Message::user(task)];
    for step in 0..steps {
        let command = format!("THOUGHT: I look at part {step}.\n\n```bash\ncat src/{step}.rs\n```");
        let lines = (0..40).map(|line| format!("let value_{step}_{line} = parse({line});\n"));
        let output = lines.collect::<String>();
        thread.push(Message::assistant(command));
        thread.push(Message::user(format!(
            "<returncode>0</returncode>\n<output>\n{output}</output>"
        )));
    }
    thread.push(Message::assistant("THOUGHT: Done.\n\n```bash\ngit diff\n```"));
    thread
}

#[test]
fn a_summary_is_shortened_where_task_and_last_result_leave_it_little_room() {
    let task = format!("Mend the parser.\n\n{}", "Read each line of it with care. ".repeat(190));
    let thread = protocol(&task, 12);
    let last = thread[thread.len() - 2].clone();
    let snapshot = Snapshot::new(thread.clone());
    // All but what stays in any case is a summary, a third of a target.
    let stays = count(&[thread[0].clone(), last.clone(), thread[thread.len() - 1].clone()]);
    let target = stays * 5 / 4;
    assert!(target < count(&thread) / 2);
    let long = (0..400).map(|n| format!("Part {n} was read. ")).collect::<String>();
    for name in ["summarize", "chunked"] {
        let model = ScriptedModel::new(vec![long.as_str(); 40]);
        let models = Models::one(&model);
        let (strategy, brief) = (named(name), towards(target));
        let watch = &mut |_: &_, _: Option<&_>| {};
        let proposal = drive::propose(&*strategy, &snapshot, &brief, models, watch);
        let after = block_on(proposal).unwrap().plan.after(&thread).unwrap();
        let texts: Vec<_> = after.iter().flat_map(Message::texts).collect();
        assert!(texts.iter().any(|text| text.contains(&task)), "{name}: the task is gone");
        assert!(after.iter().any(|message| message.content == last.content), "{name}");
        let used = count(&after) * 100 / target;
        assert!((90..=100).contains(&used), "{name}: {used} % of the room is used");
    }
}
