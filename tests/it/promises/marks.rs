//! Marks that a compaction leaves: on reasoning, and checkpoints that name ranges.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use threadfold::{
    CheckpointId, CompactionStrategy, ContentBlock, Message, Plan, Request, Role, StrategyRegistry,
    async_trait,
    auto::{AutoPolicy, Threshold},
    compact::{Insert, Splice},
    message::{CompactionReason, Summary, Thinking, ToolUse},
    strategy::{Ask, Proposal, StrategyError, View},
    wire::{Dialect, EncodeOptions},
};

use super::provider::{Provider, Read, lines, reading_rounds, reasons};
use crate::support::bench::{events, say};

const WINDOW: u64 = 20_000;

/// A strategy of a host, as the guide shows one: its plan is made of splices.
#[derive(Debug)]
struct Splices(fn(&Arc<Vec<Message>>) -> Vec<Splice>);

#[async_trait]
impl CompactionStrategy for Splices {
    fn name(&self) -> &str {
        "splices"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let messages = view.thread.messages();
        Ok(Plan::from_splices(messages.len(), (self.0)(messages)).into())
    }
}

#[test]
fn reasoning_after_a_plan_of_splices_is_marked_and_not_sent_if_bound() {
    let provider = Provider::new(|_, place| {
        let thought =
            Thinking::new(format!("Hm, {place}."), Some(format!("signature-{place}").into()));
        Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text(lines(500))])
    });
    let first_two_go = |_: &Arc<Vec<Message>>| {
        let message = Message::summary(Role::User, Summary::new("They talked."));
        vec![Splice { at: 0..2, insert: vec![Insert::Message { message }] }]
    };
    let mut session =
        provider.session(Some(WINDOW), |builder| builder.strategy(Arc::new(Splices(first_two_go))));
    for text in ["One?", "Two?", "Three?"] {
        say(&mut session, text).unwrap();
    }
    let reported = events(&mut session, "/compact");
    assert_eq!(
        reasons(&reported),
        [CompactionReason::Manual { instructions: None }],
        "{reported:?}"
    );
    let kept: Vec<&Message> = session
        .messages()
        .iter()
        .filter(|message| message.content.iter().any(ContentBlock::is_reasoning))
        .collect();
    assert!(kept.iter().all(|message| message.prefix_rewritten), "{kept:#?}");

    say(&mut session, "Four?").unwrap();
    let sent = provider.conversation().pop().unwrap();
    assert!(bound(&sent).contains("They talked."));
    assert!(!bound(&sent).contains("signature-"), "{}", bound(&sent));
    assert_eq!(session.log().replay(), session.messages()[..]);
}

#[test]
fn a_plan_that_removes_results_without_their_calls_is_not_carried_out() {
    let last_results_go = |messages: &Arc<Vec<Message>>| {
        let place = messages.iter().rposition(|message| message.tool_results().next().is_some());
        let splice = |place| Splice { at: place..place + 1, insert: Vec::new() };
        place.map(splice).into_iter().collect()
    };
    let provider = Provider::new(|_, place| reading_rounds(place, 6));
    let mut session = provider.session(Some(WINDOW), |builder| {
        let strategy = Arc::new(Splices(last_results_go));
        builder.strategy(strategy).policy(early()).tool(Arc::new(Read(2_000)))
    });
    assert_eq!(say(&mut session, "Read it all.").unwrap().text, "I read it.");
    assert_eq!(provider.fault(WINDOW), None);
}

/// The request in the form for a provider that binds reasoning to everything before it.
fn bound(request: &Request) -> String {
    let options = EncodeOptions { binds_reasoning: true, ..EncodeOptions::default() };
    Dialect::Anthropic.encode(request, &options).body.as_str().to_owned()
}

/// The checkpoint at the end of a message.
fn checkpoint(message: &Message) -> Option<CheckpointId> {
    match message.content.last() {
        Some(ContentBlock::Checkpoint(checkpoint)) => Some(checkpoint.id),
        _ => None,
    }
}

fn is_summary_of_user(message: &Message) -> bool {
    message.role == Role::User && message.is_summary()
}

/// A policy that compacts early, so that most of the window stays free.
fn early() -> AutoPolicy {
    AutoPolicy { threshold: Threshold::Tokens(9_000), ..AutoPolicy::default() }
}

/// A session with this strategy that has just compacted automatically, and its messages before.
fn compacted(strategy: &Arc<dyn CompactionStrategy>) -> (Vec<Message>, Vec<Message>) {
    let provider = Provider::new(|_, _| Message::assistant(lines(600)));
    let mut session = provider.session(Some(WINDOW), |builder| {
        builder.strategy(Arc::clone(strategy)).policy(early()).checkpoints()
    });
    for turn in 0..40 {
        let before = session.messages().to_vec();
        let reported = events(&mut session, &format!("Question {turn}. {}", lines(100)));
        if !reasons(&reported).is_empty() {
            return (before, session.messages().to_vec());
        }
    }
    panic!("{} does not compact", strategy.name());
}

#[test]
fn after_an_automatic_compaction_summaries_and_kept_messages_end_with_a_checkpoint() {
    let registry = StrategyRegistry::default();
    for name in ["chunked", "digest", "rolling", "ladder", "summarize"] {
        let (before, after) = compacted(registry.get(name).unwrap());
        let unnamed: Vec<&Message> = after
            .iter()
            .filter(|message| message.role == Role::User && checkpoint(message).is_none())
            .collect();
        assert!(unnamed.is_empty(), "{name}: {unnamed:#?}");
        assert!(after.iter().any(is_summary_of_user), "{name}: {after:#?}");
        for kept in after.iter().filter(|message| message.is_typed()) {
            let same = |old: &&Message| old.content.first() == kept.content.first();
            let Some(old) = before.iter().find(same) else { continue };
            assert_eq!(checkpoint(kept), checkpoint(old), "{name}: {kept:#?}");
        }
    }
}

#[test]
fn the_agent_can_name_a_range_by_the_checkpoint_of_a_summary() {
    let called = AtomicBool::new(false);
    let provider = Provider::new(move |request, _| {
        let messages = &request.messages;
        let summary = messages.iter().position(is_summary_of_user);
        let from = summary.and_then(|place| checkpoint(&messages[place]));
        let to = messages.iter().rev().skip(1).find_map(checkpoint);
        let range = from.zip(to).filter(|(from, to)| from != to);
        match range {
            Some((from, to)) if !called.swap(true, Ordering::Relaxed) => {
                let (from, to) = (from.to_string(), to.to_string());
                let ranges =
                    json!({"replacements": [{"from": from, "to": to, "summary": "More talk."}]});
                let call = ToolUse::new("ranges", "compact", ranges);
                Message::new(Role::Assistant, vec![call.into()])
            }
            _ => Message::assistant(lines(600)),
        }
    });
    let mut session =
        provider.session(Some(WINDOW), |builder| builder.compact_tool().policy(early()));
    let mut reported = Vec::new();
    for turn in 0..40 {
        reported.extend(events(&mut session, &format!("Question {turn}. {}", lines(100))));
    }
    assert!(reported.iter().all(Result::is_ok));
    assert!(reasons(&reported).contains(&CompactionReason::AgentTool), "{:?}", reasons(&reported));
    assert!(session.log().standing().count() > 1);
}
