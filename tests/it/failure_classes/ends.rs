//! Runs that end silently, and compactions without an end.

use super::*;
use crate::support::polls::poll;

#[test]
fn after_a_compaction_between_tool_calls_the_turn_continues() {
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = policy();
        let model = Played::new(writes(40, 40)).summing_up(sums_up_in_prose);
        let mut bench = bench(12_000, model, |b| b.strategy(strategy).policy(policy));
        let reply = bench.say("Write all parts.").unwrap();
        assert_eq!(reply.text, "All parts are written.", "{name}");
        let asked = bench.model.asked();
        let compacted = asked
            .iter()
            .zip(asked.iter().skip(1))
            .any(|(one, next)| next.messages.len() <= one.messages.len());
        // The ladder clears results, which leaves as many messages.
        let cleared = asked.iter().any(|request| format!("{request:?}").contains("was cleared"));
        assert!(compacted || cleared || name == "trim-tool-results", "{name}");
        for request in asked {
            let last = request.messages.last().unwrap();
            assert_eq!(last.role, Role::User, "{name}: it is the model's turn");
            let asks = |block: &ContentBlock| {
                block.as_text().is_some_and(|text| text.as_str() == "Please continue.")
            };
            let asks = last.is_typed() || last.content.iter().any(asks);
            assert!(asks || last.tool_results().next().is_some(), "{name}: {last:?}");
        }
        bench.assert_sound();
    }
}

#[test]
fn please_continue_is_added_only_if_nothing_else_asks_for_an_answer() {
    const CONTINUE: &str = "Please continue.";
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let policy = policy();
        let works = writes(30, 40);
        let model = Played::new(move |request| {
            let last = request.messages.last().unwrap();
            let asks = last
                .content
                .iter()
                .any(|block| block.as_text().is_some_and(|text| text.as_str().contains("Write")));
            if asks || last.tool_results().next().is_some() {
                works(request)
            } else {
                chats(request)
            }
        });
        let mut bench = bench(12_000, model, |b| b.strategy(strategy).policy(policy));
        bench.chat(20);
        bench.events("/compact");
        bench.say("@compact And now?").unwrap();
        bench.say("Write all parts.").unwrap();
        for request in bench.model.asked() {
            for (place, message) in request.messages.iter().enumerate() {
                let says = typed(CONTINUE, std::slice::from_ref(message));
                // Calls, results and prompts ask for an answer by themselves.
                let is_last = place + 1 == request.messages.len();
                assert!(!says || (is_last && message.is_summary()), "{name}: {message:?}");
            }
        }
        bench.assert_sound();
    }
}

#[test]
fn a_compaction_does_not_restart_a_finished_agent() {
    for strategy in strategies().into_iter().filter(|one| one.name() != "trim-tool-results") {
        let name = strategy.name().to_owned();
        let policy = AutoPolicy { after_turn: true, ..policy() };
        let mut bench = bench(9_000, Played::new(chats), |b| b.strategy(strategy).policy(policy));
        let mut after = 0;
        for round in 0..60 {
            let asked = bench.model.asked().len();
            let events = bench.events(question(round));
            let ended = events
                .iter()
                .position(|event| matches!(event, Ok(SessionEvent::TurnEnded { .. })))
                .unwrap();
            after += begun_and_done(&events[ended..]).1;
            assert_eq!(bench.model.asked().len(), asked + 1, "{name}: one answer for one prompt");
            assert!(!texts(bench.session.messages()).contains("Please continue."), "{name}");
        }
        assert!(after >= 1, "{name}: it was compacted after a turn");
        bench.assert_sound();
    }
}

// What holds for every compaction.

