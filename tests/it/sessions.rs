//! Whole sessions against scripted and hostile models, with a fixed clock and seed. The tests check
//! the requests that the model received and the stored log.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    Answer, ContentBlock, Message, ModelAgent, Role, TokenCounter, Usage, async_trait,
    auto::{AutoPolicy, Threshold},
    log::Event,
    message::{ModelErrorKind, StopReason, ToolResult, ToolSpec, ToolUse},
    model::{ModelError, Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, Session, SessionBuilder, SessionError, SessionEvent},
    store::{Journal, MemoryStore, ThreadStore},
    strategy::{KeepRecent, Summarize, TrimToolResults},
    testing::{Scripted, ScriptedModel},
    tokens::ByteEstimate,
};
use threadfold_testing::faulty_store;

use crate::support::{
    bench::{Bench, THREAD, bench, calls, compactions, events, policy, say, within},
    polls::poll,
};

#[test]
fn a_message_is_answered_and_both_are_kept() {
    let mut bench = bench(["Hello!"], |builder| builder.system("Be kind.").reminder("Be short."));
    let reply = say(&mut bench.session, "Hi.").unwrap();
    assert_eq!((reply.text.as_str(), reply.stop_reason), ("Hello!", Some(StopReason::EndTurn)));
    let times: Vec<_> = bench.session.log().events().iter().map(|logged| logged.at).collect();
    assert!(times[0] < times[1], "the clock is read again after the answer: {times:?}");
    let request = bench.last_request();
    assert_eq!(request.system[0], Message::system("Be kind."));
    assert_eq!(request.tools.len(), 2);
    let kinds: Vec<&str> = request.messages[0].content.iter().map(ContentBlock::kind).collect();
    assert_eq!(kinds, ["text", "system_reminder", "checkpoint"]);
    bench.assert_whole();
}

#[test]
fn every_call_gets_one_result_in_the_order_of_the_calls() {
    let asked = calls(&[
        ("a", "slow", "{\"n\":1}"),
        ("b", "quick", "{\"n\":2}"),
        ("c", "missing", "{}"),
        ("d", "quick", "{\"fail\":true}"),
        ("e", "quick", "[]"),
    ]);
    let mut bench = bench([Scripted::from(asked), "Done.".into()], |builder| builder);
    let events = events(&mut bench.session, "Go.");
    let finished = events.iter().filter_map(|event| match event {
        Ok(SessionEvent::ToolFinished { id, .. }) => Some(id.to_string()),
        _ => None,
    });
    assert_eq!(
        finished.collect::<Vec<_>>().last().map(String::as_str),
        Some("a"),
        "the slow call finishes last"
    );
    let request = bench.last_request();
    let results: Vec<(String, bool, String)> = request
        .messages
        .iter()
        .flat_map(|message| message.tool_results())
        .map(|result| {
            let text = result.content[0].as_text().unwrap();
            (result.tool_use_id.to_string(), result.is_error, text.to_string())
        })
        .collect();
    let result = |id: &str, is_error, text: &str| (id.to_owned(), is_error, text.to_owned());
    assert_eq!(results[0], result("a", false, "slow {\"n\":1}"));
    assert_eq!(results[1], result("b", false, "quick {\"n\":2}"));
    let missing = "There is no tool missing; there are slow, quick.";
    assert_eq!(results[2], result("c", true, missing));
    assert_eq!(results[3], result("d", true, "it failed as asked"));
    assert!(results[4].1 && results[4].2.starts_with("The input of the call cannot be read: "));
    let kinds = request.messages[2].content.iter().map(ContentBlock::kind);
    assert_eq!(
        kinds.collect::<Vec<_>>().last().copied(),
        Some("checkpoint"),
        "results carry one too"
    );
    bench.assert_whole();
}

/// A session after this many rounds, each of about a hundred tokens.
fn with_past(bench: &mut Bench, rounds: usize) {
    for round in 0..rounds {
        let text = format!("Old question {round}: {}", "word ".repeat(20));
        say(&mut bench.session, text).unwrap();
    }
}

fn past(rounds: usize) -> Vec<Scripted> {
    (0..rounds).map(|round| format!("Old answer {round}: {}", "word ".repeat(40)).into()).collect()
}

