//! The list of standing rules: its bounds and its text.

use proptest::prelude::*;
use threadfold::{
    ledger::{Ledger, Rule},
    tokens::{ByteEstimate, TokenCounter},
};

use crate::support::tries::tries;

const COUNTER: ByteEstimate = ByteEstimate::TRIGGER;

#[test]
fn a_rule_is_stored_with_the_position_of_its_message() {
    let mut ledger = Ledger::default();
    ledger.quote(7, "Always use tabs.").unwrap();
    let rule = ledger.rules().next().unwrap();
    let stored =
        r#"{"id":"6c876a01f760e74d","text":"Always use tabs.","position":7,"status":"active"}"#;
    assert_eq!(serde_json::to_string(rule).unwrap(), stored);
    assert_eq!(&serde_json::from_str::<Rule>(stored).unwrap(), rule);
}

#[test]
fn a_ledger_is_bounded_and_counts_omitted_rules() {
    let mut ledger = Ledger::default();
    for n in 0..150 {
        ledger.quote(0, &format!("Never open drawer number {n}.")).unwrap();
    }
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
}
