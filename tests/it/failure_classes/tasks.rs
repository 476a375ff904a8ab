//! Old tasks that are resumed, and lost rules.

use super::*;

#[test]
fn the_newest_message_of_the_user_comes_last_and_after_the_summary() {
    let newest = "Now count the doors, and nothing else.";
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        if ["keep-recent", "trim-tool-results"].contains(&name.as_str()) {
            continue;
        }
        let mut bench = bench(20_000, Played::new(chats), |b| b.strategy(strategy));
        bench.chat(20);
        let events = bench.events(format!("@compact {newest}"));
        assert_eq!(begun_and_done(&events), (1, 1), "{name}: {:?}", compactions(&events));
        let request = bench.last_asked();
        let last = request.messages.last().unwrap();
        assert_eq!(last.content[0].as_text().map(Text::as_str), Some(newest), "{name}");
        // The tag of the summary is closed.
        let body = Dialect::Anthropic.encode(&request, &EncodeOptions::default()).body;
        let body = body.as_str();
        assert_eq!(body.matches("<conversation-summary>").count(), 1, "{name}");
        let end = body.find("</conversation-summary>").unwrap();
        assert!(body.find(newest).unwrap() > end, "{name}");
        // Earlier typed text is there once, and in order.
        let rounds = request.messages.iter().filter(|message| message.is_typed()).map(round_of);
        let rounds: Vec<_> = rounds.collect();
        assert!(rounds.is_sorted() && rounds.last() == Some(&99), "{name}: {rounds:?}");
        assert_eq!(HashSet::<_>::from_iter(&rounds).len(), rounds.len(), "{name}: {rounds:?}");
        bench.assert_sound();
    }
}

/// The round of a question; all other messages come after the questions.
fn round_of(message: &Message) -> usize {
    (0..99).find(|round| typed(&question(*round), std::slice::from_ref(message))).unwrap_or(99)
}

#[test]
fn the_summariser_is_asked_to_separate_done_from_open_work() {
    let words = [
        ("summarize", "past tense about work that is done"),
        ("summarize", "what is finished, so that nobody does it again"),
        ("chunked", "what is done, what is in progress, what has not been started"),
        ("chunked", "You take no part in the conversation and do none of its work"),
        ("rolling", "in the order in which it happened"),
        ("rolling", "You take no part in the conversation and do none of its work"),
    ];
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let mut bench = bench(20_000, Played::new(chats), |b| b.strategy(strategy));
        bench.chat(20);
        bench.events("/compact");
        for request in bench.model.summaries() {
            let asked = serde_json::to_string(&(&request.system, &request.messages)).unwrap();
            for (_, words) in words.iter().filter(|(strategy, _)| *strategy == name) {
                assert!(asked.contains(words), "{name} does not say {words:?}");
            }
        }
        // A digest, which no model writes, states the task itself.
        if name == "digest" {
            let summary = summaries(bench.session.messages()).pop().unwrap();
            assert!(
                summary.text.contains("Their steps are done, the task may not be"),
                "{}",
                summary.text
            );
        }
    }
}

#[test]
fn work_done_before_a_compaction_is_not_repeated() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = policy();
        let model = Played::new(writes(40, 40)).summing_up(sums_up_in_prose);
        let mut bench = bench(12_000, model, |b| b.strategy(strategy).policy(policy));
        let events = bench.events("Write all parts.");
        assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{name}");
        assert!(begun_and_done(&events).1 >= 1, "{name}: {:?}", compactions(&events));
        assert_eq!(bench.tool.parts(), (1..=40).collect::<Vec<_>>(), "{name}");
        bench.assert_sound();
    }
}

// Rules and corrections.

#[test]
fn the_newest_typed_text_stays_word_for_word_with_every_strategy() {
    let task = "Write all parts, each in its own file, and never use tabs: \u{201e}ä\u{201c}  ok?";
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let works = writes(12, 30);
        let model = Played::new(move |request| {
            if typed(task, &request.messages) { works(request) } else { chats(request) }
        });
        let mut bench = bench(20_000, model, |b| b.strategy(strategy).compact_context_tool());
        bench.chat(10);
        bench.say(task).unwrap();
        let events = bench.events("/compact");
        assert_eq!(begun_and_done(&events), (1, 1), "{name}: {:?}", compactions(&events));
        assert!(typed(task, bench.session.messages()), "{name}");
        bench.assert_sound();
    }
}

#[test]
fn the_last_three_messages_of_the_user_survive_a_summary() {
    for strategy in [
        Arc::new(summarize()) as Arc<dyn CompactionStrategy>,
        Arc::new(Digest { messages: 4, digest_tokens: 600, ..Digest::default() }),
        Arc::new(Ladder::default()),
    ] {
        let name = strategy.name().to_owned();
        let model = Played::new(chats).summing_up(|_| "They talked.".into());
        let mut bench = bench(20_000, model, |b| b.strategy(strategy));
        bench.chat(20);
        let first = bench.events("/compact");
        assert_eq!(begun_and_done(&first), (1, 1), "{name}");
        let kept: Vec<usize> =
            (0..20).filter(|round| typed(&question(*round), bench.session.messages())).collect();
        assert!(
            kept.len() >= 5,
            "two of the tail and three of the summarised part are kept; {name}: {kept:?}"
        );
        assert_eq!(kept, (20 - kept.len()..20).collect::<Vec<_>>(), "{name}: the last ones");
    }
}

#[test]
fn a_rule_survives_four_digests() {
    let rule = "You must never touch the lexer.";
    let model = Played::new(chats).summing_up(|_| fails(ModelErrorKind::Other));
    let mut bench = bench(20_000, model, |b| b);
    bench.chat(3);
    // So much text comes before the rule that no beginning of a message contains it.
    bench.say(format!("{} {rule}", "Port the parser to Rust, file by file. ".repeat(12))).unwrap();
    for generation in 1..=4 {
        bench.chat(25);
        let events = bench.events("/compact");
        assert_eq!(begun_and_done(&events), (1, 1), "{generation}: {:?}", compactions(&events));
        bench.say("Go on.").unwrap();
        let sent = texts(&bench.last_asked().messages);
        assert!(sent.contains(rule), "generation {generation}: {sent}");
    }
    bench.assert_sound();
}

#[test]
fn the_summariser_is_asked_to_keep_every_rule_of_the_user() {
    for (strategy, words) in [
        (
            Arc::new(summarize()) as Arc<dyn CompactionStrategy>,
            "Every preference, constraint and correction that the user has stated. Quote them.",
        ),
        (
            Arc::new(Chunked::default()),
            "Every preference, constraint and correction that the user has stated. Quote them.",
        ),
        (
            Arc::new(Rolling { keep_recent: 4, ..Rolling::default() }),
            "every constraint, preference and correction that the user stated, in their own words",
        ),
    ] {
        let mut bench = bench(20_000, Played::new(chats), |b| b.strategy(strategy));
        bench.chat(20);
        bench.events("/compact");
        let asked = bench.model.summaries();
        assert!(!asked.is_empty());
        for request in asked {
            let asked = serde_json::to_string(&(&request.system, &request.messages)).unwrap();
            assert!(asked.contains(words), "no {words:?}");
        }
    }
}

#[test]
fn the_system_prompt_is_the_same_in_every_request() {
    let mut bench = bench(9_000, Played::new(chats), |b| b.system("Never use tabs."));
    let events = bench.chat(60);
    assert!(begun_and_done(&events).1 >= 1);
    for request in bench.model.asked() {
        assert_eq!(request.system[..], [Message::system("Never use tabs.")]);
    }
}

// Tools.