#[test]
fn the_command_compacts_and_asks_the_model_nothing_else() {
    let mut script = past(8);
    script.push("They talked.".into());
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)));
    with_past(&mut bench, 8);
    let asked = bench.model.requests().len();
    let events = events(&mut bench.session, "/compact the numbers");
    assert_eq!(bench.model.requests().len(), asked + 1, "the summary, and no answer");
    assert!(bench.last_sent().contains("the numbers"));
    let reported = compactions(&events);
    assert!(matches!(reported.first(), Some(CompactionEvent::Started { .. })), "{reported:?}");
    assert!(matches!(reported.last(), Some(CompactionEvent::Completed { .. })), "{reported:?}");
    assert_eq!(reported.iter().filter(|event| event.is_end()).count(), 1);
    let Some(Ok(SessionEvent::Notice { text })) = events.last() else { panic!("{events:?}") };
    assert!(text.starts_with("Compacted: 16 to "), "{text}");
    let last = &bench.session.log().events().last().unwrap().event;
    assert!(matches!(last, Event::LocalNotice { text: notice } if *notice == *text));
    let typed = serde_json::to_string(bench.session.messages()).unwrap();
    assert!(!typed.contains("/compact") && typed.contains("They talked."));
    bench.assert_whole();
}

#[test]
fn a_command_without_an_effect_reports_so_for_every_cause() {
    let error = ModelError::new(ModelErrorKind::Other, "the lamp is out");
    let mut script = past(8);
    script.push(Scripted::Error(error));
    let summarize = Summarize { messages: 2, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)));
    let events = events(&mut bench.session, "/compact");
    assert_eq!(compactions(&events), [], "there is nothing to compact, so nothing begins");
    assert!(matches!(events.last(), Some(Ok(SessionEvent::Notice { .. }))), "{events:?}");
    with_past(&mut bench, 8);
    let before = bench.session.messages().clone();
    let events = self::events(&mut bench.session, "/compact");
    let reported = compactions(&events);
    assert!(matches!(reported.last(), Some(CompactionEvent::Failed { .. })), "{reported:?}");
    assert_eq!(reported.iter().filter(|event| event.is_end()).count(), 1);
    let Some(Ok(SessionEvent::Notice { text })) = events.last() else { panic!("{events:?}") };
    assert_eq!(text, "Not compacted: the model call failed: the lamp is out.");
    assert_eq!(*bench.session.messages(), before);
    bench.assert_whole();
}

#[test]
fn a_prompt_after_the_command_is_sent_after_the_compaction() {
    let mut script = past(8);
    script.extend(["They talked.".into(), Scripted::from("Four.")]);
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)));
    with_past(&mut bench, 8);
    let reply = say(&mut bench.session, "@compact What is two and two?").unwrap();
    assert_eq!(reply.text, "Four.");
    let sent = bench.last_sent();
    assert!(sent.contains("They talked.") && !sent.contains("Old answer 0"), "{sent}");
    assert!(sent.contains("What is two and two?") && !sent.contains("@compact"));
    bench.assert_whole();
}

#[test]
fn the_thread_is_compacted_before_a_prompt_that_would_not_fit() {
    let mut script = past(8);
    script.extend(["They talked.".into(), Scripted::from("Four.")]);
    let summarize =
        Summarize { messages: 2, user_messages: 0, summary_tokens: 200, ..Summarize::default() };
    let threshold = Threshold::Tokens(1_000);
    let policy = AutoPolicy { threshold, ..policy() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)).policy(policy));
    with_past(&mut bench, 8);
    let events = events(&mut bench.session, "What is two and two?");
    let reported = compactions(&events);
    assert!(matches!(reported.last(), Some(CompactionEvent::Completed { .. })), "{reported:?}");
    let requests = bench.model.requests();
    let asked = serde_json::to_string(&requests[requests.len() - 2]).unwrap();
    assert!(asked.contains("What is two and two?"), "the summary is for the next prompt");
    let sent = bench.last_sent();
    assert!(sent.contains("They talked.") && sent.contains("What is two and two?"), "{sent}");
    assert!(!sent.contains("Old answer 0"), "{sent}");
    bench.assert_whole();
}

#[test]
fn a_compaction_that_fails_before_it_is_needed_does_not_end_the_turn() {
    let mut script = past(8);
    let error = ModelError::new(ModelErrorKind::Other, "the lamp is out");
    script.extend([Scripted::Error(error), Scripted::from("Four.")]);
    let summarize = Summarize { messages: 2, summary_tokens: 200, ..Summarize::default() };
    let policy = AutoPolicy { threshold: Threshold::Tokens(1_000), ..policy() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)).policy(policy));
    with_past(&mut bench, 8);
    let events = events(&mut bench.session, "What is two and two?");
    let reported = compactions(&events);
    assert!(matches!(reported.last(), Some(CompactionEvent::Failed { .. })), "{reported:?}");
    assert!(matches!(events.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{events:?}");
    assert!(bench.last_sent().contains("Old answer 0"));
    bench.assert_whole();
}

#[test]
fn after_a_refusal_for_length_the_thread_is_compacted_and_sent_again() {
    let overflow = ModelErrorKind::Overflow { limit: Some(900), found: None, output: None };
    let mut script = past(8);
    script.extend([
        Scripted::Error(ModelError::new(overflow, "prompt is too long")),
        Scripted::from("Four."),
    ]);
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(keep)));
    with_past(&mut bench, 8);
    let reply = say(&mut bench.session, "What is two and two?").unwrap();
    assert_eq!(reply.text, "Four.");
    let sent = bench.last_sent();
    assert!(sent.contains("two and two") && !sent.contains("Old answer 0"), "{sent}");
    bench.assert_whole();
}

