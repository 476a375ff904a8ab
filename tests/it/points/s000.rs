//! A tool by which the agent compacts ranges between checkpoints.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use threadfold::{
    CheckpointId, ContentBlock, Message, ProviderThread, Replacement, Role, Thread, Usage,
    compact::{self, CompactError, Replaced},
    compaction, legality,
    message::{
        Document, Image, MediaSource, ServerToolUse, StopReason, Thinking, ToolResult, ToolUse,
    },
    session::SessionBuilder,
    testing::Scripted,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use threadfold_testing::notation;

use crate::support::bench::{Bench, bench, calls, say};

/// A typed message, two rounds with tools, and an answer, with reminders and reasoning.
const THREAD: &str = "# user\nRead both.\n[reminder] be brief\n<checkpoint:aaaaaa>\n\
    # assistant\n[thinking] first a\n[text] a\n[tool_use t1 read] {}\n\
    # user\n[tool_result t1] alpha\n[reminder] be brief\n<checkpoint:bbbbbb>\n\
    # assistant\n[thinking] then b\n[text] b\n[tool_use t2 read] {}\n\
    # user\n[tool_result t2] beta\n[reminder] be brief\n<checkpoint:cccccc>\n\
    # assistant\n[thinking] done\n[text] Both are known.\n";

fn thread() -> Vec<Message> {
    notation::parse(THREAD).unwrap()
}

fn id(text: &str) -> CheckpointId {
    text.parse().unwrap()
}

fn range(from: Option<&str>, to: Option<&str>, summary: &str) -> Replacement {
    let mut range = Replacement::new(summary);
    (range.from, range.to) = (from.map(id), to.map(id));
    range
}

fn compacted(ranges: &[Replacement]) -> String {
    notation::write(&threadfold::compact(&thread(), ranges).unwrap().messages)
}

fn refused(ranges: &[Replacement]) -> CompactError {
    threadfold::compact(&thread(), ranges).unwrap_err()
}

fn kinds(message: &Message) -> Vec<&str> {
    message.content.iter().map(ContentBlock::kind).collect()
}

/// A session whose model answers twice and then compacts everything up to the second checkpoint.
fn agent_that_compacts(summary: &str) -> Bench {
    let answers = || vec![Scripted::from("One."), "Two.".into()];
    // The same seed draws the same checkpoints.
    let mut first = bench(answers(), |builder| builder.seed(7));
    two_questions(&mut first);
    let second = first.session.messages()[2].checkpoints().next().unwrap().0;
    let ranges = json!({"replacements": [{"to": second, "summary": summary}]}).to_string();
    let call = Scripted::from(calls(&[("c", "compact", &ranges)]));
    let script = [answers(), vec![call, "Going on.".into()]].concat();
    let mut bench = bench(script, |builder| builder.compact_tool().seed(7));
    two_questions(&mut bench);
    bench
}

fn two_questions(bench: &mut Bench) {
    say(&mut bench.session, "First question.").unwrap();
    say(&mut bench.session, "Second question.").unwrap();
}

#[test]
fn s000_01_a_typed_message_ends_with_a_checkpoint() {
    let mut bench = bench(["Hello!"], |builder| builder);
    say(&mut bench.session, "Hi.").unwrap();
    assert_eq!(kinds(&bench.last_request().messages[0]), ["text", "checkpoint"]);
}

#[test]
fn s000_02_a_message_with_results_ends_with_a_checkpoint() {
    let script = [Scripted::from(calls(&[("a", "quick", "{}")])), "Done.".into()];
    let mut bench = bench(script, |builder| builder);
    say(&mut bench.session, "Go.").unwrap();
    assert_eq!(kinds(&bench.last_request().messages[2]), ["tool_result", "checkpoint"]);
}

#[test]
fn s000_03_a_checkpoint_is_a_text_block_of_its_own() {
    let request = threadfold::Request::new(thread());
    let body = Dialect::Anthropic.encode(&request, &EncodeOptions::default()).body;
    let body = body.to_value().unwrap();
    let blocks = body["messages"][0]["content"].as_array().unwrap();
    assert_eq!(blocks.last().unwrap()["text"], "<checkpoint:aaaaaa>");
    assert_eq!(blocks.last().unwrap()["type"], "text");
}

#[test]
fn s000_04_ids_have_six_characters_and_are_unique() {
    let messages = (0..500).map(|number| Message::user(format!("{number}"))).collect();
    let stamped = threadfold::log::stamp(messages, 7);
    let ids: BTreeSet<CheckpointId> =
        stamped.iter().flat_map(Message::checkpoints).map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 500);
    for id in ids {
        let text = id.to_string();
        assert_eq!(text.len(), 6);
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
    }
}

