//! One fuzz case of prose, shared by the fuzz target, by the bounded run in the tests and by the
//! tests that count reading steps: a text that goes through every reader of prose.

#![allow(clippy::expect_used, reason = "a test stops where something is not as it must be")]

use serde_json::json;
use std::{
    borrow::Cow,
    pin::pin,
    task::{Context, Poll, Waker},
};

use threadfold::{
    EventLog, Message, Model, Plan, Replacement, Request,
    compact::CompactOptions,
    ledger::{Ledger, Moderators, Quotes, TypedText},
    log::{CompactionRecord, Event},
    message::{
        CompactionId, CompactionReason, Redactor, Role, Summary, Timestamp, ToolResult, ToolUse,
    },
    recall::{MAX_BYTES, Recall},
    retention::{Facts, RetentionPolicy, audit, enrich},
    strategy::{Brief, Digest, Snapshot, View, without_model},
    testing::ExtractiveModel,
    tokens::ByteEstimate,
};

/// A function that reads prose.
type Reader = fn(&str);

/// All of them, by name.
pub const READERS: [(&str, Reader); 7] = [
    ("rules", rules),
    ("facts", facts),
    ("digest", digest),
    ("digest of a summary", digest_of_summary),
    ("recall", recall),
    ("redaction", redaction),
    ("extraction", extraction),
];

const COUNTER: ByteEstimate = ByteEstimate::TRIGGER;

/// Passes bytes as a text to every reader.
///
/// # Panics
///
/// If a reader fails or exceeds its bounds.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    READERS.iter().for_each(|(_, read)| read(&text));
}

fn rules(text: &str) {
    let (mut ledger, mut typed) = (Ledger::default(), TypedText::default());
    for (position, text) in ["Never use tabs. Try at most 3 times.", text, text].iter().enumerate()
    {
        typed.read(position, &Message::user(*text));
    }
    // Each quote is looked for in all that was typed, and their number is bounded.
    let few: String = text.chars().take(160).collect();
    for list in ["user_rules", "user_lifted"] {
        let (_, quotes) = Quotes::cut(&format!("{text}\n<{list}>\n{few}\n- {few} => {few}"));
        let changes = ledger.quoted(&quotes, &typed, &Moderators::Everybody);
        assert!(changes.rules.iter().all(|rule| typed.find(&rule.text).is_some()));
        ledger.apply(&changes);
    }
    let _ = ledger.add(text);
    let _ = ledger.find(text);
    assert!(ledger.rules().count() <= Ledger::MAX_RULES);
    assert!(ledger.rules().all(|rule| rule.text.len() <= Ledger::MAX_RULE_BYTES));
    assert!(ledger.to_text(500, &COUNTER).len() <= 2_000);
}

fn facts(text: &str) {
    let thread = thread(text);
    let options = RetentionPolicy::default();
    let lost = audit(&thread, &[], &options);
    assert_eq!((lost.overall.kept, lost.overall.facts), (0, lost.missing.len() as u64));
    let _ = audit(&thread, &[Message::assistant(format!("So: {text}"))], &options);
    let facts = Facts::of(&thread, &options);
    let _ = enrich(text, &facts, &[], &RetentionPolicy::default(), &COUNTER);
}

fn digest(text: &str) {
    let first = digested(thread(text));
    let again = first.map(|mut messages| {
        messages.splice(1..1, thread(text));
        messages
    });
    again.and_then(digested);
}

fn digest_of_summary(text: &str) {
    let body = text.split_once('\n').map_or(text, |(_, body)| body);
    let opening = "Digest of 3 earlier messages, quoted from them.";
    let quoted = format!("{opening}\n\n## Files, and how often tools were given them\n{body}");
    for text in [text, quoted.as_str()] {
        let mut messages = vec![Message::summary(Role::User, Summary::new(text))];
        messages.push(Message::assistant("It was looked at line after line. ".repeat(20)));
        digested(messages);
    }
}

/// The thread after a digest, if it gets shorter.
fn digested(mut messages: Vec<Message>) -> Option<Vec<Message>> {
    messages.extend((0..9).map(|step| Message::assistant(format!("Step {step} went well."))));
    let view = View::new(Snapshot::new(messages), Brief::default());
    let proposal = without_model(&Digest::default(), &view).ok()?;
    let after = view.thread.accept(&proposal.plan, &view.brief);
    Some(after.expect("what a digest proposes is legal"))
}

fn recall(text: &str) {
    let (mut log, messages) = (EventLog::new("main".parse().expect("a name")), thread(text));
    for message in &messages {
        log.append(Timestamp(1), Event::MessageAppended(message.clone())).expect("a message");
    }
    let plan = Plan::new(&messages, &[Replacement::new("All.")], &CompactOptions::default());
    let Ok(plan) = plan else { return };
    let record = CompactionRecord::new(CompactionId(0), CompactionReason::Threshold, "own", plan);
    log.append(Timestamp(2), Event::Compacted(Box::new(record))).expect("it fits");
    let end = (0..=text.len().min(900)).rev().find(|at| text.is_char_boundary(*at));
    let query = text.get(..end.unwrap_or_default()).unwrap_or_default();
    for input in [json!({"query": query}), json!({})] {
        let Ok(found) = Recall::of(&log).call(&input) else { continue };
        assert!(found.len() <= MAX_BYTES, "{}", found.len());
    }
}

fn redaction(text: &str) {
    for message in thread(text) {
        let redacted = message.redacted(&Digits);
        assert_eq!(redacted.redacted(&Digits), redacted);
    }
}

/// Removes all digits.
#[derive(Debug)]
struct Digits;

impl Redactor for Digits {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.replace(|c: char| c.is_ascii_digit(), "#").into()
    }
}

fn extraction(text: &str) {
    let mut messages = thread(text);
    messages.push(Message::user("Sum it up."));
    let mut turn = pin!(ExtractiveModel.complete(Request::new(messages)));
    let turn = turn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(turn, Poll::Ready(Ok(_))), "it waits for nothing");
}

/// A thread in which every role says the text.
fn thread(text: &str) -> Vec<Message> {
    let input = serde_json::json!({ "command": text, "path": text, "todos": [text] });
    let call = ToolUse::new("t1", "bash", input);
    let mut result = ToolResult::text("t1", text);
    result.is_error = true;
    let said = if text.trim().is_empty() { "." } else { text };
    vec![
        Message::user(said),
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::User, vec![result.into()]),
        Message::assistant(said),
    ]
}
