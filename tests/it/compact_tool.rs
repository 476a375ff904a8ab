//! The tool by which the model compacts ranges itself, in whole sessions: the next request, the
//! log, and the thread after an undo.
//!
//! `testdata/compact_tool/`: `--- thread`, `--- prompt` that is sent, `--- answer` of the model,
//! and `--- expect` with the messages of the request after it. Checkpoints that the session drew
//! are `new1`, `new2`, ... there, as `<new1>`.

use std::{collections::BTreeSet, sync::Arc};

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    ContentBlock, Message, legality,
    log::Event,
    message::{CompactionReason, Json, Role, ToolUse},
    session::{CompactionEvent, SessionBuilder, SessionEvent},
    testing::Scripted,
};
use threadfold_testing::{
    notation,
    shared::cases::{self, Case},
};

use crate::support::{
    bench::{self, Bench, Echo, bench},
    polls::poll,
};

/// A session that continues this thread.
fn from_thread(
    thread: &[Message],
    answers: Vec<Scripted>,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    let mut bench = bench(answers, |builder| build(builder.seed(7)));
    bench.begin_with(thread);
    bench
}

/// Sends a text and returns all events.
fn say(bench: &mut Bench, text: &str) -> Vec<SessionEvent> {
    bench::events(&mut bench.session, text).into_iter().map(Result::unwrap).collect()
}

fn thread(case: &Case, section: &str) -> Vec<Message> {
    notation::parse(case.section(section).unwrap()).unwrap()
}

/// The thread as text, with names for the checkpoints that were drawn.
fn named(messages: &[Message], known: &[Message]) -> String {
    let ids = |messages: &[Message]| -> Vec<String> {
        let blocks = messages.iter().flat_map(|message| message.content.clone());
        let id = |block| match block {
            ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id.to_string()),
            _ => None,
        };
        blocks.filter_map(id).collect()
    };
    let old: BTreeSet<String> = ids(known).into_iter().collect();
    let new = ids(messages).into_iter().filter(|id| !old.contains(id)).enumerate();
    new.fold(notation::write(messages), |text, (number, id)| {
        text.replace(&format!("checkpoint:{id}"), &format!("new{}", number + 1)).replace(&id, "new")
    })
}

#[test]
fn the_model_compacts_ranges_as_its_cases_say() {
    for case in cases::read("testdata/compact_tool").unwrap() {
        let (before, answer) = (thread(&case, "thread"), thread(&case, "answer"));
        let answers = vec![answer[0].clone().into(), "Going on.".into()];
        let mut bench = from_thread(&before, answers, SessionBuilder::compact_tool);
        let events = say(&mut bench, case.section("prompt").unwrap().trim_end());

        let sent = bench.last_request().messages;
        assert_eq!(named(&sent, &before), case.section("expect").unwrap(), "{}", case.name);
        assert_eq!(legality::violations(&sent), [], "{}", case.name);
        assert_eq!(bench.session.log().replay(), bench.session.messages()[..]);
        let reported = |event: &SessionEvent| match event {
            SessionEvent::Compaction(event) => Some(event.is_end()),
            _ => None,
        };
        let reported: Vec<bool> = events.iter().filter_map(reported).collect();
        let failed = case.name.starts_with("error-");
        assert_eq!(reported, if failed { vec![] } else { vec![false, true] }, "{}", case.name);
    }
}

fn call(id: &str, name: &str, input: &str) -> ContentBlock {
    ToolUse::new(id, name, Json::parse(input).unwrap()).into()
}

fn answer(calls: Vec<ContentBlock>) -> Scripted {
    Message::new(Role::Assistant, calls).into()
}

/// A typed thread with a checkpoint for `to`.
fn greeting() -> Vec<Message> {
    notation::parse("# user\nHello\n<checkpoint:aaaaaa>\n# assistant\nHi there").unwrap()
}

const RANGE: &str = r#"{"replacements": [{"to": "aaaaaa", "summary": "They greeted."}]}"#;

