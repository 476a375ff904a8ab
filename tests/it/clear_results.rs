//! `clear-results`: which results it clears, which it keeps, and the text that replaces a cleared
//! result.

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    ContentBlock, EventLog, Message, Role, TokenCounter,
    drive::{self, Conversation, Models},
    log::Event,
    message::{Thinking, Timestamp, ToolResult, ToolUse},
    recall::{Recall, tool},
    retention::{FactClass, Facts, RetentionPolicy},
    store::Journal,
    strategy::{Brief, ClearResults, Snapshot, View, without_model},
    tokens::ByteEstimate,
};

use crate::support::recorded::requests;

const LINE: &str = "let lamp = Lamp::new(Colour::Red); // in the hall\n";

/// A call and its result, as two messages.
fn round(id: &str, name: &str, path: &str) -> [Message; 2] {
    let call = ToolUse::new(id, name, json!({"path": path}));
    let result = ToolResult::text(id, format!("{path} {id}\n{}", LINE.repeat(40)));
    [
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::User, vec![result.into()]),
    ]
}

fn thread(rounds: impl IntoIterator<Item = [Message; 2]>) -> Vec<Message> {
    let mut thread =
        vec![Message::user("Look at the lamps in src/hall.rs. Never touch the lexer.")];
    thread.extend(rounds.into_iter().flatten());
    thread.push(Message::assistant("They are red."));
    thread
}

fn reads(paths: &[&str]) -> Vec<Message> {
    let ids: Vec<String> = (0..paths.len()).map(|number| format!("t{number}")).collect();
    thread(ids.iter().zip(paths).map(|(id, path)| round(id, "read", path)))
}

fn after(strategy: &ClearResults, thread: &Snapshot) -> Result<Vec<Message>, String> {
    let view = View::new(thread.clone(), Brief::default());
    let proposal = without_model(strategy, &view).map_err(|error| error.to_string())?;
    thread.accept(&proposal.plan, &view.brief).map_err(|error| error.to_string())
}

/// The ids of the calls whose results were cleared.
fn cleared(messages: &[Message]) -> Vec<&str> {
    let results = messages.iter().flat_map(|message| message.tool_results());
    let is_cleared = |result: &&ToolResult| {
        let text = result.content.first().and_then(ContentBlock::as_text);
        text.is_some_and(|text| text.to_lowercase().contains("cleared"))
    };
    results.filter(is_cleared).map(|result| result.tool_use_id.as_str()).collect()
}

fn keeping(keep: usize) -> ClearResults {
    ClearResults { keep, ..ClearResults::default() }
}

#[test]
fn the_last_results_stay_and_nothing_happens_twice() {
    let thread = Snapshot::new(reads(&["a.rs", "b.rs", "c.rs", "d.rs"]));
    let left = after(&keeping(1), &thread).unwrap();
    assert_eq!(cleared(&left), ["t0", "t1", "t2"]);
    let again = after(&keeping(1), &Snapshot::new(left)).unwrap_err();
    assert!(again.contains("clearing all but the last 1 of 4 tool results saves 0"), "{again}");
}

#[test]
fn excluded_tools_failures_and_unanswered_results_stay() {
    let mut failed = round("t1", "read", "b.rs");
    let content = vec![ContentBlock::text(LINE.repeat(40))];
    let mut error = ToolResult::new("t1", content);
    error.is_error = true;
    failed[1] = Message::new(Role::User, vec![error.into()]);
    let mut messages = thread([round("t0", "search", "a.rs"), failed, round("t2", "read", "c.rs")]);
    messages.extend(round("t3", "read", "d.rs"));
    let thread = Snapshot::new(messages);
    let strategy = ClearResults { exclude_tools: vec!["search".into()], ..keeping(0) };
    assert_eq!(cleared(&after(&strategy, &thread).unwrap()), ["t2"]);
    let strategy = ClearResults { keep_errors: false, ..strategy };
    assert_eq!(cleared(&after(&strategy, &thread).unwrap()), ["t1", "t2"]);
}

#[test]
fn an_identical_call_or_one_about_the_same_makes_a_result_obsolete() {
    let twice = Snapshot::new(reads(&["a.rs", "b.rs", "a.rs"]));
    assert_eq!(cleared(&after(&keeping(2), &twice).unwrap()), ["t0"]);
    let strategy = ClearResults { obsolete: false, ..keeping(3) };
    assert!(after(&strategy, &twice).is_err());

    // A write of the same file, and a read that failed.
    let written = || thread([round("t0", "read", "a.rs"), round("t1", "write", "a.rs")]);
    assert!(after(&keeping(2), &Snapshot::new(written())).is_err());
    let path = |call: &ToolUse| {
        let input = call.input.json().ok()?.to_value().ok()?;
        Some(input.get("path")?.as_str()?.into())
    };
    let known = |messages| Snapshot::new(messages).with_subjects(&path);
    assert_eq!(cleared(&after(&keeping(2), &known(written())).unwrap()), ["t0"]);
    let mut failed = written();
    let mut error = ToolResult::text("t1", "no such file");
    error.is_error = true;
    failed[4] = Message::new(Role::User, vec![error.into()]);
    assert!(after(&keeping(2), &known(failed)).is_err());
}

