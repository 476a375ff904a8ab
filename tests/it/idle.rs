//! What is decided about a provider's cache while the user is away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt,
    executor::block_on,
    future::{BoxFuture, pending, ready},
};
use proptest::{
    collection::vec,
    prelude::{Strategy, any},
    prop_assert, proptest,
    sample::select,
};
use threadfold::{
    Answer, Compactor, ContextWindow, Message, ModelAgent, Session, Usage,
    auto::{AutoCompactor, AutoPolicy, Idle, IdleStep, Input, Pressure, Threshold},
    compact::{CacheLife, Prices},
    compactor::RequestStep,
    drive::Models,
    log::Event,
    message::{CompactionReason, StopReason, Timestamp},
    model::Clock,
    session::SessionBuilder,
    strategy::{Brief, Digest},
    testing::{Scripted, ScriptedModel},
};

const KEEP_ALIVE_OUTPUT: u64 = 16;

fn any_prices() -> impl Strategy<Value = Prices> {
    let life = select(vec![CacheLife::FIVE_MINUTES, CacheLife::HOUR]);
    (life, 0.0..30.0, 0.0..1.2, 0.0..90.0, select(vec![0, 1_024, 4_096]), select(vec![1, 128]))
        .prop_map(|(life, input, cached, output, cache_min, cache_block)| {
            let cached = input * cached;
            let (cache_life_ms, cache_write) = (0, input);
            Prices { input, cached, cache_write, output, cache_life_ms, cache_min, cache_block }
                .with_life(life)
        })
}

fn any_idle() -> impl Strategy<Value = Idle<'static>> {
    (0..2_000_000u64, 0..2_000_000u64, 0..8_000u64).prop_map(|(prompt, after, summary)| Idle {
        prompt,
        after,
        summary,
        ..Idle::default()
    })
}

fn cold(prices: &Prices, tokens: u64) -> i64 {
    prices.bill(&prices.usage(tokens, 0, 0))
}

fn warm(prices: &Prices, tokens: u64, output: u64) -> i64 {
    prices.bill(&prices.usage(tokens, tokens, output))
}

/// What a return to a dead cache costs more than one to a warm cache.
fn dead(idle: &Idle<'_>, prices: &Prices) -> i64 {
    cold(prices, idle.prompt) - warm(prices, idle.prompt, 0)
}

/// What a compaction and the return after it cost more than a return to a warm cache.
fn compacted(idle: &Idle<'_>, prices: &Prices) -> i64 {
    let written = if idle.summary == 0 { 0 } else { warm(prices, idle.prompt, idle.summary) };
    written + cold(prices, idle.after) - warm(prices, idle.prompt, 0)
}

/// Decides at the last moment of each life, and returns what a pause of this many lives costs more
/// than a return to a warm cache.
fn cost(idle: Idle<'_>, prices: &Prices, lives: u32) -> i64 {
    let mut paid = 0;
    for kept_alive in 0..lives {
        let unused_ms = prices.cache_life_ms - 1;
        match (Idle { kept_alive, unused_ms, ..idle }).step(prices) {
            IdleStep::KeepAlive => paid += warm(prices, idle.prompt, KEEP_ALIVE_OUTPUT),
            IdleStep::Compact => return paid + compacted(&idle, prices),
            IdleStep::LetGo => return paid + dead(&idle, prices),
            step => panic!("{step:?} at the end of a life"),
        }
    }
    paid
}

/// The keep-alives before the cache is given up; at most 500.
fn keep_alives(idle: Idle<'_>, prices: &Prices) -> u32 {
    let unused_ms = prices.cache_life_ms - 1;
    let keeps = |&kept_alive: &u32| {
        (Idle { kept_alive, unused_ms, ..idle }).step(prices) == IdleStep::KeepAlive
    };
    (0..500).find(|kept_alive| !keeps(kept_alive)).unwrap_or(500)
}

