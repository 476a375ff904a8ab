//! Calls separated from their results, and calls of tools that are not offered or are written as
//! prose.

use super::*;

#[test]
fn no_strategy_separates_calls_from_results_or_parallel_results() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let part = AtomicU64::new(1);
        let model = Played::new(move |request| {
            let rounds = request.messages.iter().rev().take_while(|m| !m.is_typed()).count() / 2;
            let done = request.messages.last().unwrap().tool_results().last().is_some();
            if done && rounds >= 3 {
                return "Done.".into();
            }
            let first = part.fetch_add(3, Ordering::Relaxed);
            calls(&[(first, 9), (first + 1, 1), (first + 2, 30)])
        });
        let policy = policy();
        let mut bench = bench(9_000, model, |b| b.strategy(strategy).policy(policy));
        let events = bench.chat(12);
        assert!(begun_and_done(&events).1 >= 2, "{name}: {:?}", compactions(&events));
        for request in bench.model.asked() {
            assert_paired(&name, &request.messages);
            // No codec must repair it either.
            for format in [Dialect::Anthropic, Dialect::OpenAiChat] {
                let encoded = format.encode(&request, &EncodeOptions::default());
                assert_eq!(encoded.adjustments, [], "{name}");
            }
        }
        bench.assert_sound();
    }
}

/// Checks that every message with calls is followed by one with all of their results, in order.
fn assert_paired(name: &str, messages: &[Message]) {
    let ids = |message: Option<&Message>| -> Vec<String> {
        message.iter().flat_map(|m| m.tool_results()).map(|r| r.tool_use_id.to_string()).collect()
    };
    for (place, message) in messages.iter().enumerate() {
        let called: Vec<String> = message.tool_uses().map(|call| call.id.to_string()).collect();
        assert!(called.is_empty() || called.len() == 3, "{name}: {called:?}");
        if !called.is_empty() {
            assert_eq!(ids(messages.get(place + 1)), called, "{name}");
        }
        let called_before = place > 0 && messages[place - 1].tool_uses().next().is_some();
        assert!(ids(Some(message)).is_empty() || called_before, "{name}: at {place}");
    }
}

// Old tasks and finished work.

#[test]
fn the_tools_are_offered_unchanged_after_a_compaction() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = policy();
        let mut bench = bench(12_000, Played::new(writes(40, 40)), |b| {
            b.strategy(strategy).policy(policy).compact_context_tool()
        });
        let events = bench.events("Write all parts.");
        assert!(begun_and_done(&events).1 >= 1, "{name}: {:?}", compactions(&events));
        let asked = bench.model.asked();
        let names = ["write", COMPACT_CONTEXT];
        for request in &asked {
            let offered: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(offered, names, "{name}");
            // Requests for summaries forbid tool calls; requests of the conversation do not.
            assert_eq!(request.tool_choice, None, "{name}");
            let body = Dialect::Anthropic.encode(request, &EncodeOptions::default()).body;
            assert!(!body.as_str().contains("tool_choice"), "{name}");
        }
    }
}

#[test]
fn no_strategy_writes_calls_as_text_into_the_thread() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(writes(12, 40)).summing_up(sums_up_in_prose);
        let mut bench = bench(12_000, model, |b| b.strategy(strategy));
        bench.events("Write all parts.");
        bench.events("@compact Write all parts.");
        assert!(!bench.records().is_empty(), "{name}");
        for request in bench.model.asked() {
            let texts = texts(&request.messages);
            let notations = [
                "tool_use",
                "tool_call",
                "tool_result",
                "<invoke",
                "<function",
                "call-",
                "\"lines\"",
            ];
            for notation in notations {
                assert!(!texts.contains(notation), "{name} writes {notation:?}: {texts}");
            }
        }
    }
}
