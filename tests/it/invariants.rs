//! Invariants of every compaction with every strategy, on generated threads and on real ones:
//!
//! 1. Every result comes directly after its call, and every call has a result.
//! 2. Kept messages keep their order, and none is there twice.
//! 3. The first role is legal, and so are neighbours of one role, for all dialects.
//! 4. The text of a summary is in the request exactly once.
//! 5. The estimate afterwards is within the target, or the result states why not.
//! 6. A failure leaves log and thread as before, except for one event that reports it.
//! 7. Compacting again without new messages does nothing.
//! 8. After a success the trigger is false for the same state.
//! 9. The same input, clock and answers give the same output.
//! 10. Texts are cut at character boundaries. A cut elsewhere would panic, and the generated
//!     threads have texts in several scripts.

use std::sync::Arc;

use futures::executor::block_on;
use proptest::{prelude::*, sample::select};
use serde_json::Value;
use threadfold::{
    CompactionStrategy, ContentBlock, ContextWindow, Message, Model, Request, StrategyRegistry,
    auto::{AutoCompactor, AutoPolicy, Input, Pressure, Threshold},
    drive::{self, CompactionError, Conversation, Models},
    legality,
    log::{Event, EventLog},
    message::Timestamp,
    store::Journal,
    strategy::{Brief, KeepRecent, Proposal, Rolling, Snapshot, Summarize},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
    wire::{DecodeOptions, EncodeOptions},
};
use threadfold_testing::{TestClock, generate::legal_thread};

use crate::support::{brief::brief, recorded, tries::tries};

/// Every built-in strategy, some with the small numbers that short threads need.
fn strategies() -> Vec<Arc<dyn CompactionStrategy>> {
    let registry = StrategyRegistry::default();
    let mut all: Vec<Arc<dyn CompactionStrategy>> =
        registry.names().map(|name| Arc::clone(registry.get(name).unwrap())).collect();
    let small: [Arc<dyn CompactionStrategy>; 3] = [
        Arc::new(KeepRecent { messages: 3, ..KeepRecent::default() }),
        Arc::new(Summarize { messages: 2, user_messages: 1, ..Summarize::default() }),
        Arc::new(Rolling { keep_recent: 2, chunk_messages: 3, ..Rolling::default() }),
    ];
    all.extend(small);
    let ladder =
        r#"{"ladder": {"rungs": [{"summarize": {"messages": 2}}, "trim-tool-results", "digest"]}}"#;
    let ladder: serde_json::Value = serde_json::from_str(ladder).unwrap();
    all.push(registry.build(&ladder).unwrap());
    all
}

fn propose(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    model: &dyn Model,
) -> Result<Proposal, Box<CompactionError>> {
    let clock = TestClock::default();
    let models = Models { clock: Some(&clock), ..Models::one(model) };
    block_on(drive::propose(strategy, thread, brief, models, &mut |_, _| {})).map_err(Box::new)
}

/// Checks the invariants of one compaction. Returns the thread after it, if it was accepted.
fn check(
    strategy: &dyn CompactionStrategy,
    request: &Request,
    brief: &Brief,
    model: &dyn Fn() -> Box<dyn Model>,
) -> Option<Vec<Message>> {
    let name = strategy.name();
    let thread = Snapshot::of_request(request);
    let proposal = propose(strategy, &thread, brief, model().as_ref());
    let again = propose(strategy, &thread, brief, model().as_ref());
    let said = |proposal: &Result<Proposal, Box<CompactionError>>| match proposal {
        Ok(proposal) => serde_json::to_string(&proposal.plan).unwrap(),
        Err(error) => error.to_string(),
    };
    assert_eq!(said(&proposal), said(&again), "9: {name}");
    let after = thread.accept(&proposal.ok()?.plan, brief).unwrap();
    assert_eq!(legality::violations(&after), [], "1: {name}");
    assert_in_order(name, &request.messages, &after);
    let tokens = |messages: &[Message]| thread.counter().messages(messages);
    assert!(tokens(&after) < tokens(&request.messages), "5: {name}");
    assert!(brief.target.is_none_or(|target| tokens(&after) <= target), "5: {name}");
    if let Some(target) = brief.target {
        assert_silent(name, tokens(&after), target);
    }
    assert_sendable(name, request, &after);
    Some(after)
}