#[test]
fn a_turn_that_no_compaction_makes_fit_ends_with_the_refusal() {
    let overflow = ModelErrorKind::Overflow { limit: Some(1_000), found: None, output: None };
    let refusal = Scripted::Error(ModelError::new(overflow, "prompt is too long"));
    let model = Arc::new(ScriptedModel::new(["Hello!".into(), refusal]));
    let mut session = Session::builder(ModelAgent::new(model)).build().unwrap();
    say(&mut session, "Hi.").unwrap();
    let error = say(&mut session, "word ".repeat(760)).unwrap_err();
    let SessionError::Model(refused) = error else { panic!("{error}") };
    assert!(refused.is_overflow() && refused.to_string().contains("prompt is too long"));
}

#[test]
fn a_request_that_cannot_fit_is_refused_with_numbers_and_not_sent() {
    let mut bench = within(1_000, Vec::<Scripted>::new(), |builder| builder);
    let long = "word ".repeat(2_000);
    let error = say(&mut bench.session, long).unwrap_err();
    let SessionError::CannotFit { floor, tokens, limit, .. } = error else { panic!("{error}") };
    assert!(floor > limit && tokens > limit && limit == 1_000, "{floor} {tokens} {limit}");
    assert_eq!(bench.model.requests().len(), 0);
    assert_eq!(bench.session.messages().len(), 0);
    bench.assert_whole();
}

#[test]
fn requests_fit_the_window_exactly() {
    let counter = ByteEstimate::TRIGGER;
    let prompt = "word ".repeat(2_000);
    let about = counter.message(&Message::user(prompt.as_str()));
    let mut sent = 0;
    for window in about..about + 100 {
        let mut bench = within(window, ["Yes."], |builder| builder.reminder("Be short."));
        let _ = say(&mut bench.session, prompt.as_str());
        for request in bench.model.requests() {
            assert!(counter.request(&request) <= window, "{window}");
            sent += 1;
        }
        bench.assert_whole();
    }
    assert!((1..100).contains(&sent), "{sent}");
}

/// The results that the model was sent for the tool, as JSON.
fn stats(bench: &Bench) -> Value {
    let request = bench.last_request();
    let results = request.messages.iter().flat_map(|message| message.tool_results());
    let last = results.last().unwrap();
    serde_json::from_str(last.content[0].as_text().unwrap()).unwrap()
}

#[test]
fn the_model_can_request_a_compaction_in_the_middle_of_its_work() {
    let mut script = past(8);
    script.extend([
        Scripted::from(calls(&[("c", "compact_context", "{}"), ("q", "quick", "{}")])),
        "They talked.".into(),
        "Going on.".into(),
    ]);
    let summarize =
        Summarize { messages: 2, user_messages: 0, summary_tokens: 50, ..Summarize::default() };
    let policy =
        AutoPolicy { enabled: false, target: Threshold::Tokens(900), ..AutoPolicy::default() };
    let mut bench = bench(script, |builder| {
        builder.compact_context_tool().strategy(Arc::new(summarize)).policy(policy)
    });
    with_past(&mut bench, 8);
    let reply = say(&mut bench.session, "Work.").unwrap();
    assert_eq!(reply.text, "Going on.");
    let sent = bench.last_sent();
    assert!(sent.contains("They talked.") && !sent.contains("Old answer 0"), "{sent}");
    let request = bench.last_request();
    let results = request.messages.iter().flat_map(|message| message.tool_results());
    let results: Vec<(&str, bool, &str)> = results
        .map(|result| {
            let text = result.content[0].as_text().unwrap();
            (result.tool_use_id.as_str(), result.is_error, text.as_str())
        })
        .collect();
    let [("c", false, stats), ("q", false, "quick {}")] = results.as_slice() else {
        panic!("{results:?}")
    };
    let stats: Value = serde_json::from_str(stats).unwrap();
    assert_eq!(stats["batchesCreated"], 1);
    assert!(stats["messagesCompressed"].as_u64().unwrap() > 4, "{stats}");
    let tokens = |field: &str| stats[field].as_u64().unwrap();
    assert!(tokens("tokensEstimateAfter") < tokens("tokensEstimateBefore"), "{stats}");
    bench.assert_whole();
}

