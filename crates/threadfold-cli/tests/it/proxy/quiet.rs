//! What the proxy does while an agent is quiet, on a clock that the test moves.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use threadfold::{Message, auto::AutoPolicy, compact::Prices, message::Timestamp, model::Clock};
use threadfold_cli::proxy::{Proxy, ProxyOptions, Views, WhenQuiet, policy};
use threadfold_sqlite::SqliteStore;
use threadfold_testing::shared::Folder;
use tokio::sync::{Semaphore, watch};

use super::{
    MESSAGES, Served, agent::Agent, count, lanes::Gated, options, run, upstream::Upstream,
};

/// A third more than the thread of the agent.
const WINDOW: u64 = 6_700;

/// Shortly before a cache of five minutes dies.
const LATE: u64 = 280_000;

/// A clock that stands until it is moved.
#[derive(Clone, Debug)]
struct ByHand(Arc<watch::Sender<u64>>);

impl ByHand {
    fn advance(&self, ms: u64) {
        self.0.send_modify(|now| *now += ms);
    }
}

impl Clock for ByHand {
    fn now(&self) -> Timestamp {
        Timestamp(*self.0.borrow())
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        let until = self.now().0 + time.as_millis() as u64;
        let mut now = self.0.subscribe();
        async move {
            now.wait_for(|now| *now >= until).await.unwrap();
        }
        .boxed()
    }
}

/// A proxy, its provider, and an agent whose thread is below the threshold and that is quiet now.
struct Bench {
    folder: Folder,
    upstream: Upstream,
    _proxy: Served,
    clock: ByHand,
    agent: Agent,
}

impl Bench {
    async fn new(when_quiet: WhenQuiet, change: impl FnOnce(&mut ProxyOptions)) -> Self {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let prices: Prices = serde_json::from_str(
            r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15, "cache_min": 1024}"#,
        )
        .unwrap();
        let policy = AutoPolicy { prices: Some(prices), ..policy(0.8) };
        let mut options = ProxyOptions { policy, when_quiet, ..options(&upstream, Some(WINDOW)) };
        change(&mut options);
        let clock = ByHand(Arc::new(watch::Sender::new(1_000_000)));
        let store = Arc::new(SqliteStore::open(folder.join("threads.db")).unwrap());
        let views = Views::open(&folder.join("threads.db")).unwrap();
        let proxy = Proxy::new(options, store, views).unwrap();
        let proxy = Served::serve(proxy.with_clock(Arc::new(clock.clone()))).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..16 {
            agent.turn(number).await.unwrap();
        }
        assert_eq!(views_in(&folder), 0, "nothing is compacted while the agent works");
        Self { folder, upstream, _proxy: proxy, clock, agent }
    }

    /// Whether the last request was sent as the agent made it. Its thread has had an answer since.
    fn was_sent_whole(&self) -> bool {
        let (_, _, sent) = self.upstream.seen.last.lock().unwrap().clone();
        let before_answer = self.agent.messages.len() - 1;
        let mut agent = Agent::new("", MESSAGES, true);
        agent.messages = self.agent.messages[..before_answer].to_vec();
        agent.body().as_bytes() == sent
    }
}

fn views_in(folder: &Path) -> i64 {
    let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
    rows.query_row("SELECT count(*) FROM proxy_views", [], |row| row.get(0)).unwrap()
}

/// Waits for what happens beside the requests.
async fn eventually(happened: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if happened() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not happen");
}