/// 2: the kept messages are those of the thread, in order, without duplicates.
fn assert_in_order(name: &str, before: &[Message], after: &[Message]) {
    // A result may have been trimmed, so calls and results go by their names.
    let key = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(call) => format!("call {}", call.id),
        ContentBlock::ToolResult(result) => format!("result {}", result.tool_use_id),
        ContentBlock::Summary(_) => String::new(),
        other => serde_json::to_string(other).unwrap(),
    };
    let mut there = before.iter().flat_map(|message| &message.content).map(key);
    let is_new = |message: &&Message| {
        message.content.iter().any(|block| matches!(block, ContentBlock::Summary(_)))
    };
    let blocks = after.iter().filter(|message| !is_new(message)).flat_map(|kept| &kept.content);
    for block in blocks.map(key) {
        assert!(there.any(|earlier| earlier == block), "2: {name} moved or doubled {block}");
    }
}

/// 8: the trigger with this target does not fire on the compacted thread.
fn assert_silent(name: &str, tokens: u64, target: u64) {
    let policy = AutoPolicy {
        threshold: Threshold::Tokens(target + 1),
        target: Threshold::Tokens(target),
        estimates_usage: true,
        ..AutoPolicy::default()
    };
    let window = Some(ContextWindow::new(target.saturating_mul(2).max(1_000)));
    let pressure = Pressure { window, thread: tokens, ..Pressure::default() };
    let said =
        AutoCompactor::new(policy).unwrap().handle(Timestamp(0), Input::BeforeRequest(pressure));
    assert_eq!(said, None, "8: {name}");
}

/// 3 and 4: every request is legal and complete.
fn assert_sendable(name: &str, request: &Request, after: &[Message]) {
    let options = EncodeOptions { accepts_prefill: true, ..EncodeOptions::default() };
    let next = Request { messages: after.to_vec().into(), ..request.clone() };
    let mut held = String::new();
    texts(&serde_json::to_value(after).unwrap(), &mut held);
    for (dialect, format) in recorded::FORMATS {
        let body = format.encode(&next, &options).body.to_value().unwrap();
        // Neighbours of one role are one turn there, and legal in the other dialect.
        if dialect == "anthropic-messages" {
            assert_eq!(body["messages"][0]["role"], "user", "3: {name}");
        }
        let mut sent = String::new();
        texts(&body, &mut sent);
        for summary in after.iter().flat_map(|message| &message.content).filter_map(summary) {
            // Text that could close or open a tag is escaped in the body, and a text that is part
            // of others is found in them.
            let is_alone = held.matches(summary).count() == 1 && !has_tag(summary);
            if summary.len() >= 60 && is_alone {
                assert_eq!(sent.matches(summary).count(), 1, "4: {name}: {summary}");
            }
        }
        let decoded = format.decode_slice(body.to_string().as_bytes(), &DecodeOptions::default());
        assert_eq!(legality::violations(&decoded.unwrap().messages), [], "1: {name}, {dialect}");
    }
}

fn summary(block: &ContentBlock) -> Option<&str> {
    if let ContentBlock::Summary(summary) = block {
        Some(summary.text.as_str().trim())
    } else {
        None
    }
}

/// All strings of a body, one after the other.
fn texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// 7: the same compaction of the compacted thread does nothing, whatever its reason. Only a ladder
/// whose first rung failed may find more with that rung in the result of another one, and stops
/// after a few times.
fn assert_settled(strategy: &dyn CompactionStrategy, after: &[Message], brief: &Brief) {
    let more = if strategy.name() == "ladder" { 3 } else { 0 };
    let mut thread = after.to_vec();
    for _ in 0..more {
        let snapshot = Snapshot::new(thread.clone());
        let Ok(proposal) = propose(strategy, &snapshot, brief, &ExtractiveModel) else { return };
        proposal.plan.apply(&mut thread).unwrap();
    }
    let again = propose(strategy, &Snapshot::new(thread.clone()), brief, &ExtractiveModel);
    let took = again.map(|proposal| proposal.plan);
    assert!(took.is_err(), "7: {} {brief:?} took more of {thread:#?}: {took:#?}", strategy.name());
}