#[test]
fn s000_05_the_agent_has_a_tool_named_compact() {
    assert_eq!(compaction::compact_tool().name, "compact");
}

#[test]
fn s000_06_the_input_is_a_list_of_ranges() {
    let input = json!({"replacements": [
        {"from": "aaaaaa", "to": "bbbbbb", "summary": "Both."}, {"summary": ""},
    ]});
    let ranges = Replacement::parse_all(&input).unwrap();
    assert_eq!(ranges, [range(Some("aaaaaa"), Some("bbbbbb"), "Both."), range(None, None, "")]);
}

#[test]
fn s000_07_the_range_becomes_one_assistant_message() {
    let range = range(Some("aaaaaa"), Some("cccccc"), "Read both.");
    let messages = threadfold::compact(&thread(), &[range]).unwrap().messages;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1].role, Role::Assistant);
    assert!(messages[1].is_summary());
}

#[test]
fn s000_08_without_to_the_range_runs_to_the_end() {
    let text = compacted(&[range(Some("bbbbbb"), None, "The rest.")]);
    assert!(
        text.ends_with("# assistant\n[summary] The rest.\n") || text.ends_with("The rest.\n"),
        "{text}"
    );
    assert!(!text.contains("Both are known."), "{text}");
}

#[test]
fn s000_09_without_from_the_range_runs_from_the_start() {
    let text = compacted(&[range(None, Some("bbbbbb"), "The beginning.")]);
    assert!(text.starts_with("# assistant\n") && text.contains("The beginning."), "{text}");
    assert!(!text.contains("Read both.") && text.contains("beta"), "{text}");
}

#[test]
fn s000_10_an_empty_summary_deletes_the_range() {
    let messages =
        threadfold::compact(&thread(), &[range(Some("aaaaaa"), Some("cccccc"), "")]).unwrap();
    assert_eq!(messages.messages.len(), 2);
}

#[test]
fn s000_13_the_drawn_example_between_two_checkpoints() {
    let after = "# user\nRead both.\n<checkpoint:aaaaaa>\n# assistant\n[summary] They were read.\n\
        # assistant\nBoth are known.\n";
    let text = compacted(&[range(Some("aaaaaa"), Some("cccccc"), "They were read.")]);
    assert_eq!(text.replace("[summary] ", ""), after.replace("[summary] ", ""));
}

#[test]
fn s000_14_the_drawn_example_to_the_end() {
    let text = compacted(&[range(Some("aaaaaa"), None, "They were read.")]);
    let after = "# user\nRead both.\n<checkpoint:aaaaaa>\n# assistant\nThey were read.\n";
    assert_eq!(text.replace("[summary] ", ""), after);
}

#[test]
fn s000_15_the_drawn_example_from_the_start() {
    let text = compacted(&[range(None, Some("cccccc"), "They were read.")]);
    let after = "# assistant\nThey were read.\n# assistant\nBoth are known.\n";
    assert_eq!(text.replace("[summary] ", ""), after);
}

#[test]
fn s000_16_the_call_changes_the_thread_at_once() {
    let mut bench = agent_that_compacts("They greeted.");
    say(&mut bench.session, "Tidy up.").unwrap();
    let sent = bench.last_sent();
    assert!(sent.contains("They greeted.") && !sent.contains("First question."), "{sent}");
}

#[test]
fn s000_17_the_call_becomes_a_text() {
    let mut bench = agent_that_compacts("They greeted.");
    say(&mut bench.session, "Tidy up.").unwrap();
    let sent = notation::write(&bench.last_request().messages);
    assert!(sent.contains("# assistant\nI compacted the thread.\n"), "{sent}");
    assert!(!sent.contains("[tool_use c compact]"), "{sent}");
}

#[test]
fn s000_19_the_thread_continues_by_itself() {
    let mut bench = agent_that_compacts("They greeted.");
    let reply = say(&mut bench.session, "Tidy up.").unwrap();
    assert_eq!(reply.text, "Going on.");
}

#[test]
fn s000_20_a_checkpoint_has_a_type_and_an_id() {
    let json = serde_json::to_value(ContentBlock::checkpoint(id("aaaaaa"))).unwrap();
    assert_eq!(json, json!({"type": "checkpoint", "id": "aaaaaa"}));
}

#[test]
fn s000_21_the_checkpoint_is_a_kind_of_content() {
    let block = ContentBlock::checkpoint(id("aaaaaa"));
    assert!(matches!(block, ContentBlock::Checkpoint(checkpoint) if checkpoint.id == id("aaaaaa")));
}