/// Reports the length of the thread that it sees.
#[derive(Debug)]
struct Length;

#[async_trait]
impl Tool for Length {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("length", "Counts the messages.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok(context.messages.len().to_string().into())
    }
}

#[test]
fn calls_after_compact_context_see_the_compacted_thread() {
    let mut script = past(8);
    script.extend([
        Scripted::from(calls(&[
            ("a", "length", "{}"),
            ("c", "compact_context", "{}"),
            ("b", "length", "{}"),
        ])),
        "Going on.".into(),
    ]);
    let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
    let policy =
        AutoPolicy { enabled: false, target: Threshold::Tokens(300), ..AutoPolicy::default() };
    let mut bench = bench(script, |builder| {
        let builder = builder.compact_context_tool().tool(Arc::new(Length));
        builder.strategy(Arc::new(keep)).policy(policy)
    });
    with_past(&mut bench, 8);
    say(&mut bench.session, "Work.").unwrap();
    let request = bench.last_request();
    let results = request.messages.iter().flat_map(|message| message.tool_results());
    let texts: Vec<&str> =
        results.filter_map(|result| Some(result.content[0].as_text()?.as_str())).collect();
    let [before, _, after] = texts.as_slice() else { panic!("{texts:?}") };
    let length = |text: &str| text.parse::<usize>().unwrap();
    assert!(length(after) < length(before), "{texts:?}");
    bench.assert_whole();
}

#[test]
fn within_the_budget_the_tool_does_nothing_and_reports_zeros() {
    let script = [Scripted::from(calls(&[("c", "compact_context", "{}")])), "Fine.".into()];
    let mut bench = bench(script, SessionBuilder::compact_context_tool);
    say(&mut bench.session, "Work.").unwrap();
    let stats = stats(&bench);
    assert_eq!((&stats["messagesCompressed"], &stats["batchesCreated"]), (&json!(0), &json!(0)));
    assert_eq!(stats["tokensEstimateBefore"], stats["tokensEstimateAfter"]);
    bench.assert_whole();
}

#[test]
fn if_the_strategy_finds_nothing_the_tool_reports_zeros() {
    let mut script = past(8);
    script.extend([Scripted::from(calls(&[("c", "compact_context", "{}")])), "Fine.".into()]);
    let policy =
        AutoPolicy { enabled: false, target: Threshold::Tokens(300), ..AutoPolicy::default() };
    let mut bench = bench(script, |builder| {
        let strategy = Arc::new(TrimToolResults::default());
        builder.compact_context_tool().strategy(strategy).policy(policy)
    });
    with_past(&mut bench, 8);
    let events = events(&mut bench.session, "Work.");
    assert_eq!(compactions(&events), []);
    let stats = stats(&bench);
    assert_eq!((&stats["messagesCompressed"], &stats["batchesCreated"]), (&json!(0), &json!(0)));
    assert!(stats["tokensEstimateBefore"].as_u64().unwrap() > 300, "{stats}");
    assert_eq!(stats["tokensEstimateBefore"], stats["tokensEstimateAfter"]);
    bench.assert_whole();
}

#[test]
fn the_tool_reports_why_it_failed() {
    let mut script = past(8);
    let error = ModelError::new(ModelErrorKind::Other, "the lamp is out");
    script.extend([
        Scripted::from(calls(&[("c", "compact_context", "{}")])),
        Scripted::Error(error),
        "Never mind.".into(),
    ]);
    let summarize = Summarize { messages: 2, summary_tokens: 50, ..Summarize::default() };
    let policy =
        AutoPolicy { enabled: false, target: Threshold::Tokens(900), ..AutoPolicy::default() };
    let mut bench = bench(script, |builder| {
        builder.compact_context_tool().strategy(Arc::new(summarize)).policy(policy)
    });
    with_past(&mut bench, 8);
    say(&mut bench.session, "Work.").unwrap();
    let failed = json!({"success": false, "output": "the model call failed: the lamp is out"});
    assert_eq!(stats(&bench), failed);
    let sent = bench.last_request().messages;
    assert!(sent.last().unwrap().tool_results().all(|result| result.is_error));
    bench.assert_whole();
}

#[test]
fn texts_queued_before_a_command_are_sent_before_it() {
    let mut script = past(8);
    script.extend([Scripted::from("Two."), "They talked.".into()]);
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)));
    with_past(&mut bench, 8);
    let handle = bench.session.handle();
    handle.queue("second");
    let reply = say(&mut bench.session, "/compact").unwrap();
    assert!(reply.text.starts_with("Compacted: 18 to "), "{}", reply.text);
    assert_eq!((reply.compactions.len(), handle.queued()), (1, 0));
    assert!(bench.session.messages()[0].is_summary());
    bench.assert_whole();
}