#[test]
fn the_calls_of_a_compaction_are_never_compacted_themselves() {
    // Each call of the summarizer reports as many tokens as start a compaction.
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Played::new(chats).summing_up(|request| {
            let answer = answer_of(ExtractiveModel, request).unwrap();
            with_usage(answer, Usage::new(19_000, 900))
        });
        let policy = AutoPolicy { target: Threshold::Tokens(3_000), ..policy() };
        let mut bench = bench(20_000, model, |b| b.strategy(strategy).policy(policy));
        bench.chat(30);
        let mut open = None;
        for event in compactions(&bench.events("@compact And now?")) {
            match event {
                CompactionEvent::Started { id, .. } => assert_eq!(open.replace(id), None, "{name}"),
                event if event.is_end() => assert_eq!(open.take(), Some(event.id()), "{name}"),
                event => assert_eq!(open, Some(event.id()), "{name}"),
            }
        }
        assert!(bench.records().len() <= 1, "{name}: {:?}", bench.records());
    }
}

#[test]
fn a_request_that_cannot_fit_is_refused_with_the_sizes_of_its_parts() {
    let counter = ByteEstimate::TRIGGER;
    let (system, prompt) = ("Be kind. ".repeat(500), "And what is this? ".repeat(120));
    let mut bench = bench(2_000, Played::new(chats), |b| b.system(system.clone()));
    let error = bench.say(prompt.clone()).unwrap_err();
    let mut sent = Message::user(prompt);
    sent.make_mut().content.push(ContentBlock::checkpoint("aaaaaa".parse().unwrap()));
    let parts = counter.message(&Message::system(system))
        + counter.tools(&[Write::default().spec()])
        + counter.message(&sent);
    let SessionError::CannotFit { floor, tokens, limit, tried, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*floor, *tokens, *limit, tried.as_ref()), (parts, parts, 2_000, None));
    let numbers = [parts.to_string(), "2000".to_owned()];
    assert!(numbers.iter().all(|number| error.to_string().contains(number)), "{error}");
    assert_eq!((bench.model.requests().len(), bench.session.messages().len()), (0, 0));
    // A shorter text with the same system prompt is answered.
    assert!(bench.say("Hi.").is_ok());
}

/// What leads to a compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    Command,
    CommandAndPrompt,
    Tool,
    Threshold,
    Refusal,
    WindowTooSmall,
    AfterTurn,
}

const PATHS: [Path; 7] = [
    Path::Command,
    Path::CommandAndPrompt,
    Path::Tool,
    Path::Threshold,
    Path::Refusal,
    Path::WindowTooSmall,
    Path::AfterTurn,
];

impl Path {
    /// The text that starts the compaction.
    fn says(self) -> String {
        match self {
            Self::Command => "/compact".into(),
            Self::CommandAndPrompt => "@compact Go.".into(),
            Self::Tool | Self::Threshold | Self::Refusal | Self::AfterTurn => "Go.".into(),
            Self::WindowTooSmall => "a long prompt it is ".repeat(1_550),
        }
    }

    fn reason(self) -> CompactionReason {
        match self {
            Self::Command | Self::CommandAndPrompt => {
                CompactionReason::Manual { instructions: None }
            }
            Self::Tool => CompactionReason::AgentTool,
            Self::Threshold | Self::AfterTurn => CompactionReason::Threshold,
            Self::Refusal | Self::WindowTooSmall => CompactionReason::Overflow,
        }
    }

    /// A session in which the next text starts a compaction.
    fn set(self, sums_up: fn(&Request) -> Scripted) -> Bench {
        let model = Played::new(move |request| {
            let go = typed("Go.", &request.messages[request.messages.len() - 1..]);
            let compacted = !summaries(&request.messages).is_empty();
            let over = match self {
                Self::Threshold => request.messages.len() == 15,
                Self::AfterTurn => go,
                _ => false,
            };
            match self {
                Self::Refusal if go && !compacted => overflow(Some(5_000)),
                Self::Tool if go => {
                    let call = ToolUse::new("tidy", COMPACT_CONTEXT, json!({}));
                    Message::new(Role::Assistant, vec![call.into()]).into()
                }
                _ => counted(&"Well. ".repeat(40), Usage::new(if over { 8_500 } else { 500 }, 0)),
            }
        })
        .summing_up(sums_up);
        let strategy = Summarize {
            messages: 2,
            user_messages: 0,
            summary_tokens: 100,
            ..Summarize::default()
        };
        let policy = AutoPolicy {
            target: Threshold::Tokens(if self == Self::Tool { 600 } else { 5_000 }),
            after_turn: self == Self::AfterTurn,
            ..AutoPolicy::default()
        };
        let mut bench = bench(10_000, model, |b| {
            b.strategy(Arc::new(strategy)).policy(policy).compact_context_tool()
        });
        assert_eq!(begun_and_done(&bench.chat(8)), (0, 0), "{self:?}");
        bench
    }
}