proptest! {
    #[test]
    fn a_pause_costs_at_most_twice_the_best_decision_in_hindsight(
        idle in any_idle(), prices in any_prices(), lives in 0..80u32,
    ) {
        let rent = warm(&prices, idle.prompt, KEEP_ALIVE_OUTPUT);
        let least = if prices.cacheable(idle.prompt) == 0 || idle.after > idle.prompt / 8 * 7 {
            // Nothing is cached, or there is not enough to remove.
            dead(&idle, &prices)
        } else {
            dead(&idle, &prices).min(compacted(&idle, &prices))
        };
        let best = least.min(rent * i64::from(lives));
        let best = if lives == 0 { 0 } else { best };
        let paid = cost(idle, &prices, lives);
        // Giving up may cost less than a warm return; then it is the best decision, and taken.
        prop_assert!(paid <= (2 * best).max(best) + 1, "{paid} over {best}");
    }

    #[test]
    fn a_dearer_cold_prompt_is_kept_alive_longer_and_a_dearer_cache_shorter(
        idle in any_idle(), prices in any_prices(), more in 0.0..10.0,
    ) {
        let now = keep_alives(idle, &prices);
        let written = Prices { cache_write: prices.cache_write + more, ..prices };
        prop_assert!(keep_alives(idle, &written) >= now);
        let read = Prices { cached: prices.cached + more, ..prices };
        prop_assert!(keep_alives(idle, &read) <= now);
    }

    #[test]
    fn known_pauses_end_a_pause_where_they_would_have_been_cheapest_and_never_later(
        idle in any_idle(), prices in any_prices(), later_savings in 0..900_000i64,
        lives in vec(0..40u64, 4..12),
    ) {
        let due = prices.cache_life_ms - prices.cache_life_ms / 10;
        let pauses: Vec<u64> = lives.iter().map(|lives| lives * due + 1).collect();
        let idle = Idle { later_savings, ..idle };
        let (most, kept) = (keep_alives(idle, &prices), keep_alives(Idle { pauses: &pauses, ..idle }, &prices));
        prop_assert!(kept <= most, "{kept} of {most}");
        let needed = lives.iter().filter(|lives| **lives > 0);
        if needed.clone().count() < 4 || most == 0 || most == 500 {
            return Ok(());
        }
        let rent = warm(&prices, idle.prompt, KEEP_ALIVE_OUTPUT).max(1);
        let is_worth_it = idle.after <= idle.prompt / 8 * 7 && compacted(&idle, &prices) - later_savings < dead(&idle, &prices);
        let price = if is_worth_it { compacted(&idle, &prices) - later_savings } else { dead(&idle, &prices) };
        let bill = |stop: i64| -> i64 {
            let bills = needed.clone().map(|lives| *lives as i64);
            bills.map(|lives| if lives <= stop { lives * rent } else { stop * rent + price }).sum()
        };
        let best = (0..=i64::from(most)).map(bill).min().unwrap();
        // At the border of what is worth it, two ways to give up are as good as each other.
        let is_close = idle.after.abs_diff(idle.prompt / 8 * 7) < 9;
        prop_assert!(is_close || bill(i64::from(kept)) <= best, "{kept}: {} over {best}", bill(i64::from(kept)));
    }

    #[test]
    fn nothing_is_sent_before_the_last_tenth_of_a_life_or_after_it(
        idle in any_idle(), prices in any_prices(), unused_ms in any::<u64>(), kept_alive in 0..9u32,
    ) {
        let unused_ms = unused_ms % (2 * prices.cache_life_ms);
        let idle = Idle { unused_ms, kept_alive, ..idle };
        match idle.step(&prices) {
            IdleStep::Wait { ms } => {
                prop_assert!(ms > 0);
                let due = Idle { unused_ms: unused_ms + ms, ..idle }.step(&prices);
                prop_assert!(!matches!(due, IdleStep::Wait { .. }), "{due:?}");
            }
            IdleStep::KeepAlive | IdleStep::Compact => {
                let left = prices.cache_life_ms - unused_ms;
                prop_assert!(left > 0 && left <= prices.cache_life_ms / 10, "{left}");
            }
            IdleStep::LetGo => {}
            step => panic!("{step:?}"),
        }
    }
}

fn sonnet(life: CacheLife) -> Prices {
    let text =
        r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15, "cache_min": 1024}"#;
    serde_json::from_str::<Prices>(text).unwrap().with_life(life)
}

#[test]
fn a_prompt_that_no_cache_holds_is_let_go() {
    let idle = Idle { prompt: 1_023, ..Idle::default() };
    assert_eq!(idle.step(&sonnet(CacheLife::HOUR)), IdleStep::LetGo);
}

