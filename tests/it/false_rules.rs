//! Ordinary talk gives no rules: fewer than one in 200 typed messages.
//!
//! The talk of `testdata/talk` is in six languages. The threads are those of
//! `testdata/threads` and of the folder that `THREADFOLD_TRANSCRIPTS` names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use threadfold::{Message, ledger::Ledger};

use crate::support::recorded::requests;

/// How many typed messages there are for each false rule that is allowed.
const MESSAGES: usize = 200;

#[derive(Deserialize)]
struct Talk {
    nouns: Vec<String>,
    /// Messages, with `{}` for a noun.
    lines: Vec<String>,
}

#[test]
fn fewer_than_one_in_two_hundred_ordinary_messages_gives_a_rule() {
    let talk = include_str!("../../testdata/talk/ordinary.json");
    let talk: BTreeMap<String, Talk> = serde_json::from_str(talk).unwrap();
    for (language, Talk { nouns, lines }) in talk {
        let messages: Vec<String> = lines
            .iter()
            .flat_map(|line| nouns.iter().map(|noun| line.replace("{}", noun)))
            .collect();
        // Some people send two of them at once.
        let pairs = messages.iter().zip(messages.iter().skip(7));
        let pairs = pairs.map(|(one, other)| format!("{one} {other}"));
        let all: Vec<String> = messages.iter().cloned().chain(pairs).collect();
        let false_rules: Vec<_> =
            all.iter().filter(|text| !rules(&Message::user(text.as_str())).is_empty()).collect();
        println!("{language}: {} false rules in {} messages", false_rules.len(), all.len());
        let allowed = (all.len() - 1) / MESSAGES;
        assert!(false_rules.len() <= allowed, "{language}: {false_rules:?}");
    }
}

/// The prompts of some agents and users are instructions for all that follows; nothing else that was
/// typed is.
#[test]
fn in_real_transcripts_only_instructions_to_agents_give_rules() {
    const INSTRUCTIONS: [&str; 10] = [
        "claude-code.json",
        "claude-code-search-limit.json",
        "codex-split-pairs.json",
        "opencode-refusals.json",
        "pictures-orders-page.json",
        "qwen-code-balanced-tree.json",
        "research-tidal-lagoon.json",
        "service-bike-rental.json",
        "swe-agent.json",
        "talk-about-a-canal.json",
    ];
    let (mut typed, mut found) = (0, BTreeSet::new());
    for (name, _, request) in requests() {
        for message in request.messages.iter().filter(|message| message.is_typed()) {
            typed += 1;
            if !rules(message).is_empty() {
                found.insert(name.clone());
            }
        }
    }
    println!("{typed} typed messages of transcripts, rules in {found:?}");
    found.retain(|name| !INSTRUCTIONS.contains(&name.as_str()));
    assert!(found.is_empty(), "{found:?}");
}

fn rules(message: &Message) -> String {
    let mut ledger = Ledger::default();
    ledger.read(0, message);
    ledger.to_string()
}