#[test]
fn the_log_states_who_compacted_and_why_and_it_can_be_undone() {
    let answers = vec![answer(vec![call("c", "compact", RANGE)]), "On it.".into()];
    let mut bench = from_thread(&greeting(), answers, SessionBuilder::compact_tool);
    let events = say(&mut bench, "Work.");
    let ended = events.iter().find_map(|event| match event {
        SessionEvent::Compaction(CompactionEvent::Completed { id, report, .. }) => {
            Some((*id, report.clone()))
        }
        _ => None,
    });
    let (id, report) = ended.unwrap();
    let record = bench.session.log().compaction(id).unwrap();
    assert_eq!(
        (record.strategy.as_str(), &record.reason),
        ("compact", &CompactionReason::AgentTool)
    );
    assert_eq!(record.report, report);
    let summaries = record.plan.new_messages().flat_map(|message| message.content.clone());
    let numbers = summaries.filter_map(|block| match block {
        ContentBlock::Summary(summary) => Some(summary.compaction),
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [Some(id)]);

    block_on(bench.session.undo_compaction(id)).unwrap();
    let back = bench.session.messages();
    assert_eq!(back[..2], greeting());
    let texts: Vec<String> =
        back[2..].iter().map(|message| named(std::slice::from_ref(message), &[])).collect();
    let call = format!(
        "# assistant\n[tool_use c compact] {}\n",
        RANGE.replace(": ", ":").replace(", ", ",")
    );
    let result = "# user\n[tool_result c] The thread was compacted.\n<new1>\n";
    assert_eq!(texts, ["# user\nWork.\n<new1>\n", &call, result, "# assistant\nOn it.\n"]);
    assert_eq!(bench.session.log().replay(), back[..]);
}

#[test]
fn a_tool_that_is_not_offered_says_that_it_is_not_configured() {
    let answers = vec![
        answer(vec![call("c", "compact", RANGE), call("d", "compact_context", "{}")]),
        "Well.".into(),
    ];
    let mut bench = from_thread(&greeting(), answers, |builder| builder);
    say(&mut bench, "Work.");
    let sent = bench.last_request().messages;
    let results: Vec<_> = sent.last().unwrap().tool_results().collect();
    let text = |index: usize| results[index].content[0].as_text().unwrap().as_str();
    assert_eq!((text(0), results[0].is_error), ("Compaction not yet configured", true));
    let reported: serde_json::Value = serde_json::from_str(text(1)).unwrap();
    assert_eq!(reported, json!({"success": false, "output": "Compaction not yet configured"}));
    assert_eq!(sent[..2], greeting());
    assert!(bench.model.requests()[0].tools.iter().all(|tool| !tool.name.starts_with("compact")));
}

#[test]
fn a_tool_of_the_host_with_this_name_takes_precedence() {
    let answers = vec![answer(vec![call("c", "compact", RANGE)]), "Well.".into()];
    let host = |builder: SessionBuilder| builder.tool(Arc::new(Echo { name: "compact", polls: 0 }));
    let mut bench = from_thread(&greeting(), answers, host);
    say(&mut bench, "Work.");
    assert!(named(&bench.last_request().messages, &[]).contains("[tool_result c] compact {"));
}

#[test]
fn the_description_of_the_tool_explains_when_and_how_to_compact() {
    let offer = |builder: SessionBuilder| builder.compact_tool().compact_context_tool();
    let mut bench = from_thread(&greeting(), vec!["Well.".into()], offer);
    say(&mut bench, "Work.");
    let request = bench.model.requests().remove(0);
    let about = |name: &str| {
        let tool = request.tools.iter().find(|tool| tool.name == *name).unwrap();
        (tool.description.to_string(), tool.input_schema.as_str().to_owned())
    };
    let (words, schema) = about("compact");
    for part in ["between two pieces of work", "<checkpoint:", "their words", "past tense"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    for field in ["replacements", "from", "to", "summary"] {
        assert!(schema.contains(field), "{schema}");
    }
    let (words, _) = about("compact_context");
    assert!(words.starts_with("Compress conversation history to free up context space."));
}

#[test]
fn a_stream_may_be_dropped_at_every_await() {
    let (mut ended, mut polls, mut carried_out, mut cancelled) = (false, 0, 0, 0);
    while !ended {
        let calls = vec![call("q", "quick", "{}"), call("c", "compact", RANGE)];
        let answers = vec![answer(calls), "Fine.".into(), "Fine.".into()];
        let mut bench = from_thread(&greeting(), answers, SessionBuilder::compact_tool);
        let mut stream = bench.session.send("Work.");
        (_, ended) = poll(&mut stream, polls);
        drop(stream);
        let events = say(&mut bench, "And now?");
        assert!(matches!(events.last(), Some(SessionEvent::TurnEnded { .. })), "{polls}");
        assert_eq!(bench.session.log().replay(), bench.session.messages()[..], "{polls}");
        for request in bench.model.requests() {
            assert_eq!(legality::violations(&request.messages), [], "{polls}");
        }
        // The thread reports as many compactions as the log holds.
        let done = bench.session.log().standing().count();
        let says = named(bench.session.messages(), &[]).contains("The thread was compacted");
        assert_eq!(says, done == 1, "{polls}");
        carried_out += done;
        let failed = |event: &&threadfold::log::LoggedEvent| {
            matches!(event.event, Event::CompactionFailed(_))
        };
        cancelled += bench.session.log().events().iter().filter(failed).count();
        polls += 1;
    }
    assert!(carried_out > 3 && cancelled > 0, "{carried_out} of {polls}, {cancelled} cancelled");
}