#[test]
fn a_compaction_that_removes_little_is_not_worth_it() {
    let prices = sonnet(CacheLife::FIVE_MINUTES);
    let idle = Idle { prompt: 100_000, after: 90_000, unused_ms: 299_999, ..Idle::default() };
    let late = Idle { kept_alive: 100, ..idle };
    assert_eq!(late.step(&prices), IdleStep::LetGo);
    assert_eq!(Idle { after: 20_000, ..late }.step(&prices), IdleStep::Compact);
}

#[test]
fn a_user_who_was_always_away_for_long_is_not_waited_for_any_more() {
    let disabled = AutoPolicy { enabled: false, ..policy() };
    let mut auto = AutoCompactor::new(disabled).unwrap();
    let window = Some(ContextWindow::new(100_000));
    let thread = Pressure { window, thread: 60_000, newest: 100, ..Pressure::default() };
    let steps: Vec<IdleStep> = (0..5)
        .map(|hour| {
            let now = Timestamp(hour * 7_200_000);
            auto.handle(now, Input::BeforeRequest(thread));
            auto.handle(now, Input::TurnEnded(thread));
            auto.idle(Timestamp(now.0 + 280_000), thread)
        })
        .collect();
    let (unknown, known) = (IdleStep::KeepAlive, IdleStep::LetGo);
    assert_eq!(steps, [unknown, unknown, unknown, unknown, known]);
}

#[test]
fn a_compaction_that_is_due_soon_anyway_is_not_delayed_by_keep_alives() {
    let prices = sonnet(CacheLife::FIVE_MINUTES);
    let idle = Idle { prompt: 100_000, after: 20_000, unused_ms: 280_000, ..Idle::default() };
    assert_eq!(idle.step(&prices), IdleStep::KeepAlive);
    assert_eq!(Idle { later_savings: 60_000, ..idle }.step(&prices), IdleStep::Compact);
}

/// A clock whose waits end at once, and advance it.
#[derive(Debug, Default)]
struct Skipping(AtomicU64);

impl Clock for Skipping {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Relaxed))
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.0.fetch_add(time.as_millis() as u64, Relaxed);
        ready(()).boxed()
    }
}

/// A clock that stands still, and whose waits end at once.
#[derive(Debug)]
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn sleep(&self, _time: Duration) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// A clock whose waits never end.
#[derive(Debug)]
struct Waiting;

impl Clock for Waiting {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn sleep(&self, _time: Duration) -> BoxFuture<'_, ()> {
        pending().boxed()
    }
}

const NIGHT: Duration = Duration::from_secs(8 * 3_600);

fn policy() -> AutoPolicy {
    let prices = Some(sonnet(CacheLife::FIVE_MINUTES));
    let target = Threshold::Tokens(10_000);
    AutoPolicy { prices, target, summary_tokens: 0, ..AutoPolicy::default() }
}

/// A model that gives a long answer, a short one, and then dots.
fn model() -> Arc<ScriptedModel> {
    let long = "The parser reads tokens from src/lexer.rs, line by line. ".repeat(800);
    let billed = |text: &str| {
        let usage = Usage { cache_read: 9_000, ..Usage::new(10_000, 1) };
        Answer::new(Message::assistant(text), StopReason::EndTurn, Some(usage))
    };
    let first = [Scripted::from(long.as_str()), Scripted::from("It is long.")];
    Arc::new(ScriptedModel::new(first.into_iter().chain((0..100).map(|_| billed(".").into()))))
}

fn builder(model: &Arc<ScriptedModel>, clock: impl Clock + 'static) -> SessionBuilder {
    let agent = ModelAgent::new(model.clone()).with_window(ContextWindow::new(100_000));
    let strategy = Arc::new(Digest::default());
    Session::builder(agent).strategy(strategy).policy(policy()).clock(Arc::new(clock))
}

fn asked(builder: SessionBuilder) -> Session {
    let mut session = builder.system("Be brief.").build().unwrap();
    for text in ["Explain the parser.", "How long is it?"] {
        block_on(async { session.send(text).await }).unwrap();
    }
    session
}

