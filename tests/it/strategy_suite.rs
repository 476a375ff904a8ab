//! Runs the conformance suite for strategies on every registered strategy, and on strategies that
//! each break one law.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use threadfold::{
    Answer, CompactionStrategy, Message, Plan, Request, Role, StrategyRegistry, async_trait,
    compact::{Insert, Splice},
    message::Summary,
    retention::Retention,
    strategy::{
        Ask, Brief, ModelCall, ModelRole, Proposal, Snapshot, StrategyError, Summarize, View,
        summary_of, without_model,
    },
};
use threadfold_testing::conformance::{self, Law};

#[test]
fn every_registered_strategy_conforms() {
    let registry = StrategyRegistry::default();
    let names: Vec<String> = registry.names().map(str::to_owned).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for name in names {
        let config: serde_json::Value = serde_json::from_value(name.clone().into()).unwrap();
        let strategy = registry.build(&config).unwrap();
        conformance::strategy(strategy.as_ref())
            .unwrap_or_else(|breach| panic!("{name}: {breach}"));
    }
}

type Outcome = Result<Proposal, StrategyError>;

/// The behaviour of a wrong strategy.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Proposes without a model.
    Proposes(fn(&Wrong, &View) -> Outcome),
    /// Asks a model about the whole thread, and proposes after its answer.
    Asks(fn(&Snapshot, Answer) -> Result<Plan, StrategyError>),
    /// Asks without end.
    AsksOn,
    /// Awaits something else than an answer.
    Waits,
}

/// A strategy that breaks one law.
#[derive(Debug)]
struct Wrong {
    does: Does,
    count: AtomicUsize,
}

#[async_trait]
impl CompactionStrategy for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Outcome {
        if view.thread.messages().len() < 2 {
            return idle();
        }
        let request = Request::new(view.thread.messages().clone());
        match self.does {
            Does::Proposes(propose) => propose(self, view),
            Does::Asks(plan) => {
                let turn = ask.question(ModelRole::Fast, request).await?;
                Ok(plan(&view.thread, turn)?.into())
            }
            Does::AsksOn => loop {
                let call = ModelCall::new(ModelRole::Fast, request.clone());
                let _ = ask.once(&call).await;
            },
            Does::Waits => std::future::pending().await,
        }
    }
}

fn idle() -> Outcome {
    Err(StrategyError::NothingToCompact { reason: "short".into() })
}

fn proposes(plan: Plan) -> Outcome {
    Ok(plan.into())
}

/// The old part of a thread: everything before the user's newest text.
fn old_part(thread: &Snapshot) -> usize {
    let last = thread.messages().iter().rposition(Message::is_typed);
    thread.cut_at_or_before(last.unwrap_or_default())
}

/// Replaces the old part with this message.
fn replaces(thread: &Snapshot, message: Message) -> Plan {
    let splice = Splice { at: 0..old_part(thread), insert: vec![message.into()] };
    Plan::from_splices(thread.messages().len(), vec![splice])
}

fn removes(thread: &Snapshot, at: std::ops::Range<usize>) -> Plan {
    Plan::from_splices(thread.messages().len(), vec![Splice { at, insert: Vec::new() }])
}

