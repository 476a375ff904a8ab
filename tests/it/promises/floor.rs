//! If system prompt, tools and the newest typed text fit the window, a request is sent.

use std::sync::Arc;

use threadfold::{
    CompactionStrategy, Message, Request, StrategyRegistry, async_trait,
    session::{CompactionEvent, SessionError},
    strategy::{Ask, KeepRecent, Ladder, ModelRole, Proposal, StrategyError, View},
};

use super::provider::{Provider, Read, lines, unreported};
use crate::support::{
    bench::{calls, compactions, events, say},
    examples::simulation::hosts::{AlwaysFails, Nonsense},
};

const WINDOW: u64 = 20_000;

fn registered() -> Vec<Arc<dyn CompactionStrategy>> {
    let registry = StrategyRegistry::default();
    registry.names().map(|name| Arc::clone(registry.get(name).unwrap())).collect()
}

/// All registered strategies, one that always fails, and one that proposes nonsense.
fn every_strategy() -> Vec<Arc<dyn CompactionStrategy>> {
    let mut all = registered();
    all.push(Arc::new(AlwaysFails));
    all.push(Arc::new(Nonsense::default()));
    all
}

/// An agent that makes this many calls at once if it is asked to, and otherwise answers with a
/// word.
fn obedient(results: usize) -> Provider {
    Provider::new(move |request, place| {
        let last = request.messages.last().unwrap();
        let reported = last.content.first().and_then(|block| block.as_text());
        if !reported.is_some_and(|text| text.starts_with("Read")) {
            return Message::assistant("Fine.");
        }
        let ids: Vec<String> = (0..results).map(|call| format!("call_{place}_{call}")).collect();
        calls(&ids.iter().map(|id| (id.as_str(), "read", "{}")).collect::<Vec<_>>())
    })
}

/// The size and number of results in one answer, and the number of turns before it.
#[derive(Clone, Copy, Debug)]
struct Flood {
    turns: usize,
    results: usize,
    tokens: u64,
}

const FLOODS: [Flood; 4] = [
    Flood { turns: 0, results: 1, tokens: 24_000 },
    Flood { turns: 3, results: 1, tokens: 36_000 },
    Flood { turns: 0, results: 6, tokens: 6_000 },
    Flood { turns: 45, results: 2, tokens: 2_000 },
];

/// Returns the faults of a session with this strategy.
fn trouble(strategy: Arc<dyn CompactionStrategy>, flood: Flood) -> Vec<String> {
    let provider = obedient(flood.results);
    let mut session = provider.session(Some(WINDOW), |builder| {
        builder.strategy(strategy).tool(Arc::new(Read(flood.tokens)))
    });
    let mut reported = Vec::new();
    for turn in 0..flood.turns {
        reported.extend(events(&mut session, &format!("Turn {turn}. {}", lines(500))));
    }
    for text in ["Read it.", "What is in it?", "And now?", "Read it again.", "Well?", "Thank you."]
    {
        reported.extend(events(&mut session, text));
    }
    let refused = reported.iter().filter_map(|event| event.as_ref().err()).map(ToString::to_string);
    refused.chain(provider.fault(WINDOW)).chain(unreported(&reported)).collect()
}

#[test]
fn results_larger_than_the_window_lock_no_session_with_any_strategy() {
    let every = || {
        FLOODS.into_iter().flat_map(|flood| every_strategy().into_iter().map(move |it| (it, flood)))
    };
    let troubles: Vec<String> = every()
        .filter_map(|(strategy, flood)| {
            let name = strategy.name().to_owned();
            let trouble = trouble(strategy, flood);
            let first = trouble.first()?;
            Some(format!("{name}, {flood:?}: {} times, first {first}", trouble.len()))
        })
        .collect();
    assert!(troubles.is_empty(), "{troubles:#?}");
}

#[test]
fn every_registered_strategy_compacts_one_large_result_on_demand() {
    // Clearing keeps the last results by its options, however large they are, and this provider
    // does not compact itself.
    let others = ["clear-results", "native"];
    for strategy in registered().into_iter().filter(|it| !others.contains(&it.name())) {
        let name = strategy.name().to_owned();
        let provider = obedient(1);
        let build = |builder: threadfold::session::SessionBuilder| {
            builder.strategy(strategy).tool(Arc::new(Read(15_000)))
        };
        let mut session = provider.session(Some(WINDOW), build);
        for text in ["Read it.", "Thank you."] {
            say(&mut session, text).unwrap();
        }
        let before = session.context_tokens();
        let reported = events(&mut session, "/compact");
        let after = session.context_tokens();
        assert_eq!(unreported(&reported), Vec::<String>::new(), "{name}");
        assert!(after <= WINDOW / 2, "{name}: {before} tokens became {after}");
    }
}

#[test]
fn a_request_is_sent_for_any_number_of_results_if_their_calls_fit() {
    const SMALL: u64 = 4_000;
    for count in [1, 5, 10, 20, 40, 80, 160] {
        let provider = obedient(count);
        let mut session =
            provider.session(Some(SMALL), |builder| builder.tool(Arc::new(Read(1_000))));
        let said = say(&mut session, "Read it.").map(|reply| reply.text);
        assert!(matches!(said.as_deref(), Ok("Fine.")), "{count} results: {said:?}");
        assert_eq!(provider.fault(SMALL), None, "{count} results");
    }
}