#[test]
fn the_last_prompt_is_sent_again_and_its_answer_does_not_enter_the_thread() {
    let model = model();
    let disabled = AutoPolicy { enabled: false, ..policy() };
    let mut session = asked(builder(&model, Skipping::default()).policy(disabled));
    let (messages, billed) = (session.messages().clone(), session.log().billed().thread);
    let idled = block_on(session.idle_for(Duration::from_secs(300))).unwrap();
    assert_eq!((idled.keep_alives, idled.usage.input), (1, 10_000));
    assert!(idled.compaction.is_none());
    let requests = model.requests();
    let [.., last, again] = requests.as_slice() else { panic!("{}", requests.len()) };
    assert_eq!((&again.messages, &again.system), (&last.messages, &last.system));
    assert_eq!(again.max_output, Some(16));
    assert_eq!(*session.messages(), messages);
    assert_eq!(session.log().billed().thread, billed + idled.usage);
    assert_eq!(session.log().replay(), messages.to_vec());
}

#[test]
fn a_night_ends_with_a_compaction_that_can_be_undone() {
    let model = model();
    let mut session = asked(builder(&model, Skipping::default()));
    let before = session.messages().clone();
    let idled = block_on(session.idle_for(NIGHT)).unwrap();
    let record = idled.compaction.unwrap();
    assert_eq!(record.reason, CompactionReason::Idle);
    assert!(record.report.after.tokens <= 10_000);
    // The cache is of the old thread, so nothing more is done.
    let again = block_on(session.idle_for(NIGHT)).unwrap();
    assert!(again.keep_alives == 0 && again.compaction.is_none());
    block_on(session.undo_compaction(record.id)).unwrap();
    assert_eq!(*session.messages(), before);
}

#[test]
fn a_user_who_returns_finds_the_thread_as_it_was() {
    let model = model();
    let mut session = asked(builder(&model, Waiting));
    let (before, events) = (session.messages().clone(), session.log().events().len());
    // The first poll waits, and the future is dropped.
    assert!(session.idle_for(NIGHT).now_or_never().is_none());
    assert_eq!((session.messages(), session.log().events().len()), (&before, events));
    let reply = block_on(async { session.send("I am back.").await }).unwrap();
    assert_eq!(reply.text, ".");
}

