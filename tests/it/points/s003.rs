//! A tool without parameters, by which the agent asks for a compaction.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    auto::{AutoPolicy, Threshold},
    compaction,
    message::Json,
    session::SessionBuilder,
    strategy::Summarize,
    testing::Scripted,
};

use crate::support::bench::{Bench, bench, calls, say};

/// A session with eight rounds, whose model then calls `compact_context` with this input.
fn asked(input: &str) -> Bench {
    let talk = |round: usize| Scripted::from(format!("Old answer {round}: {}", "word ".repeat(40)));
    let mut script: Vec<Scripted> = (0..8).map(talk).collect();
    let call = Scripted::from(calls(&[("c", "compact_context", input)]));
    script.extend([call, "They talked.".into(), "Going on.".into()]);
    let summarize =
        Summarize { messages: 2, user_messages: 0, summary_tokens: 50, ..Summarize::default() };
    let policy = AutoPolicy {
        enabled: false,
        target: Threshold::Tokens(900),
        estimates_usage: true,
        ..AutoPolicy::default()
    };
    let mut bench = bench(script, |builder| {
        builder.compact_context_tool().strategy(Arc::new(summarize)).policy(policy)
    });
    for round in 0..8 {
        let text = format!("Old question {round}: {}", "word ".repeat(20));
        say(&mut bench.session, text).unwrap();
    }
    bench
}

fn result(bench: &Bench) -> Value {
    let request = bench.last_request();
    let last = request.messages.iter().flat_map(|message| message.tool_results()).last().unwrap();
    serde_json::from_str(last.content[0].as_text().unwrap()).unwrap()
}

#[test]
fn s003_01_the_tool_is_named_compact_context() {
    assert_eq!(compaction::compact_context_tool().name, "compact_context");
}

#[test]
fn s003_02_the_description_says_what_it_does() {
    let about = compaction::compact_context_tool().description;
    assert!(
        about.starts_with("Compress conversation history to free up context space."),
        "{about}"
    );
}

#[test]
fn s003_03_it_has_no_parameters() {
    let schema = compaction::compact_context_tool().input_schema;
    let expected = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(schema, Json::from(expected));
}

#[test]
fn s003_06_one_line_offers_it() {
    let mut bench = bench(["Hello!"], SessionBuilder::compact_context_tool);
    say(&mut bench.session, "Hi.").unwrap();
    assert!(bench.last_request().tools.iter().any(|tool| tool.name == "compact_context"));
}

#[test]
fn s003_07_the_agent_calls_it_without_parameters() {
    let mut bench = asked("{}");
    assert_eq!(say(&mut bench.session, "Work.").unwrap().text, "Going on.");
    assert_eq!(bench.session.log().standing().count(), 1);
}

#[test]
fn s003_08_the_result_has_four_numbers() {
    let mut bench = asked("{}");
    say(&mut bench.session, "Work.").unwrap();
    let result = result(&bench);
    let number =
        |field: &str| result[field].as_u64().unwrap_or_else(|| panic!("{field}: {result}"));
    assert!(number("messagesCompressed") > 4 && number("batchesCreated") == 1, "{result}");
    assert!(number("tokensEstimateAfter") < number("tokensEstimateBefore"), "{result}");
}

#[test]
fn s003_10_the_next_call_gets_the_shorter_history() {
    let mut bench = asked("{}");
    say(&mut bench.session, "Work.").unwrap();
    let sent = bench.last_sent();
    assert!(sent.contains("They talked.") && !sent.contains("Old answer 0"), "{sent}");
    assert!(bench.last_request().messages.len() < 16);
}

#[test]
fn s003_14_the_result_is_in_the_thread_and_in_the_store() {
    let mut bench = asked("{}");
    say(&mut bench.session, "Work.").unwrap();
    let stored = block_on(bench.session.whole_log()).unwrap().into_owned();
    for messages in [bench.session.messages().to_vec(), stored.replay()] {
        let results = messages.iter().flat_map(|message| message.tool_results());
        assert!(results.map(|result| &result.tool_use_id).any(|id| *id == "c"));
    }
    bench.assert_whole();
}

#[test]
fn s003_17_superfluous_parameters_do_no_harm() {
    let mut bench = asked(r#"{"level": 3, "why": "it is long"}"#);
    say(&mut bench.session, "Work.").unwrap();
    assert!(result(&bench)["messagesCompressed"].as_u64().unwrap() > 4);
}
