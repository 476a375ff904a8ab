//! Strategies: with any model, accepted proposals are legal and smaller.

use std::sync::Arc;

use futures::executor::block_on;
use proptest::{option, prelude::*, sample::select};
use threadfold::{
    CompactionStrategy, Message, Model, StrategyRegistry,
    drive::{self, CompactionError, Models},
    legality,
    message::ContentBlock,
    strategy::{Brief, KeepRecent, Proposal, Rejection, Snapshot, StrategyError, Summarize},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::{
    TestClock,
    generate::{junk_thread, legal_thread},
};

use crate::support::{brief::brief, tries::tries};

#[derive(Clone, Debug)]
enum Answers {
    Nobody,
    Script(&'static str),
    Extracts,
    Misbehaves(Scripted),
}

impl Answers {
    fn model(&self) -> Option<Box<dyn Model>> {
        match self {
            Self::Nobody => None,
            Self::Script(answer) => Some(Box::new(ScriptedModel::new([*answer]))),
            Self::Extracts => Some(Box::new(ExtractiveModel)),
            Self::Misbehaves(way) => Some(Box::new(ScriptedModel::repeating([way.clone()]))),
        }
    }
}

fn answers() -> impl Strategy<Value = Answers> {
    // A megabyte of text is tested rarely, because it is slow and finds little.
    let hostile =
        Scripted::misbehaving().into_iter().filter(|way| !matches!(way, Scripted::Inflates));
    prop_oneof![
        40 => Just(Answers::Script("They fixed the parser.")),
        20 => Just(Answers::Extracts),
        30 => select(hostile.collect::<Vec<_>>()).prop_map(Answers::Misbehaves),
        1 => Just(Answers::Misbehaves(Scripted::Inflates)),
        5 => Just(Answers::Nobody),
    ]
}

/// The strategies of the registry, and those with small numbers, which short threads need.
fn strategy() -> impl Strategy<Value = Arc<dyn CompactionStrategy>> {
    let registry = StrategyRegistry::default();
    let named = registry.names().map(|name| Arc::clone(registry.get(name).unwrap()));
    let named: Vec<Arc<dyn CompactionStrategy>> = named.collect();
    let tokens = || option::of(1_u64..400);
    let keep = (0_usize..6, tokens()).prop_map(|(messages, tokens)| {
        Arc::new(KeepRecent { messages, tokens }) as Arc<dyn CompactionStrategy>
    });
    let parts = (0_usize..6, tokens(), 0_usize..3, 0_u64..200);
    let sum = parts.prop_map(|(messages, tokens, user_messages, user_tokens)| {
        let strategy =
            Summarize { messages, tokens, user_messages, user_tokens, ..Summarize::default() };
        Arc::new(strategy) as Arc<dyn CompactionStrategy>
    });
    prop_oneof![2 => select(named), 2 => keep, 3 => sum]
}

fn propose(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    answers: &Answers,
) -> Result<Proposal, Box<CompactionError>> {
    let model = answers.model();
    let clock = TestClock::default();
    let models = model.as_deref().map(Models::one).unwrap_or_default();
    let models = Models { clock: Some(&clock), ..models };
    block_on(drive::propose(strategy, thread, brief, models, &mut |_, _| {})).map_err(Box::new)
}

proptest! {
    #![proptest_config(tries(400))]

    #[test]
    fn accepted_proposals_are_legal_smaller_and_keep_the_newest_typed_text(
        thread in legal_thread(0..16), strategy in strategy(), brief in brief(), answers in answers()
    ) {
        let snapshot = Snapshot::new(thread.clone());
        let proposal = match propose(strategy.as_ref(), &snapshot, &brief, &answers) {
            Ok(proposal) => proposal,
            Err(failed) => {
                // A thread may be too small or a model too bad, but no strategy of the crate
                // proposes an unfit plan.
                let unfit = matches!(
                    failed.strategy(),
                    Some(
                        StrategyError::Plan(_)
                            | StrategyError::Rejected(
                                Rejection::Stale(_)
                                    | Rejection::Illegal { .. }
                                    | Rejection::Blank
                                    | Rejection::LosesLastUserMessage
                            )
                    ) | None
                );
                prop_assert!(!unfit, "{}: {failed}", strategy.name());
                return Ok(());
            }
        };
        let mut after = thread.clone();
        proposal.plan.apply(&mut after).unwrap();
        prop_assert_eq!(legality::violations(&after), []);
        let count = |messages: &[Message]| snapshot.counter().messages(messages);
        prop_assert!(count(&after) < count(&thread));
        prop_assert!(brief.target.is_none_or(|target| count(&after) <= target));
        if brief.next_prompt.is_none() {
            // A marker between its blocks may have divided the message.
            let wanted = thread.iter().rev().find_map(typed).unwrap_or_default();
            let kept: Vec<ContentBlock> = after.iter().filter_map(typed).flatten().collect();
            prop_assert!(kept.ends_with(&wanted), "what was typed last is gone: {:?}", wanted);
        }
    }

    #[test]
    fn the_same_thread_and_answers_give_the_same_plan(
        thread in legal_thread(0..16), strategy in strategy(), brief in brief(), answers in answers()
    ) {
        let snapshot = Snapshot::new(thread);
        let run = || match propose(strategy.as_ref(), &snapshot, &brief, &answers) {
            Ok(proposal) => format!("{} {:?}", serde_json::to_string(&proposal.plan).unwrap(), proposal.usage),
            Err(error) => format!("{error} {:?}", error.usage),
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn no_strategy_panics_on_junk_or_makes_it_worse(
        thread in junk_thread(0..14), strategy in strategy(), brief in brief(), answers in answers()
    ) {
        let snapshot = Snapshot::new(thread.clone());
        if let Ok(proposal) = propose(strategy.as_ref(), &snapshot, &brief, &answers) {
            let mut after = thread.clone();
            proposal.plan.apply(&mut after).unwrap();
            let count = |messages: &[Message]| legality::violations(messages).len();
            prop_assert!(count(&after) <= count(&thread));
        }
    }
}

/// The text that a person typed in a message, if there is any.
fn typed(message: &Message) -> Option<Vec<ContentBlock>> {
    let blocks: Vec<ContentBlock> =
        message.typed_blocks().map(|block| message.content[block].clone()).collect();
    (!blocks.is_empty()).then_some(blocks)
}