#[test]
fn queued_texts_can_be_counted_and_withdrawn() {
    let mut bench = bench(["Fine."], |builder| builder);
    let handle = bench.session.handle();
    handle.queue("first");
    handle.queue("second");
    assert_eq!(handle.queued(), 2);
    assert_eq!(handle.take_queued(), ["first".into(), "second".into()]);
    assert_eq!(handle.queued(), 0);
    say(&mut bench.session, "third").unwrap();
    assert_eq!(bench.session.messages().len(), 2, "nothing else is sent");
}

#[test]
fn queued_messages_are_sent_in_their_order() {
    let mut bench = bench(["One.", "Two.", "Three.", "Four."], |builder| builder);
    let handle = bench.session.handle();
    handle.queue("first");
    let mut events = bench.session.send("second");
    handle.queue("third");
    handle.queue("fourth");
    let reply = block_on(async move {
        while let Some(event) = events.next().await {
            event?;
        }
        Ok::<_, SessionError>(())
    });
    assert_eq!((reply.is_ok(), handle.queued()), (true, 0));
    let typed: Vec<String> = bench
        .session
        .messages()
        .iter()
        .filter(|message| message.is_typed())
        .map(|message| message.content[0].as_text().unwrap().to_string())
        .collect();
    assert_eq!(typed, ["first", "second", "third", "fourth"]);
    bench.assert_whole();
}

#[test]
fn a_sent_message_is_of_the_user_and_an_answer_of_the_assistant() {
    let answer = Message::user("I am the model.");
    let mut bench = bench([Scripted::from(answer)], |builder| builder);
    let sent = Message::assistant("I am the user.");
    block_on(bench.session.send_message(sent).into_future()).unwrap();
    let said =
        |message: &Message| (message.role, message.content[0].as_text().unwrap().to_string());
    let said: Vec<_> = bench.session.messages().iter().map(said).collect();
    let expected = [(Role::User, "I am the user."), (Role::Assistant, "I am the model.")];
    assert_eq!(said, expected.map(|(role, text)| (role, text.to_owned())));
    bench.assert_whole();
}

#[test]
fn a_prompt_leaves_room_for_the_answer_length_that_the_host_set() {
    let long = "A long story. ".repeat(300);
    let answers = [vec![long.as_str(); 3], vec!["Well."; 9]].concat();
    let mut bench = within(5_000, answers, |builder| builder.max_output(2_000));
    for text in ["Tell me a story.", "Another one.", "And one more.", "And now?"] {
        say(&mut bench.session, text).unwrap();
    }
    for request in bench.model.requests() {
        let tokens = ByteEstimate::TRIGGER.request(&request);
        // A quarter of the window is kept at most: no provider is known to refuse the sum.
        assert!(tokens + request.max_output.unwrap().min(1_250) <= 5_000, "{tokens}");
    }
    assert!(bench.session.log().standing().count() > 0);
}

#[test]
fn a_continued_turn_is_compacted_into_the_window_first() {
    let long = "A long story. ".repeat(900);
    let mut bench = within(2_500, ["A summary.", "Well.", "Well."], |builder| builder);
    let reported = Message::assistant(&*long);
    bench.begin_with(&[Message::user("Tell me."), reported, Message::user("And now?")]);
    block_on(bench.session.continue_turn().into_future()).unwrap();
    for request in bench.model.requests() {
        assert!(ByteEstimate::TRIGGER.request(&request) <= 2_500);
    }
}

#[test]
fn a_named_thread_with_a_store_must_be_opened() {
    let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    let builder = Session::builder(agent).thread("t".parse().unwrap());
    let error = builder.store(Arc::new(MemoryStore::default())).build().unwrap_err();
    let expected = "t".parse().unwrap();
    assert!(matches!(error, SessionError::NotLoaded { thread } if thread == expected));
}

#[test]
fn a_log_and_a_fork_keep_their_thread() {
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Blue."])));
    let mut session = Session::builder(agent.clone()).thread("a".parse().unwrap()).build().unwrap();
    say(&mut session, "Which colour?").unwrap();
    let fork = |name: &str| {
        let builder = block_on(session.fork("b".parse().unwrap())).unwrap();
        builder.thread(name.parse().unwrap()).build()
    };
    assert_eq!(fork("b").unwrap().messages(), session.messages());
    let error = fork("c").unwrap_err().to_string();
    assert!(error.starts_with("the log is of thread b, not of thread c"), "{error}");
    let builder = || Session::builder(agent.clone());
    let journal = || Journal::new(session.log().clone());
    for name in ["a", "c"] {
        let thread = || name.parse().unwrap();
        let orders = [
            builder().journal(journal()).thread(thread()),
            builder().thread(thread()).journal(journal()),
        ];
        for builder in orders {
            let opened = block_on(builder.store(Arc::new(MemoryStore::default())).open());
            assert_eq!(opened.is_ok(), name == "a");
        }
    }
}