#[test]
fn without_prices_or_a_request_nothing_is_done() {
    let model = model();
    let unpriced = AutoPolicy { prices: None, ..policy() };
    let mut session = asked(builder(&model, Waiting).policy(unpriced));
    let idled = block_on(session.idle_for(NIGHT)).unwrap();
    assert!(idled.keep_alives == 0 && idled.compaction.is_none());
    let mut fresh = builder(&model, Waiting).build().unwrap();
    assert_eq!(block_on(fresh.idle_for(NIGHT)).unwrap().keep_alives, 0);
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_clock_that_stands_still_ends_the_pause_too() {
    let model = model();
    let mut session = asked(builder(&model, Standing));
    let idled = block_on(session.idle_for(NIGHT)).unwrap();
    assert_eq!((idled.keep_alives, model.requests().len()), (0, 2));
}

#[test]
fn a_disabled_trigger_keeps_alive_but_never_compacts() {
    let model = model();
    let disabled = AutoPolicy { enabled: false, ..policy() };
    let mut session = asked(builder(&model, Skipping::default()).policy(disabled));
    let idled = block_on(session.idle_for(NIGHT)).unwrap();
    assert!(idled.keep_alives > 1 && idled.compaction.is_none(), "{idled:?}");
    let kept = |event: &Event| matches!(event, Event::Spent { .. });
    let logged = session.log().events().iter().filter(|logged| kept(&logged.event)).count();
    assert_eq!(logged, idled.keep_alives as usize);
}

#[test]
fn a_keep_alive_that_fails_is_reported_and_changes_nothing() {
    let model = Arc::new(ScriptedModel::new(["The parser is long. ".repeat(800).as_str(), "Yes."]));
    let mut session = asked(builder(&model, Skipping::default()));
    let events = session.log().events().len();
    assert!(block_on(session.idle_for(NIGHT)).is_err(), "the script is over");
    assert_eq!(session.log().events().len(), events);
}

/// A compactor that sent a request with a long thread at time 0, and the thread with its answer.
fn sent(policy: AutoPolicy) -> (Compactor, Vec<Message>) {
    let long = "The parser reads tokens from src/lexer.rs, line by line. ".repeat(800);
    let compactor = Compactor::default().with_window(ContextWindow::new(100_000));
    let compactor = compactor.with_strategy(Arc::new(Digest::default()));
    let mut compactor = compactor.with_policy(policy).unwrap();
    let mut messages = vec![
        Message::user("Explain the parser."),
        Message::assistant(long),
        Message::user("How long is it?"),
    ];
    compactor.observe(&messages);
    assert!(matches!(compactor.before_request(Timestamp(0)), RequestStep::Send { .. }));
    messages.push(Message::assistant("It is long."));
    compactor.observe(&messages);
    (compactor, messages)
}

fn without_keep_alives() -> AutoPolicy {
    AutoPolicy { keep_alive: false, ..policy() }
}

const LATE: Timestamp = Timestamp(280_000);

fn idle_brief() -> Brief {
    Brief { reason: CompactionReason::Idle, now: LATE, ..Brief::default() }
}

#[test]
fn a_compactor_that_may_not_keep_alive_compacts_once_before_its_cache_dies() {
    let (mut compactor, mut messages) = sent(without_keep_alives());
    let steps = [0, 269_999, 280_000, 300_000].map(|now| compactor.idle(Timestamp(now)));
    let wait = |ms| IdleStep::Wait { ms };
    assert_eq!(steps, [wait(270_000), wait(1), IdleStep::Compact, IdleStep::LetGo]);
    let job = compactor.prepare_compaction(idle_brief(), Models::default()).unwrap();
    let done = block_on(compactor.adopt(&mut messages, block_on(job))).unwrap();
    assert_eq!(done.reason, CompactionReason::Idle);
    assert!(done.report.after.tokens <= 10_000 && messages.iter().any(Message::is_summary));
    // Until the next request the cache is of a thread that is gone.
    assert_eq!(compactor.idle(LATE), IdleStep::LetGo);
    assert!(matches!(compactor.before_request(LATE), RequestStep::Send { .. }));
    assert_eq!(compactor.idle(LATE), IdleStep::Wait { ms: 270_000 });
}

#[test]
fn a_compactor_keeps_alive_as_long_as_that_is_cheaper() {
    let (mut compactor, _) = sent(AutoPolicy { enabled: false, ..policy() });
    let mut now = Timestamp(0);
    let mut kept = 0;
    let last = loop {
        match compactor.idle(now) {
            IdleStep::Wait { ms } => now = Timestamp(now.0 + ms),
            IdleStep::KeepAlive => {
                compactor.kept_alive(now);
                kept += 1;
            }
            last => break last,
        }
    };
    assert!(last == IdleStep::LetGo && kept > 1, "{last:?} after {kept}");
    assert_eq!(now, Timestamp(270_000 * (kept + 1)));
}

#[test]
fn a_compactor_that_gains_nothing_or_knows_no_price_lets_go() {
    let dear = AutoPolicy { summary_tokens: 1_000_000, ..without_keep_alives() };
    let unpriced = AutoPolicy { prices: None, ..without_keep_alives() };
    let large = AutoPolicy { target: Threshold::Tokens(60_000), ..without_keep_alives() };
    for policy in [dear, unpriced, large] {
        assert_eq!(sent(policy).0.idle(LATE), IdleStep::LetGo, "{policy:?}");
    }
    assert_eq!(Compactor::default().idle(LATE), IdleStep::LetGo);
}

#[test]
fn what_was_prepared_for_a_thread_that_changed_is_dropped() {
    let (mut compactor, mut messages) = sent(without_keep_alives());
    let job = compactor.prepare_compaction(idle_brief(), Models::default()).unwrap();
    messages[0] = Message::user("Explain the lexer.");
    let changed = messages.clone();
    let error = block_on(compactor.adopt(&mut messages, block_on(job))).unwrap_err();
    assert!(error.to_string().contains("from message 0 on"), "{error}");
    assert_eq!(messages, changed);
    // A failure ends the pause, so that a host asks no more.
    assert_eq!(compactor.idle(LATE), IdleStep::LetGo);
}

#[test]
fn what_was_prepared_is_adopted_once_and_keeps_what_came_meanwhile() {
    let (mut compactor, mut messages) = sent(without_keep_alives());
    let job = || compactor.prepare_compaction(idle_brief(), Models::default()).unwrap();
    let (first, second) = (block_on(job()), block_on(job()));
    messages.push(Message::user("I am back."));
    block_on(compactor.adopt(&mut messages, first)).unwrap();
    assert_eq!(messages.last(), Some(&Message::user("I am back.")));
    let error = block_on(compactor.adopt(&mut messages, second)).unwrap_err();
    assert!(error.to_string().contains("is already used"), "{error}");
}
