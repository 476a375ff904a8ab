//! How far the proxy believes a refusal, and what it keeps of one.

use std::sync::{Arc, Mutex, atomic::Ordering};

use threadfold::{
    CompactionStrategy, ContextWindow, Message,
    strategy::{Ask, KeepRecent, Proposal, StrategyError, View},
};
use threadfold_testing::shared::Folder;

use super::{
    MESSAGES, ProxyOptions, Served,
    agent::Agent,
    count, options, run,
    upstream::{Seen, Upstream},
};

/// Compactions are due only far beyond the threads of these tests.
const LARGE: u64 = 100_000;

/// An agent after 40 turns, its proxy, and its provider with a large window. The proxy knows the
/// window, or nobody does.
struct Aged {
    agent: Agent,
    upstream: Upstream,
    folder: Folder,
    _proxy: Served,
}

impl Aged {
    async fn new(window: Option<u64>) -> Self {
        let (folder, upstream) = (Folder::new(), Upstream::start(LARGE).await);
        upstream.seen.reports.store(true, Ordering::Relaxed);
        let proxy = Served::in_folder(options(&upstream, window), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..40 {
            agent.turn(number).await.unwrap();
        }
        Self { agent, upstream, folder, _proxy: proxy }
    }

    fn seen(&self) -> &Seen {
        &self.upstream.seen
    }

    /// The next requests are refused with these words.
    fn lies(&self, times: usize, words: &'static str) {
        *self.seen().lie.lock().unwrap() = words;
        self.seen().lies.store(times, Ordering::Relaxed);
    }

    /// The size of the last body that the provider got.
    fn last(&self) -> usize {
        self.seen().sizes.lock().unwrap().last().copied().unwrap()
    }

    /// Goes on, and returns the size of the largest body that the provider got.
    async fn largest_of(&mut self, turns: std::ops::Range<usize>) -> usize {
        self.seen().sizes.lock().unwrap().clear();
        for number in turns {
            self.agent.turn(number).await.unwrap();
        }
        self.seen().sizes.lock().unwrap().iter().copied().max().unwrap()
    }

    fn windows(&self) -> i64 {
        self.rows("SELECT count(*) FROM proxy_windows")
    }

    fn rows(&self, select: &str) -> i64 {
        let rows = rusqlite::Connection::open(self.folder.join("threads.db")).unwrap();
        rows.query_row(select, [], |row| row.get(0)).unwrap()
    }
}

/// Keeps recent messages, and remembers the windows that it was told.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<Option<ContextWindow>>>);

#[threadfold::async_trait]
impl CompactionStrategy for Told {
    fn name(&self) -> &str {
        "told"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        self.0.lock().unwrap().push(view.thread.window());
        KeepRecent::default().propose(view, ask).await
    }
}

#[test]
fn a_strategy_gets_the_window_that_the_refusal_states() {
    run(async {
        for window in [None, Some(LARGE)] {
            let (folder, upstream) = (Folder::new(), Upstream::start(4_000).await);
            let told = Arc::new(Told::default());
            let strategy = Arc::clone(&told) as Arc<dyn CompactionStrategy>;
            let options = ProxyOptions { strategy, ..options(&upstream, window) };
            let proxy = Served::in_folder(options, &folder).await;
            let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
            for number in 0..25 {
                agent.turn(number).await.unwrap();
            }
            let windows = told.0.lock().unwrap().clone();
            let is_known = |window: &Option<ContextWindow>| {
                window.is_some_and(|window| window.tokens() <= 4_000)
            };
            assert!(!windows.is_empty() && windows.iter().all(is_known), "{windows:?}");
        }
    });
}

const VAGUE: &str = "prompt is too long";

#[test]
fn a_provider_that_refuses_everything_is_asked_three_times_and_nothing_is_kept() {
    run(async {
        let aged = Aged::new(Some(LARGE)).await;
        for _ in 0..3 {
            aged.seen().sizes.lock().unwrap().clear();
            aged.lies(usize::MAX, VAGUE);
            let error = aged.agent.ask().await.unwrap_err();
            assert!(error.contains("prompt is too long"), "{error}");
            let sizes = aged.seen().sizes.lock().unwrap().clone();
            assert!(sizes.len() <= 3, "{sizes:?}");
            assert!(sizes.iter().all(|size| *size > sizes[0] / 5), "{sizes:?}");
        }
        aged.lies(0, VAGUE);
        aged.agent.ask().await.unwrap();
        assert_eq!(aged.last(), aged.agent.body().len());
        assert_eq!(aged.rows("SELECT count(*) FROM proxy_views"), 0);
    });
}

#[test]
fn a_request_that_no_summary_makes_smaller_is_sent_once() {
    run(async {
        for window in [None, Some(LARGE)] {
            let (folder, upstream) = (Folder::new(), Upstream::start(LARGE).await);
            let proxy = Served::in_folder(options(&upstream, window), &folder).await;
            let mut agent = Agent::new(&proxy.url(), MESSAGES, false);
            let (said, now) = (Message::assistant("Hello."), Message::user("And now?"));
            agent.messages = vec![Message::user("Hi."), said, now];
            upstream.seen.lies.store(usize::MAX, Ordering::Relaxed);
            agent.ask().await.unwrap_err();
            assert_eq!(*upstream.seen.sizes.lock().unwrap(), [agent.body().len()]);
        }
    });
}

#[test]
fn after_one_passing_refusal_half_of_the_thread_is_sent_and_stays() {
    run(async {
        let mut aged = Aged::new(Some(LARGE)).await;
        aged.lies(1, VAGUE);
        aged.agent.turn(40).await.unwrap();
        let (last, whole) = (aged.last(), aged.agent.body().len());
        assert!(last > whole / 3 && last < whole, "{last} of {whole}");
        // The view serves the next request too, although the body is short for the window.
        aged.agent.turn(41).await.unwrap();
        let (last, whole) = (aged.last(), aged.agent.body().len());
        assert!(last < whole, "{last} of {whole}");
    });
}

#[test]
fn a_vague_refusal_in_a_window_that_nobody_knows_is_forgotten_after_some_answers() {
    run(async {
        // The last states a limit that the request did not exceed, so it is vague too.
        for words in [VAGUE, "prompt is too long: the maximum is 200000 tokens"] {
            let mut aged = Aged::new(None).await;
            let refused = aged.agent.body().len();
            aged.lies(1, words);
            aged.agent.turn(40).await.unwrap();
            assert!(aged.last() < refused * 3 / 4, "{} of {refused}", aged.last());
            let largest = aged.largest_of(41..75).await;
            assert!(largest > refused, "{largest} of {refused}");
            assert_eq!((count(&aged.seen().refused), aged.windows()), (1, 0));
        }
    });
}

#[test]
fn a_stated_limit_that_the_next_answer_contradicts_is_not_kept() {
    run(async {
        for window in [None, Some(LARGE)] {
            let mut aged = Aged::new(window).await;
            let refused = aged.agent.body().len();
            aged.lies(1, "prompt is too long: 90000 tokens > 100 maximum");
            aged.agent.turn(40).await.unwrap();
            assert_eq!(aged.windows(), 0);
            let largest = aged.largest_of(41..90).await;
            assert!(largest > refused, "{largest} of {refused}");
            assert_eq!(count(&aged.seen().refused), 1);
        }
    });
}

#[test]
fn a_window_that_was_configured_too_large_is_unlearnt_for_good() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(4_000).await);
        let mut agent = Agent::new("", MESSAGES, true);
        for number in 0..40 {
            // Another process each time, with nothing but the folder.
            let proxy = Served::in_folder(options(&upstream, Some(LARGE)), &folder).await;
            agent.moved_to(&proxy.url());
            agent.turn(number).await.unwrap();
        }
        let mut other = Agent::new("", MESSAGES, true);
        let proxy = Served::in_folder(options(&upstream, Some(LARGE)), &folder).await;
        other.moved_to(&proxy.url());
        for number in 100..140 {
            other.turn(number).await.unwrap();
        }
        let refused = count(&upstream.seen.refused);
        assert!((1..=3).contains(&refused), "{refused}");
    });
}
