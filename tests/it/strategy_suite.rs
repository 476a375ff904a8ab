//! Runs the conformance suite for strategies on every registered strategy, and on strategies that
//! each break one law.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use threadfold::{
    CompactionStrategy, Message, Plan, Request, Role, StrategyRegistry, Turn,
    compact::{Insert, Splice},
    message::{ModelError, Summary},
    retention::Retention,
    strategy::{
        Attempt, Brief, ModelRole, Proposal, Snapshot, Step, StrategyError, Summarize, attempt,
    },
};
use threadfold_testing::conformance::{self, Law};

#[test]
fn every_registered_strategy_conforms() {
    let registry = StrategyRegistry::default();
    let names: Vec<String> = registry.names().map(str::to_owned).collect();
    assert_eq!(names.len(), 9, "{names:?}");
    for name in names {
        let config: serde_json::Value = serde_json::from_value(name.clone().into()).unwrap();
        let strategy = registry.build(&config).unwrap();
        conformance::strategy(strategy.as_ref())
            .unwrap_or_else(|breach| panic!("{name}: {breach}"));
    }
}

/// The behaviour of a wrong strategy.
type Begin = fn(&Wrong, &Snapshot, &Brief) -> Box<dyn Attempt>;

/// A strategy that breaks one law.
#[derive(Debug)]
struct Wrong {
    begin: Begin,
    count: Arc<AtomicUsize>,
}

impl CompactionStrategy for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        if thread.messages().len() < 2 {
            return idle();
        }
        (self.begin)(self, thread, brief)
    }
}

fn idle() -> Box<dyn Attempt> {
    attempt::propose(Err(StrategyError::NothingToCompact { reason: "short".into() }))
}

fn proposes(plan: Plan) -> Box<dyn Attempt> {
    attempt::propose::<StrategyError>(Ok(plan))
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

fn asks(
    thread: &Snapshot,
    plan: fn(&Snapshot, Turn) -> Result<Plan, StrategyError>,
) -> Box<dyn Attempt> {
    let thread = thread.clone();
    let request = Request::new(thread.messages().clone());
    attempt::ask(ModelRole::Fast, request, move |turn| plan(&thread, turn))
}

/// An attempt whose steps and answers are functions.
#[derive(Debug)]
struct Odd {
    requests: [Request; 2],
    steps: AtomicUsize,
    proposal: Option<Proposal>,
    on_answer: fn(&mut Odd),
    changes: bool,
}

impl Odd {
    fn boxed(
        proposal: Option<Proposal>,
        changes: bool,
        on_answer: fn(&mut Odd),
    ) -> Box<dyn Attempt> {
        let requests = ["One?", "Two?"].map(|text| Request::new(vec![Message::user(text)]));
        Box::new(Self { requests, steps: AtomicUsize::new(0), proposal, on_answer, changes })
    }
}

impl Attempt for Odd {
    fn step(&self) -> Step<'_> {
        let steps = self.steps.fetch_add(1, Ordering::Relaxed);
        match &self.proposal {
            Some(proposal) => Step::Proposed(proposal),
            None => Step::Call {
                model: ModelRole::Fast,
                request: &self.requests[if self.changes { steps % 2 } else { 0 }],
                done: 0,
                total: 1,
                after: std::time::Duration::ZERO,
            },
        }
    }

    fn handle(&mut self, _: Result<Turn, ModelError>) {
        (self.on_answer)(self);
    }
}