#[test]
fn a_session_counts_earlier_and_later_billed_tokens() {
    let answer =
        |text: &str, usage| Answer::new(Message::assistant(text), StopReason::EndTurn, Some(usage));
    let script = [answer("One.", Usage::new(100, 10)), answer("Two.", Usage::new(120, 20))];
    let mut bench = bench(script, |builder| builder);
    for (text, expected) in [("First.", (100, 10)), ("Second.", (220, 30))] {
        say(&mut bench.session, text).unwrap();
        for usage in [bench.session.token_usage(), bench.session.handle().token_usage()] {
            assert_eq!((usage.total_prompt_tokens, usage.total_completion_tokens), expected);
        }
    }
}

#[test]
fn a_request_has_the_answer_length_that_the_host_set() {
    for tokens in [None, Some(700)] {
        let mut bench = bench(["Fine."], |builder| match tokens {
            Some(tokens) => builder.max_output(tokens),
            None => builder,
        });
        say(&mut bench.session, "Hi.").unwrap();
        assert_eq!(bench.last_request().max_output, tokens);
    }
}

#[test]
fn a_stream_reports_whether_it_has_ended() {
    let mut bench = bench(["Fine."], |builder| builder);
    let mut stream = bench.session.send("Hi.");
    assert_eq!(format!("{stream:?}"), "Events { over: false, .. }");
    while block_on(stream.next()).is_some() {}
    assert_eq!(format!("{stream:?}"), "Events { over: true, .. }");
}

#[test]
fn an_abort_ends_the_turn_and_the_next_one_works() {
    let asked = calls(&[("a", "slow", "{}")]);
    let mut bench = bench([Scripted::from(asked), "Fine.".into()], |builder| builder);
    let handle = bench.session.handle();
    let mut stream = bench.session.send("Go.");
    loop {
        let event = block_on(stream.next()).unwrap().unwrap();
        if matches!(event, SessionEvent::ToolStarted { .. }) {
            break;
        }
    }
    handle.abort();
    assert_eq!(block_on(stream.next()).unwrap().unwrap(), SessionEvent::Aborted);
    assert!(block_on(stream.next()).is_none());
    drop(stream);
    handle.abort();
    let reply = say(&mut bench.session, "Again.").unwrap();
    assert_eq!(reply.text, "Fine.", "an abort of nothing does not last");
    let sent = bench.last_sent();
    assert!(sent.contains("Cancelled before its result arrived."), "{sent}");
    bench.assert_whole();
}

#[test]
fn a_compaction_can_be_undone() {
    let mut script = past(8);
    script.push("They talked.".into());
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(summarize)));
    with_past(&mut bench, 8);
    let before = bench.session.messages().clone();
    let reported = compactions(&events(&mut bench.session, "/compact"));
    let id = reported.last().unwrap().id();
    assert!(bench.session.messages().len() < before.len());
    block_on(bench.session.undo_compaction(id)).unwrap();
    assert_eq!(*bench.session.messages(), before);
    assert!(block_on(bench.session.undo_compaction(id)).is_err());
    bench.assert_whole();
}

#[test]
fn a_session_is_resumed_from_its_store() {
    let Bench { session, store, .. } = {
        let mut bench = bench(["Hello!"], |builder| builder);
        say(&mut bench.session, "Hi.").unwrap();
        bench
    };
    let messages = session.messages().clone();
    drop(session);
    let model = ScriptedModel::new(["Yes."]);
    let journal = block_on(Journal::open(store.clone(), THREAD.parse().unwrap())).unwrap();
    let mut session = Session::builder(ModelAgent::new(Arc::new(model.clone())))
        .journal(journal)
        .build()
        .unwrap();
    assert_eq!(*session.messages(), messages);
    say(&mut session, "Still there?").unwrap();
    assert_eq!(model.requests()[0].messages[..2], messages[..2]);
    let bench = Bench { session, model, store };
    bench.assert_whole();
}

#[test]
fn a_text_that_is_sent_again_after_a_failure_is_in_the_thread_once() {
    let failed = || Scripted::Error(ModelError::new(ModelErrorKind::Other, "invalid key"));
    let script = [failed(), failed(), "Yes.".into(), "Yes, again.".into()];
    let mut bench = bench(script, |builder| builder);
    say(&mut bench.session, "Is it long?").unwrap_err();
    say(&mut bench.session, "Is it long?").unwrap_err();
    assert_eq!(say(&mut bench.session, "Is it long?").unwrap().text, "Yes.");
    assert_eq!(bench.session.messages().len(), 2);
    // After an answer it is a new question.
    assert_eq!(say(&mut bench.session, "Is it long?").unwrap().text, "Yes, again.");
    assert_eq!(bench.session.messages().len(), 4);
    bench.assert_whole();
}