#[test]
fn s000_23_a_block_is_made_of_an_id() {
    assert_eq!(ContentBlock::checkpoint(id("a1b2c3")).kind(), "checkpoint");
}

#[test]
fn s000_24_in_a_typed_message_the_checkpoint_follows_the_reminder() {
    let mut bench = bench(["Hello!"], |builder| builder.reminder("Be short."));
    say(&mut bench.session, "Hi.").unwrap();
    let sent = kinds(&bench.last_request().messages[0]).join(" ");
    assert_eq!(sent, "text system_reminder checkpoint");
}

#[test]
fn s000_25_in_a_message_with_results_the_checkpoint_follows_the_reminder() {
    let script = [Scripted::from(calls(&[("a", "quick", "{}")])), "Done.".into()];
    let mut bench = bench(script, |builder| builder.reminder("Be short.").remind_every(1));
    say(&mut bench.session, "Go.").unwrap();
    let sent = kinds(&bench.last_request().messages[2]).join(" ");
    assert_eq!(sent, "tool_result system_reminder checkpoint");
}

#[test]
fn s000_26_a_checkpoint_becomes_a_text_of_the_provider() {
    for dialect in Dialect::ALL {
        let request = threadfold::Request::new(vec![thread()[0].clone()]);
        let body = dialect.encode(&request, &EncodeOptions::default()).body;
        assert!(body.as_str().contains("\"<checkpoint:aaaaaa>\""), "{}", body.as_str());
    }
}

#[test]
fn s000_27_the_text_of_a_provider_becomes_a_checkpoint_again() {
    for dialect in Dialect::ALL {
        let request = threadfold::Request::new(vec![thread()[0].clone()]);
        let body = dialect.encode(&request, &EncodeOptions::default()).body;
        let read =
            dialect.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default()).unwrap();
        assert_eq!(read.messages[0].checkpoints().next().map(|(id, _)| id), Some(id("aaaaaa")));
    }
}

#[test]
fn s000_28_a_provider_thread_compacts_ranges() {
    let mut own: Thread = thread().into_iter().collect();
    let mut adapter = Native(own.messages().iter().map(native).collect());
    let ranges = [range(Some("aaaaaa"), Some("cccccc"), "They were read.")];
    let report = adapter.compact(&mut own, &ranges).unwrap();
    assert_eq!((report.before.messages, report.after.messages), (6, 3));
}

/// An adapter whose only store is its native array.
#[derive(Debug)]
struct Native(Vec<String>);