/// For each law that a strategy can break, one that breaks it.
const WRONG: [(Law, Begin); 17] = [
    (Law::AttemptEnds, |_, _, _| Odd::boxed(None, false, |_| {})),
    (Law::NeverPanics, |_, _, _| panic!("at the first sight")),
    (Law::StepRepeats, |_, _, _| Odd::boxed(None, true, |_| {})),
    (Law::ProposesOnce, |_, thread, _| {
        let plan = Plan::summarise(thread.messages(), 0..old_part(thread), "Old.");
        Odd::boxed(plan.ok().map(Proposal::new), false, |odd| odd.proposal = None)
    }),
    (Law::SameAnswersSamePlan, |wrong, thread, _| {
        let number = wrong.count.fetch_add(1, Ordering::Relaxed);
        let text = format!("This was number {number}.");
        attempt::propose(Plan::summarise(thread.messages(), 0..old_part(thread), text))
    }),
    (Law::PlanFits, |_, thread, _| {
        proposes(Plan::from_splices(thread.messages().len() + 1, Vec::new()))
    }),
    (Law::StaysLegal, |_, thread, _| {
        let messages = thread.messages();
        let result = messages.iter().position(|message| message.tool_results().next().is_some());
        result.map_or_else(idle, |result| proposes(removes(thread, 0..result)))
    }),
    (Law::KeepsOpenCalls, |_, thread, _| {
        let messages = thread.messages();
        let last = messages.len() - 1;
        let is_open = messages[last].tool_uses().next().is_some();
        if is_open { proposes(removes(thread, last..last + 1)) } else { idle() }
    }),
    (Law::KeepsNewestText, |_, thread, _| proposes(removes(thread, 0..thread.messages().len()))),
    (Law::KeepsUnread, |_, thread, _| {
        let (last, from) = (thread.messages().len(), thread.past().len());
        let summary = |text| vec![Message::summary(Role::User, Summary::new(text)).into()];
        let old = Splice { at: 0..old_part(thread), insert: summary("Old.") };
        let splices = vec![old, Splice { at: last..last, insert: summary("Later.") }];
        if from < last { proposes(Plan::from_splices(last, splices)) } else { idle() }
    }),
    (Law::SummarySaysSomething, |_, thread, _| {
        proposes(replaces(thread, Message::summary(Role::User, Summary::new(" "))))
    }),
    (Law::MakesSmaller, |_, thread, _| {
        let message = Message::summary(Role::User, Summary::new("word ".repeat(40_000)));
        proposes(replaces(thread, message))
    }),
    (Law::MissIsReported, |_, thread, _| {
        let plan = Plan::summarise(thread.messages(), 0..old_part(thread), "Old.");
        let Ok(plan) = plan else { return idle() };
        // A ladder that counts its only rung as successful, whatever it left.
        let ladder = threadfold::strategy::Ladder::new([
            Arc::new(Summarize::default()) as Arc<dyn CompactionStrategy>
        ]);
        let attempt = ladder.begin(&Snapshot::new(Vec::new()), &Brief::default());
        let Step::Failed(StrategyError::NoRung { rungs }) = attempt.step() else { return idle() };
        let mut proposal = Proposal::new(plan);
        let succeeded = |rung: &threadfold::log::Rung<StrategyError>| {
            let mut rung = rung.clone();
            rung.failure = None;
            rung
        };
        proposal.rungs = rungs.iter().map(succeeded).collect();
        Odd::boxed(Some(proposal), false, |_| {})
    }),
    (Law::TypesNothing, |_, thread, _| {
        asks(thread, |thread, turn| Ok(replaces(thread, Message::user(turn.text()))))
    }),
    (Law::MakesNoCalls, |_, thread, _| {
        asks(thread, |thread, turn| {
            let has_calls = turn.message.tool_uses().next().is_some();
            let nothing = || Message::summary(Role::User, Summary::new("Nothing."));
            let message = if has_calls { turn.message } else { nothing() };
            let insert = vec![Insert::from(message)];
            let splice = Splice { at: 0..old_part(thread), insert };
            Ok(Plan::from_splices(thread.messages().len(), vec![splice]))
        })
    }),
    (Law::TakesWholeAnswers, |_, thread, _| {
        asks(thread, |thread, turn| {
            let text = Some(turn.text()).filter(|text| !text.trim().is_empty());
            let text = text.unwrap_or_else(|| "Nothing was said.".into());
            Ok(Plan::summarise(thread.messages(), 0..old_part(thread), text)?)
        })
    }),
    (Law::AuditIsTrue, |_, thread, brief| {
        let plan = Plan::summarise(thread.messages(), 0..old_part(thread), "Old.");
        let (Ok(plan), Some(policy)) = (plan, &brief.retention) else { return idle() };
        let mut proposal = Proposal::new(plan);
        let all: Retention = thread.facts(policy).audit(thread.messages());
        proposal.retention = Some(all);
        Odd::boxed(Some(proposal), false, |_| {})
    }),
];

#[test]
fn the_breach_of_a_strategy_names_the_law() {
    for (law, begin) in WRONG {
        let wrong = Wrong { begin, count: Arc::default() };
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

    impl CompactionStrategy for Eager {
        fn name(&self) -> &str {
            "eager"
        }

        fn begin(&self, thread: &Snapshot, _: &Brief) -> Box<dyn Attempt> {
            asks(thread, |thread, turn| {
                Ok(Plan::summarise(thread.messages(), 0..1, attempt::summary_of(&turn)?)?)
            })
        }
    }

    let breach = conformance::strategy(&Eager).unwrap_err();
    assert_eq!(breach.law, Law::IdleIsFree, "{breach}");
}
