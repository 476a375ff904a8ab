//! The sentences that a ledger recognises as rules and revocations: cases as data, limits, hostile
//! texts.

use std::fs;

use proptest::prelude::*;
use serde::Deserialize;
use threadfold::{
    ContentBlock, Message,
    ledger::{Ledger, Rule, RuleStatus},
    message::{Role, Summary, ToolResult},
    tokens::{ByteEstimate, TokenCounter},
};

use crate::support::tries::tries;

const COUNTER: ByteEstimate = ByteEstimate::TRIGGER;

/// Events, and the rules after them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    steps: Vec<Step>,
    rules: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    User(String),
    Assistant(String),
    Tool(String),
    Reminder(String),
    Summary(String),
    Add(String),
    Revoke(String),
}

fn ledger(steps: &[Step]) -> Ledger {
    let mut ledger = Ledger::default();
    for (position, step) in steps.iter().enumerate() {
        let message = match step {
            Step::User(text) => Message::user(text.as_str()),
            Step::Assistant(text) => Message::assistant(text.as_str()),
            Step::Tool(text) => {
                Message::new(Role::User, vec![ToolResult::text("t1", text.as_str()).into()])
            }
            Step::Reminder(text) => {
                let reminder = ContentBlock::reminder(text.as_str());
                Message::new(Role::User, vec![ContentBlock::text("Go on."), reminder])
            }
            Step::Summary(text) => Message::summary(Role::User, Summary::new(text.as_str())),
            Step::Add(text) => {
                ledger.add(text).unwrap();
                continue;
            }
            Step::Revoke(text) => {
                let id = ledger.find(text).unwrap().id.clone();
                assert!(ledger.revoke(&id));
                continue;
            }
        };
        ledger.read(position, &message);
    }
    ledger
}

fn row(rule: &Rule) -> (String, String) {
    let status = match rule.status {
        RuleStatus::Active => "active",
        RuleStatus::Superseded { .. } => "superseded",
        RuleStatus::Revoked => "revoked",
        _ => "unknown",
    };
    (rule.text.to_string(), status.to_owned())
}

#[test]
fn rules_are_found_kept_and_revoked() {
    let mut wrong = Vec::new();
    for name in ["found", "near-misses", "taken-back"] {
        let text = fs::read_to_string(format!("testdata/ledger/{name}.json")).unwrap();
        for case in serde_json::from_str::<Vec<Case>>(&text).unwrap() {
            let found: Vec<_> = ledger(&case.steps).rules().map(row).collect();
            if found != case.rules {
                wrong.push(format!("{name}: {}: {found:#?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_rule_has_the_position_of_its_message_and_its_successor() {
    let mut ledger = Ledger::default();
    ledger.read(4, &Message::user("Never use tabs."));
    ledger.read(7, &Message::user("Always use tabs."));
    let rules: Vec<&Rule> = ledger.rules().collect();
    let [never, always] = rules[..] else { panic!("{rules:?}") };
    assert_eq!(never.position, Some(4));
    assert_eq!(never.status, RuleStatus::Superseded { by: always.id.clone() });
    let stored = r#"{"id":"6c876a01f760e74d","text":"Always use tabs.","source":{"message":{"position":7}},"status":"active"}"#;
    assert_eq!(serde_json::to_string(always).unwrap(), stored);
    assert_eq!(&serde_json::from_str::<Rule>(stored).unwrap(), always);
}

#[test]
fn a_ledger_is_bounded_and_counts_omitted_rules() {
    let mut ledger = Ledger::default();
    let many: String = (0..150).map(|n| format!("Never open drawer number {n}.\n\n")).collect();
    ledger.read(0, &Message::user(many));
    assert_eq!((ledger.rules().count(), ledger.left_out()), (Ledger::MAX_RULES, 50));
    let refusal = |ledger: &mut Ledger, text: &str| ledger.add(text).unwrap_err().rule;
    assert_eq!(
        refusal(&mut ledger, "Be brief.").as_str(),
        "there are 100 rules already, which is the maximum"
    );
    let first = ledger.rules().next().unwrap().id.clone();
    ledger.revoke(&first);
    assert!(ledger.add("Be brief.").is_ok());
    assert!(ledger.rules().all(|rule| rule.id != first));
    let long = "long ".repeat(200);
    assert_eq!(refusal(&mut ledger, &long).as_str(), "it has 999 bytes; the maximum is 600");
    assert_eq!(refusal(&mut ledger, " \n").as_str(), "it has no word");
}

proptest! {
    #![proptest_config(tries(200))]

    #[test]
    fn a_list_of_rules_is_a_list_within_its_budget(
        texts in proptest::collection::vec("[-a-z<>/# \n`(){}.:]{1,80}", 0..8),
        budget in 0_u64..200,
    ) {
        let mut ledger = Ledger::default();
        for text in &texts {
            let _ = ledger.add(text);
        }
        let list = ledger.to_text(budget, &COUNTER);
        prop_assert!(COUNTER.text(&list) <= budget);
        let lines: Vec<&str> = list.lines().collect();
        // Rules with one label stand below it, with a mark of their own.
        let rules = lines.iter().filter(|line| line.trim_start().starts_with("- ")).count();
        let notes = lines.iter().filter(|line| line.ends_with(" more did not fit.)") && line.starts_with('(')).count();
        prop_assert_eq!(rules + notes, lines.len());
        prop_assert!(notes == 1 || list.is_empty() || rules >= ledger.active().count());
    }

    #[test]
    fn reading_never_fails_and_is_deterministic(text in "(?s).{0,200}", more in "(never|always|use|you may|forget|not|tabs|[.<>/a`]|\n| ){0,60}") {
        let read = || {
            let mut ledger = Ledger::default();
            ledger.read(0, &Message::user(text.as_str()));
            ledger.read(1, &Message::user(more.as_str()));
            ledger
        };
        prop_assert_eq!(read(), read());
    }
}