/// For each law that a strategy can break, one that breaks it.
const WRONG: [(Law, Does); 16] = [
    (Law::StrategyEnds, Does::AsksOn),
    (Law::AwaitsAnswers, Does::Waits),
    (Law::NeverPanics, Does::Proposes(|_, _| panic!("at the first sight"))),
    (
        Law::SameAnswersSamePlan,
        Does::Proposes(|wrong, View { thread, .. }| {
            let number = wrong.count.fetch_add(1, Ordering::Relaxed);
            let text = format!("This was number {number}.");
            Ok(Plan::summarise(thread.messages(), 0..old_part(thread), text)?.into())
        }),
    ),
    (
        Law::PlanFits,
        Does::Proposes(|_, View { thread, .. }| {
            proposes(Plan::from_splices(thread.messages().len() + 1, Vec::new()))
        }),
    ),
    (
        Law::StaysLegal,
        Does::Proposes(|_, View { thread, .. }| {
            let messages = thread.messages();
            let result =
                messages.iter().position(|message| message.tool_results().next().is_some());
            result.map_or_else(idle, |result| proposes(removes(thread, 0..result)))
        }),
    ),
    (
        Law::KeepsOpenCalls,
        Does::Proposes(|_, View { thread, .. }| {
            let messages = thread.messages();
            let last = messages.len() - 1;
            let is_open = messages[last].tool_uses().next().is_some();
            if is_open { proposes(removes(thread, last..last + 1)) } else { idle() }
        }),
    ),
    (
        Law::KeepsNewestText,
        Does::Proposes(|_, View { thread, .. }| {
            proposes(removes(thread, 0..thread.messages().len()))
        }),
    ),
    (
        Law::KeepsUnread,
        Does::Proposes(|_, View { thread, .. }| {
            let (last, from) = (thread.messages().len(), thread.past().len());
            let summary = |text| vec![Message::summary(Role::User, Summary::new(text)).into()];
            let old = Splice { at: 0..old_part(thread), insert: summary("Old.") };
            let splices = vec![old, Splice { at: last..last, insert: summary("Later.") }];
            if from < last { proposes(Plan::from_splices(last, splices)) } else { idle() }
        }),
    ),
    (
        Law::SummarySaysSomething,
        Does::Proposes(|_, View { thread, .. }| {
            proposes(replaces(thread, Message::summary(Role::User, Summary::new(" "))))
        }),
    ),
    (
        Law::MakesSmaller,
        Does::Proposes(|_, View { thread, .. }| {
            let message = Message::summary(Role::User, Summary::new("word ".repeat(40_000)));
            proposes(replaces(thread, message))
        }),
    ),
    (
        Law::MissIsReported,
        Does::Proposes(|_, View { thread, .. }| {
            let plan = Plan::summarise(thread.messages(), 0..old_part(thread), "Old.");
            let Ok(plan) = plan else { return idle() };
            // A ladder that counts its only rung as successful, whatever it left.
            let ladder = threadfold::strategy::Ladder::new([
                Arc::new(Summarize::default()) as Arc<dyn CompactionStrategy>
            ]);
            let empty = View::new(Snapshot::new(Vec::new()), Brief::default());
            let Err(StrategyError::NoRung { rungs }) = without_model(&ladder, &empty) else {
                return idle();
            };
            let mut proposal = Proposal::new(plan);
            let succeeded = |rung: &threadfold::log::Rung<StrategyError>| {
                let mut rung = rung.clone();
                rung.failure = None;
                rung
            };
            proposal.rungs = rungs.iter().map(succeeded).collect();
            Ok(proposal)
        }),
    ),
    (
        Law::TypesNothing,
        Does::Asks(|thread, turn| Ok(replaces(thread, Message::user(turn.text())))),
    ),
    (
        Law::MakesNoCalls,
        Does::Asks(|thread, turn| {
            let has_calls = turn.message.tool_uses().next().is_some();
            let nothing = || Message::summary(Role::User, Summary::new("Nothing."));
            let message = if has_calls { turn.message } else { nothing() };
            let insert = vec![Insert::from(message)];
            let splice = Splice { at: 0..old_part(thread), insert };
            Ok(Plan::from_splices(thread.messages().len(), vec![splice]))
        }),
    ),
    (
        Law::TakesWholeAnswers,
        Does::Asks(|thread, turn| {
            let text = Some(turn.text()).filter(|text| !text.trim().is_empty());
            let text = text.unwrap_or_else(|| "Nothing was said.".into());
            Ok(Plan::summarise(thread.messages(), 0..old_part(thread), text)?)
        }),
    ),
    (
        Law::AuditIsTrue,
        Does::Proposes(|_, View { thread, brief }| {
            let plan = Plan::summarise(thread.messages(), 0..old_part(thread), "Old.");
            let (Ok(plan), Some(policy)) = (plan, &brief.retention) else { return idle() };
            let mut proposal = Proposal::new(plan);
            let all: Retention = thread.facts(policy).audit(thread.messages());
            proposal.retention = Some(all);
            Ok(proposal)
        }),
    ),
];

#[test]
fn the_breach_of_a_strategy_names_the_law() {
    for (law, does) in WRONG {
        let wrong = Wrong { does, count: AtomicUsize::new(0) };
        let breach = conformance::strategy(&wrong).expect_err(&law.to_string());
        assert_eq!(breach.law, law, "{breach}");
        assert!(breach.to_string().starts_with(&law.to_string()), "{breach}");
        assert!(breach.input.contains("model "), "{breach}");
    }
}

#[test]
fn a_strategy_that_asks_a_model_without_need_breaks_a_law() {
    #[derive(Debug)]
    struct Eager;

    #[async_trait]
    impl CompactionStrategy for Eager {
        fn name(&self) -> &str {
            "eager"
        }

        async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Outcome {
            let request = Request::new(view.thread.messages().clone());
            let turn = ask.question(ModelRole::Fast, request).await?;
            Ok(Plan::summarise(view.thread.messages(), 0..1, summary_of(&turn)?)?.into())
        }
    }

    let breach = conformance::strategy(&Eager).unwrap_err();
    assert_eq!(breach.law, Law::IdleIsFree, "{breach}");
}