#[test]
fn a_stream_may_be_dropped_at_every_await() {
    let script = || {
        let mut script = past(8);
        script.extend([
            Scripted::from("They talked."),
            Scripted::from(calls(&[("a", "slow", "{}"), ("b", "quick", "{}")])),
            Scripted::from(calls(&[("c", "slow", "{}")])),
            Scripted::from("Done."),
        ]);
        // The remaining answers are for the turn after the drop.
        script.extend((0..8).map(|_| Scripted::from("Fine.")));
        script
    };
    let summarize =
        Summarize { messages: 2, user_messages: 0, summary_tokens: 200, ..Summarize::default() };
    let policy = AutoPolicy { threshold: Threshold::Tokens(1_000), ..policy() };
    let mut ended = false;
    let mut polls = 0;
    let mut cancelled = 0;
    while !ended {
        let mut bench =
            bench(script(), |builder| builder.strategy(Arc::new(summarize.clone())).policy(policy));
        with_past(&mut bench, 8);
        let mut stream = bench.session.send("Work.");
        let (before, over) = poll(&mut stream, polls);
        ended = over;
        drop(stream);
        assert_eq!(bench.session.log().replay(), bench.session.messages()[..], "{polls}");

        // The next answer of the script may be for a summary or a turn; the session works with
        // each.
        let after = events(&mut bench.session, "And now?");
        assert!(after.iter().all(Result::is_ok), "after {polls} polls: {after:?}");
        assert!(matches!(after.last(), Some(Ok(SessionEvent::TurnEnded { .. }))), "{after:?}");
        // Every start event has one end event, in this stream or the next.
        let all = [compactions(&before), compactions(&after)].concat();
        for id in all.iter().map(CompactionEvent::id) {
            let of = || all.iter().filter(|event| event.id() == id);
            let starts = of().filter(|event| matches!(event, CompactionEvent::Started { .. }));
            let ends = of().filter(|event| event.is_end());
            assert_eq!((starts.count(), ends.count()), (1, 1), "after {polls} polls: {all:?}");
        }
        let reported = compactions(&after);
        let is_cancelled =
            |event: &CompactionEvent| matches!(event, CompactionEvent::Cancelled { .. });
        cancelled += reported.iter().filter(|event| is_cancelled(event)).count();
        if reported.iter().any(is_cancelled) {
            assert!(
                is_cancelled(&reported[0]),
                "the cancelled compaction is reported first: {reported:?}"
            );
        }
        bench.assert_whole();
        polls += 1;
    }
    assert!(polls > 15, "{polls} polls");
    assert!(cancelled >= 3, "{cancelled} cancelled compactions");
}

#[test]
fn a_store_failure_after_the_commit_does_not_fail_the_compaction() {
    let mut script = past(8);
    script.push("They talked.".into());
    let model = ScriptedModel::new(script);
    // Every turn writes its prompt and its answer; then comes the record of the compaction.
    let faults = [vec![None; 16], vec![Some(0)]].concat();
    let store = Arc::new(faulty_store(MemoryStore::default(), &faults));
    let journal = block_on(Journal::open(store.clone(), THREAD.parse().unwrap())).unwrap();
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
        .journal(journal)
        .strategy(Arc::new(summarize))
        .build()
        .unwrap();
    for round in 0..8 {
        let text = format!("Old question {round}: {}", "word ".repeat(20));
        say(&mut session, text).unwrap();
    }
    let events = events(&mut session, "/compact");
    let reported = compactions(&events);
    assert!(matches!(reported.last(), Some(CompactionEvent::Completed { .. })), "{reported:?}");
    assert!(matches!(events.last(), Some(Err(SessionError::Store(_)))), "{events:?}");
    assert_eq!(session.log().replay(), session.messages()[..]);
    // The next turn stores the missing events, even if the model fails.
    let _ = say(&mut session, "Go on.");
    let stored = block_on(store.load(&THREAD.parse().unwrap())).unwrap().log;
    assert_eq!(stored.events(), &session.log().events()[..stored.events().len()]);
    assert!(stored.standing().count() == 1, "the compaction is stored");
}

/// An answer with these blocks and this stop reason.
fn ended(content: Vec<ContentBlock>, stop_reason: StopReason) -> Scripted {
    Answer::new(Message::new(Role::Assistant, content), stop_reason, None).into()
}