#[test]
fn a_quiet_thread_is_compacted_once_before_its_cache_dies_and_then_sent_smaller() {
    run(async {
        let mut bench = Bench::new(WhenQuiet::Compact, |_| {}).await;
        bench.clock.advance(LATE);
        eventually(|| views_in(&bench.folder) == 1).await;
        assert_eq!(count(&bench.upstream.seen.answered), 32, "no request was sent");
        // It stays quiet for a night.
        bench.clock.advance(100 * LATE);
        bench.agent.turn(16).await.unwrap();
        assert_eq!(views_in(&bench.folder), 1);
        assert!(!bench.was_sent_whole());
        let (whole, sent) =
            (bench.agent.body().len(), bench.upstream.seen.last.lock().unwrap().2.len());
        assert!(sent < whole * 3 / 4, "{sent} of {whole}");
        assert_eq!(*bench.upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_quiet_thread_is_left_alone_if_nothing_pays_or_nobody_asked_for_it() {
    run(async {
        let cheap = |options: &mut ProxyOptions| {
            let prices = options.policy.prices.unwrap();
            let (input, cache_write) = (prices.cached, prices.cached);
            options.policy.prices = Some(Prices { input, cache_write, ..prices });
        };
        let unpriced = |options: &mut ProxyOptions| options.policy.prices = None;
        let benches = [
            Bench::new(WhenQuiet::Compact, cheap).await,
            Bench::new(WhenQuiet::KeepAlive, unpriced).await,
            Bench::new(WhenQuiet::Nothing, |_| {}).await,
        ];
        for mut bench in benches {
            bench.clock.advance(LATE);
            bench.agent.turn(16).await.unwrap();
            bench.clock.advance(LATE);
            bench.agent.turn(17).await.unwrap();
            assert!(bench.was_sent_whole());
            assert_eq!((views_in(&bench.folder), count(&bench.upstream.seen.answered)), (0, 36));
        }
    });
}

#[test]
fn a_shadow_sends_nothing_for_a_quiet_thread() {
    run(async {
        let shadow = |options: &mut ProxyOptions| {
            (options.policy.enabled, options.shadow) = (false, true);
        };
        let bench = Bench::new(WhenQuiet::KeepAlive, shadow).await;
        bench.clock.advance(LATE);
        // What is sent wrongly would be sent in this time.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(count(&bench.upstream.seen.answered), 32);
    });
}

#[test]
fn a_request_during_the_preparation_goes_through_and_drops_what_was_prepared() {
    run(async {
        let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let gated = Gated { gate: Arc::clone(&gate), waiting: Arc::clone(&waiting) };
        let gated = |options: &mut ProxyOptions| options.strategy = Arc::new(gated);
        let mut bench = Bench::new(WhenQuiet::Compact, gated).await;
        bench.clock.advance(LATE);
        waiting.acquire().await.unwrap().forget();
        // The strategy works on the compaction now, and the agent is back.
        bench.agent.turn(16).await.unwrap();
        assert!(bench.was_sent_whole());
        gate.add_permits(9);
        for number in 17..20 {
            bench.agent.turn(number).await.unwrap();
            assert!(bench.was_sent_whole());
        }
        assert_eq!(views_in(&bench.folder), 0);
        // The next pause is another one.
        bench.clock.advance(LATE);
        eventually(|| views_in(&bench.folder) == 1).await;
    });
}

#[test]
fn a_request_drops_what_is_prepared_even_if_the_provider_refuses_it() {
    run(async {
        let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let gated = Gated { gate: Arc::clone(&gate), waiting: Arc::clone(&waiting) };
        let gated = |options: &mut ProxyOptions| options.strategy = Arc::new(gated);
        let mut bench = Bench::new(WhenQuiet::Compact, gated).await;
        bench.clock.advance(LATE);
        waiting.acquire().await.unwrap().forget();
        // After a refusal nothing is watched, so only the arrival of the request can end the work.
        let seen = &bench.upstream.seen;
        *seen.lie.lock().unwrap() = "This account has no credit.";
        seen.lies.store(1, Ordering::Relaxed);
        let refused = bench.agent.turn(16).await.unwrap_err();
        assert!(refused.contains("no credit"), "{refused}");
        gate.add_permits(9);
        // What goes on wrongly would end in this time.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(views_in(&bench.folder), 0);
        bench.agent.turn(17).await.unwrap();
        assert!(bench.was_sent_whole());
    });
}

#[test]
fn what_was_compacted_is_not_used_for_a_thread_that_changed() {
    run(async {
        let mut bench = Bench::new(WhenQuiet::Compact, |_| {}).await;
        bench.clock.advance(LATE);
        eventually(|| views_in(&bench.folder) == 1).await;
        bench.agent.messages[1] = Message::assistant("An edited answer.");
        bench.agent.messages.remove(2);
        bench.agent.turn(16).await.unwrap();
        assert!(bench.was_sent_whole());
    });
}

#[test]
fn a_last_request_is_sent_again_only_if_that_was_switched_on() {
    run(async {
        // Without a target there is nothing to compact, so only keep-alives can pay.
        let large = |options: &mut ProxyOptions| options.policy.enabled = false;
        let bench = Bench::new(WhenQuiet::KeepAlive, large).await;
        bench.clock.advance(LATE);
        eventually(|| count(&bench.upstream.seen.answered) == 33).await;
        let (path, headers, body) = bench.upstream.seen.last.lock().unwrap().clone();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((path.as_str(), &body["max_tokens"]), ("/v1/messages", &16.into()));
        assert!(headers.contains("sk-secret"), "with the key of the agent");
        let messages = body["messages"].as_array().unwrap().len();
        assert_eq!(messages, bench.agent.messages.len() - 1, "the thread without its answer");
        // Again and again, but not for ever.
        for _ in 0..40 {
            bench.clock.advance(LATE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let sent = count(&bench.upstream.seen.answered) - 32;
        assert!((2..20).contains(&sent), "{sent}");
        assert_eq!(views_in(&bench.folder), 0);
    });
}

#[test]
fn a_keep_alive_that_is_refused_within_its_stream_is_the_last_one() {
    run(async {
        let large = |options: &mut ProxyOptions| options.policy.enabled = false;
        let bench = Bench::new(WhenQuiet::KeepAlive, large).await;
        // The thread is too long now.
        bench.upstream.seen.bytes_per_token.store(1, Ordering::Relaxed);
        bench.upstream.seen.refuses_in_streams.store(true, Ordering::Relaxed);
        bench.clock.advance(LATE);
        eventually(|| count(&bench.upstream.seen.refused) == 1).await;
        for _ in 0..10 {
            bench.clock.advance(LATE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(count(&bench.upstream.seen.refused), 1);
    });
}