/// 6: a failure adds one event and changes nothing else.
fn assert_untouched_by_failure(
    strategy: &dyn CompactionStrategy,
    messages: &[Message],
    way: &Scripted,
) {
    let mut journal = Journal::new(EventLog::new("t".parse().unwrap()));
    for message in messages {
        journal.append(Timestamp(1), Event::MessageAppended(message.clone())).unwrap();
    }
    let (log, before) = (journal.log().clone(), journal.thread().messages().clone());
    let (clock, model) = (TestClock::default(), ScriptedModel::repeating([way.clone()]));
    let models = Models { clock: Some(&clock), ..Models::one(&model) };
    let brief = Brief { now: Timestamp(2), ..Brief::default() };
    let mut conversation = Conversation::new(&mut journal);
    let done =
        block_on(drive::compact(&mut conversation, strategy, &brief, models, &mut |_, _| {}));
    let (after, thread) = (journal.log(), journal.thread());
    assert_eq!(after.replay(), thread.messages()[..], "{}", strategy.name());
    assert_eq!(after.events()[..log.events().len()], *log.events());
    if let Err(error) = done {
        assert!(error.strategy().is_some(), "{error}");
        assert!(Arc::ptr_eq(thread.messages(), &before), "6: {}", strategy.name());
        assert!(after.batches().unwrap().is_empty(), "6: {}", strategy.name());
        if error.strategy().unwrap().is_nothing_to_compact() {
            assert_eq!(after.len(), log.len(), "6: {}", strategy.name());
            return;
        }
        let noted = matches!(after.events().last().unwrap().event, Event::CompactionFailed(_));
        assert!(noted, "6: {}", strategy.name());
    }
    assert_eq!(after.len(), log.len() + 1);
}

proptest! {
    #![proptest_config(tries(120))]

    #[test]
    fn the_invariants_hold_on_generated_threads(thread in legal_thread(0..16), brief in brief()) {
        let request = Request::new(thread);
        for strategy in strategies() {
            let model = || Box::new(ExtractiveModel) as Box<dyn Model>;
            if let Some(after) = check(strategy.as_ref(), &request, &brief, &model) {
                assert_settled(strategy.as_ref(), &after, &brief);
            }
        }
    }

    #[test]
    fn the_invariants_hold_if_the_model_misbehaves(
        thread in legal_thread(0..16), brief in brief(), way in select(Scripted::misbehaving())
    ) {
        // A megabyte of text is tested once, below, because it is slow and finds little.
        prop_assume!(!matches!(way, Scripted::Inflates));
        let request = Request::new(thread);
        for strategy in strategies() {
            let model = || Box::new(ScriptedModel::repeating([way.clone()])) as Box<dyn Model>;
            check(strategy.as_ref(), &request, &brief, &model);
            assert_untouched_by_failure(strategy.as_ref(), &request.messages, &way);
        }
    }
}

#[test]
fn the_invariants_hold_on_real_transcripts() {
    for (name, _, request) in recorded::requests() {
        let (messages, _) = legality::repair(request.messages.to_vec());
        let request = Request { messages: messages.into(), ..request };
        let tokens = Snapshot::of_request(&request).counter().messages(&request.messages);
        for strategy in strategies() {
            for target in [None, Some(tokens / 2), Some(tokens / 4)] {
                let brief = Brief { target, now: Timestamp(7), ..Brief::default() };
                let model = || Box::new(ExtractiveModel) as Box<dyn Model>;
                let after = check(strategy.as_ref(), &request, &brief, &model);
                if let Some(after) = after {
                    assert_settled(strategy.as_ref(), &after, &brief);
                }
            }
            for way in Scripted::misbehaving() {
                assert_untouched_by_failure(strategy.as_ref(), &request.messages, &way);
            }
        }
        println!("{name}: checked");
    }
}

/// Whether a text holds something that could be read as a tag of ours.
fn has_tag(text: &str) -> bool {
    let names = ["conversation-summary", "system-reminder", "checkpoint", "context-update"];
    names.iter().any(|name| text.contains(name))
}
