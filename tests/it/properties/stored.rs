//! Stored forms: written values are read back unchanged.

use std::fmt::Debug;

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use threadfold::{
    Answer, Message, Request, compact, legality,
    message::{Extra, Json, StopReason, ToolChoice, ToolSpec},
};
use threadfold_testing::{
    generate::{junk_thread, legal_thread},
    notation,
};

use super::{picks, replacements};
use crate::support::tries::tries;

fn comes_back<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = serde_json::to_string(value).unwrap();
    let read: T = serde_json::from_str(&text).unwrap();
    prop_assert_eq!(&read, value);
    prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
    Ok(())
}

proptest! {
    #![proptest_config(tries(150))]

    #[test]
    fn messages_round_trip(legal in legal_thread(0..8), junk in junk_thread(0..8)) {
        comes_back(&legal)?;
        comes_back(&junk)?;
    }

    #[test]
    fn violations_and_repairs_round_trip(thread in junk_thread(0..10)) {
        comes_back(&legality::violations(&thread))?;
        comes_back(&legality::repair(thread).1)?;
    }

    #[test]
    fn plans_and_reports_round_trip(thread in legal_thread(0..8), picks in picks()) {
        if let Ok(compacted) = compact(&thread, &replacements(&thread, &picks)) {
            comes_back(&compacted.plan)?;
            comes_back(&compacted.report)?;
        }
        comes_back(&replacements(&thread, &picks))?;
    }

    #[test]
    fn requests_and_turns_round_trip(thread in legal_thread(0..6), number in 0_u64..4) {
        let schema = Json::parse(r#"{"type":"object","b":1.0,"a":[]}"#).unwrap();
        let choices = [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Tool("read".into())];
        let request = Request {
            tools: vec![ToolSpec::new("read", "Reads.", schema.clone())].into(),
            tool_choice: choices.get(number as usize).cloned(),
            max_output: Some(number),
            temperature: Some(0.5),
            cache: true,
            extra: Extra::new("acme", [("z", schema)]),
            ..Request::new(thread.clone())
        };
        comes_back(&request.with_system("be brief"))?;
        for message in thread {
            comes_back(&Answer::new(message, StopReason::from("tired"), None))?;
        }
    }

    #[test]
    fn the_notation_is_stable(thread in legal_thread(0..10)) {
        let text = notation::write(&thread);
        let read = notation::parse(&text).unwrap();
        prop_assert_eq!(notation::write(&read), text.clone());
        prop_assert_eq!(notation::parse(&notation::write(&read)).unwrap(), read.clone());
        prop_assert_eq!(legality::violations(&read), []);
        let shape = |messages: &[Message]| -> Vec<usize> {
            messages.iter().map(|message| message.content.len()).collect()
        };
        prop_assert_eq!(shape(&read), shape(&thread), "{}", text);
    }
}