#[test]
fn inputs_and_reasoning_are_cleared_only_if_the_options_say_so() {
    let thought = |number: usize| {
        let thinking = Thinking::new(format!("I think of lamp {number}."), None);
        Message::new(Role::Assistant, vec![thinking.into(), ContentBlock::text("Red.")])
    };
    let mut messages = vec![Message::user("One?"), thought(1)];
    messages.extend(reads(&["a.rs", "b.rs"]));
    messages.extend([Message::user("Two?"), thought(2)]);
    let thread = Snapshot::new(messages);
    let count = |messages: &[Message]| messages.iter().filter(|it| it.has_reasoning()).count();
    let inputs = |messages: &[Message]| -> Vec<String> {
        let calls = messages.iter().flat_map(|message| message.tool_uses());
        calls.map(|call| call.input.as_str().to_owned()).collect()
    };
    let left = after(&keeping(1), &thread).unwrap();
    assert_eq!((count(&left), inputs(&left)[0].as_str()), (2, r#"{"path":"a.rs"}"#));

    let strategy = ClearResults { inputs: true, keep_reasoning: Some(1), ..keeping(1) };
    let left = after(&strategy, &thread).unwrap();
    assert_eq!((count(&left), inputs(&left)), (1, vec!["{}".into(), r#"{"path":"b.rs"}"#.into()]));
    assert!(left.last().unwrap().has_reasoning());
}

#[test]
fn nothing_is_cleared_if_it_is_too_little_or_too_early() {
    let thread = Snapshot::new(reads(&["a.rs", "b.rs"]));
    let tokens = thread.counter().messages(thread.messages());
    let saved = tokens - thread.counter().messages(&after(&keeping(0), &thread).unwrap());
    let rows = [
        (ClearResults { at_least: saved, ..keeping(0) }, true),
        (ClearResults { at_least: saved + 1, ..keeping(0) }, false),
        (ClearResults { from_tokens: tokens, ..keeping(0) }, true),
        (ClearResults { from_tokens: tokens + 1, ..keeping(0) }, false),
    ];
    for (strategy, clears) in rows {
        assert_eq!(after(&strategy, &thread).is_ok(), clears, "{strategy:?}");
    }
}

/// Compacts a conversation whose model can recall, and returns its log.
fn compacted(messages: Vec<Message>, tools: bool) -> EventLog {
    let mut journal = Journal::new(EventLog::new("main".parse().unwrap()));
    for message in messages {
        journal.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
    }
    let specs = if tools { vec![tool::spec()] } else { Vec::new() };
    let mut conversation =
        Conversation::new(&mut journal).with_context(vec![].into(), specs.into());
    let (strategy, brief) = (keeping(1), Brief::default());
    let models = Models::default();
    block_on(drive::compact(&mut conversation, &strategy, &brief, models, &mut |_, _| {})).unwrap();
    assert_eq!(journal.log().replay(), journal.thread().messages()[..]);
    journal.log().clone()
}

#[test]
fn every_line_names_what_can_be_recalled_in_under_30_tokens() {
    let messages = reads(&["a.rs", "b.rs", "c.rs"]);
    let log = compacted(messages.clone(), true);
    let left = log.replay();
    assert_eq!(cleared(&left), ["t0", "t1"]);
    for (message, original) in left.iter().zip(&messages) {
        for result in
            message.tool_results().filter(|it| cleared(&left).contains(&it.tool_use_id.as_str()))
        {
            let line = result.content[0].as_text().unwrap();
            assert!(ByteEstimate::TRIGGER.text(line) < 30, "{line}");
            let json = line.split_once("recall with ").unwrap().1.trim_end_matches(']');
            let recalled = Recall::of(&log).call(&serde_json::from_str(json).unwrap()).unwrap();
            let text = original.tool_results().next().unwrap().content[0].as_text().unwrap();
            assert!(recalled.contains(text.trim_end()), "{line}");
        }
    }
    // Without the tool no line mentions it.
    let left = compacted(messages, false).replay();
    assert_eq!(cleared(&left), ["t0", "t1"]);
    assert!(!format!("{left:?}").contains("recall"));
}

#[test]
fn transcripts_of_mostly_results_are_halved_and_keep_paths() {
    let mut mostly = 0;
    let brief = Brief { retention: Some(RetentionPolicy::default()), ..Brief::default() };
    for (name, _, request) in requests() {
        let thread = Snapshot::of_request(&request);
        let view = View::new(thread.clone(), brief.clone());
        let Ok(proposal) = without_model(&keeping(3), &view) else { continue };
        // A result may be shorter than the list of its facts; then it stays.
        let Ok(settled) = thread.settle(proposal, &brief) else { continue };
        let left = settled.plan.after(thread.messages()).unwrap();
        let facts = Facts::of(thread.messages(), &RetentionPolicy::default()).audit(&left);
        let kept = facts.of(FactClass::Path);
        assert_eq!(kept.kept, kept.facts, "{name}: {:?}", facts.missing);
        let again = View::new(Snapshot::new(left.clone()), brief.clone());
        let again = without_model(&keeping(3), &again);
        assert!(again.is_err(), "{name}: {again:?}");
        let tokens = |messages: &[Message]| ByteEstimate::TRIGGER.messages(messages);
        let blocks = thread.messages().iter().flat_map(|message| &message.content);
        let results = blocks.filter(|block| matches!(block, ContentBlock::ToolResult(_)));
        let results: u64 = results.map(|block| ByteEstimate::TRIGGER.block(block)).sum();
        let (before, now) = (tokens(thread.messages()), tokens(&left));
        println!("{name}: {before} to {now} tokens, {results} of results");
        if results > before * 3 / 4 {
            mostly += 1;
            assert!(now <= before / 2, "{name}: {before} to {now}, {results} of results");
        }
    }
    println!("{mostly} threads were mostly results");
}