fn native(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

impl ProviderThread for Native {
    fn appended(&mut self, message: &Message) {
        self.0.push(native(message));
    }

    fn rewritten(&mut self, replaced: &[Replaced<'_>], _thread: &[Message]) {
        for Replaced { at, messages } in replaced.iter().rev() {
            drop(self.0.splice(at.clone(), messages.iter().map(native)));
        }
    }
}

#[test]
fn s000_29_a_native_array_is_updated_by_a_compaction() {
    let mut own: Thread = thread().into_iter().collect();
    let mut adapter = Native(own.messages().iter().map(native).collect());
    let last = Message::assistant("They are read.");
    own.push(last.clone());
    adapter.appended(&last);
    let kept = adapter.0[6].as_ptr();
    // Two ranges, and a message of which a part stays.
    let ranges = [
        range(Some("aaaaaa"), Some("bbbbbb"), "a is alpha."),
        range(Some("bbbbbb"), Some("cccccc"), "b is beta."),
    ];
    adapter.compact(&mut own, &ranges).unwrap();
    assert_eq!(adapter.0, own.messages().iter().map(native).collect::<Vec<_>>());
    assert_eq!(adapter.0.last().unwrap().as_ptr(), kept, "what stays is not made again");
}

#[test]
fn s000_31_an_unknown_checkpoint_is_an_error() {
    let error = refused(&[range(Some("zzzzzz"), None, "x")]);
    assert_eq!(error, CompactError::UnknownCheckpoint { index: 0, id: id("zzzzzz") });
}

#[test]
fn s000_32_kept_messages_keep_their_checkpoints() {
    let text = compacted(&[range(Some("aaaaaa"), Some("bbbbbb"), "a is alpha.")]);
    assert!(text.contains("<checkpoint:aaaaaa>") && text.contains("<checkpoint:cccccc>"), "{text}");
}

#[test]
fn s000_33_the_message_with_from_keeps_what_stands_before_it() {
    let text = compacted(&[range(Some("bbbbbb"), Some("cccccc"), "b is beta.")]);
    assert!(text.contains("[tool_result t1] alpha") && !text.contains("beta\n["), "{text}");
}

#[test]
fn s000_35_one_call_takes_several_ranges() {
    let ranges = [
        range(Some("aaaaaa"), Some("bbbbbb"), "a is alpha."),
        range(Some("bbbbbb"), Some("cccccc"), "b is beta."),
    ];
    let text = compacted(&ranges);
    assert!(text.contains("a is alpha.") && text.contains("b is beta."), "{text}");
    assert!(!text.contains("tool_use"), "{text}");
}

#[test]
fn s000_37_a_person_reads_one_line_about_the_call() {
    let ranges = [range(Some("aaaaaa"), Some("cccccc"), "They were read.")];
    let report = threadfold::compact(&thread(), &ranges).unwrap().report;
    let line = report.to_string();
    assert!(line.starts_with("6 to 3 messages") && !line.contains('\n'), "{line}");
}

#[test]
fn s000_39_the_tool_is_sent_to_the_model() {
    let mut bench = bench(["Hello!"], SessionBuilder::compact_tool);
    say(&mut bench.session, "Hi.").unwrap();
    assert!(bench.last_request().tools.iter().any(|tool| tool.name == "compact"));
}

#[test]
fn s000_40_the_thread_stays_legal_after_a_call() {
    let mut bench = agent_that_compacts("They greeted.");
    say(&mut bench.session, "Tidy up.").unwrap();
    assert_eq!(legality::violations(bench.session.messages()), []);
    bench.assert_whole();
}

#[test]
fn s000_41_the_model_is_asked_again_without_a_message_of_the_user() {
    let mut bench = agent_that_compacts("They greeted.");
    let asked = bench.model.requests().len();
    say(&mut bench.session, "Tidy up.").unwrap();
    assert_eq!(bench.model.requests().len(), asked + 2);
    let typed = bench.session.messages().iter().filter(|message| message.is_typed()).count();
    assert_eq!(typed, 1, "only the last text is left");
}

#[test]
fn s000_43_the_description_says_when_to_compact() {
    let about = compaction::compact_tool().description;
    assert!(about.contains("between two pieces of work"), "{about}");
}

#[test]
fn s000_44_the_description_says_how_checkpoints_work() {
    let about = compaction::compact_tool().description;
    assert!(about.contains("<checkpoint:"), "{about}");
}

#[test]
fn s000_45_the_description_says_how_to_write_summaries() {
    let about = compaction::compact_tool().description;
    assert!(about.contains("past tense") && about.contains("their words"), "{about}");
}

#[test]
fn s000_46_messages_have_every_kind_of_content() {
    let source = || MediaSource::Url { url: "https://example.org/a".into() };
    let blocks: [ContentBlock; 8] = [
        ContentBlock::text("hi"),
        ContentBlock::reminder("be brief"),
        Thinking::new("hm", Some("signature".into())).into(),
        ToolUse::new("t1", "read", json!({})).into(),
        ToolResult::text("t1", "alpha").into(),
        Image::new(source()).into(),
        Document::new(source()).into(),
        ServerToolUse::new("s1", "search", json!({})).into(),
    ];
    let kinds: Vec<&str> = blocks.iter().map(ContentBlock::kind).collect();
    let expected = [
        "text",
        "system_reminder",
        "thinking",
        "tool_use",
        "tool_result",
        "image",
        "document",
        "server_tool_use",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn s000_47_a_message_has_role_content_stop_reason_and_usage() {
    let mut answer = Message::assistant("Hello!");
    answer.make_mut().usage = Some(Usage::new(10, 2));
    answer.make_mut().stop_reason = Some(StopReason::EndTurn);
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!((&json["role"], &json["stop_reason"]), (&json!("assistant"), &json!("end_turn")));
    assert_eq!(json["usage"]["input"], 10);
    assert_eq!(json["content"].as_array().unwrap().len(), 1);
}

#[test]
fn s000_48_messages_after_an_index_are_dropped() {
    let mut own: Thread = thread().into_iter().collect();
    own.truncate(1);
    assert_eq!(own.messages()[..], thread()[..1]);
}

#[test]
fn s000_49_a_copy_of_the_messages_does_not_change_with_the_thread() {
    let mut own: Thread = thread().into_iter().collect();
    let copy = Arc::clone(own.messages());
    own.push(Message::user("More."));
    assert_eq!((copy.len(), own.messages().len()), (6, 7));
}

#[test]
fn s000_36_a_wrong_call_changes_nothing() {
    let missing = compact::Plan::new(
        &thread(),
        &[range(None, Some("zzzzzz"), "x")],
        &compact::CompactOptions::default(),
    );
    assert!(missing.is_err());
    assert!(Replacement::parse_all(&json!({"replacements": [{"summary": 5}]})).is_err());
}