/// Checks that every compaction has one start event and one end event, in order.
fn assert_framed(path: Path, reported: &[CompactionEvent]) {
    let mut open = None;
    for event in reported {
        match event {
            CompactionEvent::Started { id, .. } => {
                assert_eq!(open.replace(*id), None, "{path:?}: {reported:?}");
            }
            event if event.is_end() => {
                assert_eq!(open.take(), Some(event.id()), "{path:?}: {reported:?}");
            }
            event => assert_eq!(open, Some(event.id()), "{path:?}: {reported:?}"),
        }
    }
    assert_eq!(open, None, "{path:?}: {reported:?}");
}

#[test]
fn every_compaction_has_one_start_and_one_end_wherever_it_is_dropped() {
    for path in PATHS {
        let (mut ended, mut polls, mut cancelled, mut done) = (false, 0, 0, 0);
        let mut last = Vec::new();
        while !ended {
            let mut bench = path.set(|_| "They talked.".into());
            let mut stream = bench.session.send(path.says());
            let (before, over) = poll(&mut stream, polls);
            ended = over;
            drop(stream);
            let after = bench.events("Well?");
            assert!(after.iter().all(Result::is_ok), "{path:?}, {polls}: {after:?}");
            let reported = [compactions(&before), compactions(&after)].concat();
            assert_framed(path, &reported);
            let is_cancelled =
                |event: &&CompactionEvent| matches!(event, CompactionEvent::Cancelled { .. });
            cancelled += reported.iter().filter(is_cancelled).count();
            let first = reasons(&before).into_iter().chain(reasons(&after)).next();
            if ended {
                assert_eq!(first, Some(path.reason()), "{path:?}");
                done = begun_and_done(&before).1;
                last = ends(&before);
            }
            // The events agree with the log, except those that were dropped before delivery.
            let logged = bench.records().len();
            let told_done =
                reported.iter().filter(|event| matches!(event, CompactionEvent::Completed { .. }));
            assert_eq!(told_done.count(), logged, "{path:?}, {polls}");
            assert_eq!(bench.session.log().replay(), bench.session.messages()[..]);
            polls += 1;
        }
        assert_eq!(done, 1, "{path:?}: {last:?}");
        assert!(polls > 6 && cancelled >= 1, "{path:?}: {polls} polls, {cancelled} cancelled");
    }
}

#[test]
fn every_failed_compaction_has_one_end() {
    for path in PATHS {
        for sums_up in [|_: &Request| fails(ModelErrorKind::Other), |_: &Request| " ".into()] {
            let mut bench = path.set(sums_up);
            let events = bench.events(path.says());
            let reported = compactions(&events);
            assert_framed(path, &reported);
            assert_eq!(reasons(&events).first(), Some(&path.reason()), "{path:?}");
            // A request that must be compacted is, by the net if necessary.
            let needed = matches!(path, Path::Refusal | Path::WindowTooSmall);
            let ended = |event: &CompactionEvent| match needed {
                true => matches!(event, CompactionEvent::Completed { .. }),
                false => matches!(event, CompactionEvent::Failed { .. }),
            };
            let ends: Vec<_> = reported.iter().filter(|event| event.is_end()).collect();
            assert!(
                !ends.is_empty() && ends.iter().all(|event| ended(event)),
                "{path:?}: {reported:?}"
            );
            let logged = bench
                .session
                .log()
                .events()
                .iter()
                .filter(|logged| matches!(logged.event, Event::CompactionFailed(_)));
            assert_eq!(logged.count(), if needed { 0 } else { ends.len() }, "{path:?}");
            assert!(events.iter().all(Result::is_ok), "{path:?}: {events:?}");
        }
    }
}