#[test]
fn an_answer_that_no_provider_accepts_is_repaired_or_dropped() {
    let call = |id: &str| ContentBlock::from(ToolUse::new(id, "quick", json!({"n": 1})));
    let result = ContentBlock::from(ToolResult::text("a", "I answer myself."));
    let mut bench = bench(
        [
            ended(Vec::new(), StopReason::EndTurn),
            ended(vec![ContentBlock::text(" \n")], StopReason::PauseTurn),
            ended(vec![call("a"), ContentBlock::text(""), call("a"), result], StopReason::ToolUse),
            ended(vec![call("b")], StopReason::MaxTokens),
            Scripted::from("Done."),
        ],
        |builder| builder,
    );
    assert_eq!(say(&mut bench.session, "One.").unwrap().text, "");
    assert_eq!(
        bench.session.messages().len(),
        1,
        "the model answered nothing, so no message is appended"
    );
    let blank = say(&mut bench.session, " ").unwrap_err();
    assert!(matches!(blank, SessionError::Blank) && bench.session.messages().len() == 1);
    // After a pause without content the same request would follow, so the turn ends.
    let paused = say(&mut bench.session, "Two.").unwrap();
    assert_eq!((paused.text.trim(), paused.stop_reason), ("", Some(StopReason::PauseTurn)));
    say(&mut bench.session, "Three.").unwrap();
    say(&mut bench.session, "Four.").unwrap();
    let kinds = |message: &Message| message.content.iter().map(ContentBlock::kind).collect();
    let kinds: Vec<Vec<&str>> = bench.session.messages().iter().map(kinds).collect();
    let expected: [&[&str]; 9] = [
        &["text", "checkpoint"],
        &["text", "checkpoint"],
        &["text", "checkpoint"],
        &["tool_use", "tool_use"],
        &["tool_result", "tool_result", "checkpoint"],
        &["tool_use"],
        &["tool_result", "checkpoint"],
        &["text", "checkpoint"],
        &["text"],
    ];
    assert_eq!(kinds, expected);
    let results = bench.session.messages()[4].tool_results();
    let ids: Vec<&str> = results.map(|result| result.tool_use_id.as_str()).collect();
    assert_eq!(ids, ["a", "a-2"]);
    bench.assert_whole();
}

#[test]
fn an_implausible_count_does_not_stop_the_session() {
    let counted = |text: &str, usage| {
        Scripted::from(Answer::new(Message::assistant(text), StopReason::EndTurn, Some(usage)))
    };
    let nonsense = Usage::new(u64::MAX, u64::MAX);
    let script = [counted("Hello!", nonsense), counted("Yes.", nonsense), "Bye.".into()];
    let mut bench = within(10_000, script, |builder| builder);
    for (said, answer) in [("Hi.", "Hello!"), ("Still there?", "Yes."), ("Well then.", "Bye.")] {
        assert_eq!(say(&mut bench.session, said).unwrap().text, answer);
    }
    bench.assert_whole();
}

#[test]
fn a_resumed_session_draws_no_checkpoint_that_an_undo_could_restore() {
    let keep = || Arc::new(KeepRecent { messages: 1, ..KeepRecent::default() });
    let mut bench = bench(past(4), |builder| builder.strategy(keep()).checkpoints());
    with_past(&mut bench, 4);
    let reported = compactions(&events(&mut bench.session, "/compact"));
    let id = reported.last().unwrap().id();
    // The same seed, over the stored log.
    let model = ScriptedModel::new(past(4));
    let journal = block_on(Journal::open(bench.store.clone(), THREAD.parse().unwrap())).unwrap();
    let agent = ModelAgent::new(Arc::new(model.clone()));
    let session =
        Session::builder(agent).journal(journal).strategy(keep()).checkpoints().build().unwrap();
    let mut bench = Bench { session, model, ..bench };
    with_past(&mut bench, 4);
    block_on(bench.session.undo_compaction(id)).unwrap();
    let blocks = bench.session.messages().iter().flat_map(|message| message.content.clone());
    let mut ids: Vec<_> = blocks
        .filter_map(|block| match block {
            ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id),
            _ => None,
        })
        .collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), count), (8, 8));
    bench.assert_whole();
}

#[test]
fn the_tokens_spent_are_reported() {
    let answer = Message::assistant("Hello!");
    let turn = Answer::new(answer, StopReason::EndTurn, Some(Usage::new(70, 5)));
    let mut bench = bench([Scripted::Answer(turn)], |builder| builder);
    let reply = say(&mut bench.session, "Hi.").unwrap();
    assert_eq!(reply.usage, Usage::new(70, 5));
    assert_eq!(bench.session.context_tokens(), 75);
}