#[test]
fn a_request_is_sent_however_many_or_long_its_calls_are() {
    const SMALL: u64 = 4_000;
    let long = |tokens| serde_json::json!({"path": "src/a.rs", "text": lines(tokens)}).to_string();
    for (count, input) in [(300, "{}".to_owned()), (1, long(20_000)), (3, long(3_000))] {
        let provider = Provider::new(move |request, place| {
            let last = request.messages.last().unwrap();
            let asked = last.content.first().and_then(|block| block.as_text());
            if asked.is_none_or(|text| text != "Write it.") {
                return Message::assistant("Fine.");
            }
            let ids: Vec<String> = (0..count).map(|call| format!("call_{place}_{call}")).collect();
            calls(&ids.iter().map(|id| (id.as_str(), "read", input.as_str())).collect::<Vec<_>>())
        });
        let mut session =
            provider.session(Some(SMALL), |builder| builder.tool(Arc::new(Read(100))));
        for text in ["Write it.", "And now?", "Thank you."] {
            let said = say(&mut session, text).map(|reply| reply.text);
            assert!(matches!(said.as_deref(), Ok("Fine.")), "{count} calls: {said:?}");
        }
        assert_eq!(provider.fault(SMALL), None, "{count} calls");
    }
}

#[test]
fn a_request_is_refused_if_system_prompt_and_typed_text_do_not_fit() {
    let provider = obedient(1);
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    say(&mut session, "Hi.").unwrap();
    let refused = say(&mut session, lines(WINDOW + 1_000)).unwrap_err();
    let SessionError::CannotFit { floor, limit, .. } = refused else { panic!("{refused}") };
    assert!(limit <= WINDOW && floor > limit, "{refused}");
    assert_eq!(say(&mut session, "Shorter, then.").unwrap().text, "Fine.");
    assert_eq!(provider.fault(WINDOW), None);
}

#[test]
fn a_refusal_says_what_to_do_about_its_largest_part() {
    let (newest, tools, system) = (
        "; send less at once, such as a file by its path, or continue the turn without a new message \
         if an earlier one is not answered yet",
        "; offer fewer tools, or describe them in fewer words",
        "; shorten the system prompt",
    );
    let rows = [
        ((0, 0, 0), ""),
        ((1, 1, 2), newest),
        ((1, 1, 1), newest),
        ((1, 2, 1), tools),
        ((2, 2, 1), tools),
        ((2, 1, 1), system),
    ];
    for ((system, tools, newest), advice) in rows {
        for (tried, failed) in [(None, ""), (Some("no lamp"), "; compacting failed: no lamp")] {
            let tried = tried.map(Into::into);
            let (floor, tokens, limit) = (9, 9, 8);
            let error =
                SessionError::CannotFit { floor, tokens, limit, system, tools, newest, tried };
            let words = format!("what was typed since the last answer {newest}{failed}{advice}");
            assert!(error.to_string().ends_with(&words), "{error}");
        }
    }
}

#[test]
fn an_answer_that_fills_the_window_makes_room_for_the_next_prompt() {
    let provider = Provider::new(|_, place| match place {
        0 => Message::assistant(lines(18_000)),
        _ => Message::assistant("Fine."),
    });
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    say(&mut session, "Tell me everything.").unwrap();
    let question = format!("What about this? {}", lines(3_000));
    assert_eq!(say(&mut session, question.as_str()).unwrap().text, "Fine.");
    assert_eq!(provider.fault(WINDOW), None);
    let kept = provider.conversation().pop().unwrap().messages.last().unwrap().clone();
    assert!(kept.content[0].as_text().is_some_and(|text| **text == *question));
}

#[test]
fn the_tail_that_a_strategy_keeps_shrinks_to_meet_the_target() {
    let keep = KeepRecent { messages: 8, ..KeepRecent::default() };
    let provider = Provider::new(|_, _| Message::assistant(lines(4_000)));
    let mut session = provider.session(Some(WINDOW), |builder| builder.strategy(Arc::new(keep)));
    for turn in 0..12 {
        say(&mut session, format!("Part {turn}, please.")).unwrap();
    }
    assert_eq!(provider.fault(WINDOW), None);
}

/// Where a strategy panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panics {
    Beginning,
    Answered,
}

#[async_trait]
impl CompactionStrategy for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    async fn propose(&self, _: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        assert_ne!(*self, Self::Beginning, "no attempt");
        let request = Request::new(vec![Message::user("Well?")]);
        ask.question(ModelRole::Conversation, request).await?;
        panic!("{self:?}");
    }
}

#[test]
fn a_strategy_that_panics_fails_and_the_session_continues() {
    for (panics, said) in [(Panics::Beginning, "no attempt"), (Panics::Answered, "Answered")] {
        let rung = Ladder::new([Arc::new(panics) as Arc<dyn CompactionStrategy>]);
        for strategy in [Arc::new(panics) as Arc<dyn CompactionStrategy>, Arc::new(rung)] {
            for flood in FLOODS {
                assert_eq!(
                    trouble(Arc::clone(&strategy), flood),
                    Vec::<String>::new(),
                    "{panics:?}"
                );
            }
            // Without the net the compaction fails with the message of the panic.
            let provider = Provider::new(|_, _| Message::assistant(lines(1_000)));
            let mut session =
                provider.session(Some(WINDOW), |builder| builder.strategy(Arc::clone(&strategy)));
            let reported: Vec<_> =
                (0..17).flat_map(|turn| events(&mut session, &format!("Part {turn}."))).collect();
            let failed = compactions(&reported).into_iter().find_map(|event| match event {
                CompactionEvent::Failed { error, .. } => Some(error),
                _ => None,
            });
            let error = failed.unwrap();
            let words = error.split_once("the strategy panics panicked: ").unwrap().1;
            assert!(words.contains(said), "{error}");
        }
    }
}
