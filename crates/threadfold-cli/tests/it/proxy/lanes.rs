//! A compaction keeps no other request waiting.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;

use threadfold::{
    CompactionStrategy, Message, Role,
    message::{ToolResult, ToolUse},
    strategy::{Ask, KeepRecent, Ladder, Proposal, StrategyError, View},
};
use threadfold_testing::shared::Folder;

use super::{MESSAGES, Served, WINDOW, agent::Agent, count, options, run, upstream::Upstream};

/// More than the proxy compacts at once, and more than it reads at once.
const THREADS: usize = 40;

/// Compacts only when the gate is open.
#[derive(Debug)]
pub(super) struct Gated {
    pub(super) gate: Arc<Semaphore>,
    pub(super) waiting: Arc<Semaphore>,
}

#[threadfold::async_trait]
impl CompactionStrategy for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        self.waiting.add_permits(1);
        let _opened = self.gate.acquire().await;
        KeepRecent::default().propose(view, ask).await
    }
}

#[test]
fn requests_are_answered_while_compactions_of_other_threads_wait() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let (gate, waiting) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(0)));
        let gated = Gated { gate: Arc::clone(&gate), waiting: Arc::clone(&waiting) };
        let options =
            super::ProxyOptions { strategy: Arc::new(gated), ..options(&upstream, Some(WINDOW)) };
        let proxy = Served::in_folder(options, &folder).await;
        // A thread that has its view already, and threads that are about to need one.
        let mut compacted = Agent::new(&proxy.url(), MESSAGES, true);
        let mut number = 0;
        while waiting.available_permits() == 0 {
            compacted.turn(number).await.unwrap();
            number += 1;
        }
        let closed = gate.acquire().await.unwrap();
        let due: Vec<Agent> = (0..THREADS)
            .map(|thread| {
                let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
                agent.messages = compacted.messages.clone();
                agent.messages[0] = threadfold::Message::user(format!("Thread {thread}."));
                agent
            })
            .collect();
        let before = count(&upstream.seen.answered);
        let mut asked = tokio::task::JoinSet::new();
        for mut agent in due {
            asked.spawn(async move { agent.turn(number).await });
        }
        // One of them holds its lane now, and the others wait for it.
        let _ = waiting.acquire_many(2).await.unwrap();
        compacted.turn(number).await.unwrap();
        let mut short = Agent::new(&proxy.url(), MESSAGES, true);
        short.turn(0).await.unwrap();
        assert_eq!(count(&upstream.seen.answered), before + 4, "only these two were answered");
        drop(closed);
        for done in asked.join_all().await {
            done.unwrap();
        }
        assert_eq!(upstream.seen.refused.load(Ordering::Relaxed), 0);
    });
}

/// Holds the thread "A" back until the gate is open.
#[derive(Debug)]
struct HoldsOne(Gated);

#[threadfold::async_trait]
impl CompactionStrategy for HoldsOne {
    fn name(&self) -> &str {
        "holds one"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        match view.thread.messages().first() {
            Some(first) if format!("{first:?}").contains("Thread A.") => {
                self.0.propose(view, ask).await
            }
            _ => KeepRecent::default().propose(view, ask).await,
        }
    }
}

#[test]
fn equal_requests_that_wait_for_each_other_leave_the_places_to_other_threads() {
    // Due when they arrive, refused after they were sent unread, and refused after they were read.
    for (window, reads) in [(Some(WINDOW), true), (None, false), (None, true)] {
        run(async {
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            let (gate, waiting) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(0)));
            let gated = Gated { gate: Arc::clone(&gate), waiting: Arc::clone(&waiting) };
            let strategy = Arc::new(HoldsOne(gated));
            let options = super::ProxyOptions { strategy, ..options(&upstream, window) };
            let proxy = Served::in_folder(options, &folder).await;
            let agent = |name: &str| {
                let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
                agent.messages.push(Message::user(format!("Thread {name}.")));
                for part in 0..30 {
                    let text = format!("Part {part} is done. {}", "It was read. ".repeat(40));
                    agent.messages.push(Message::assistant(text));
                    agent.messages.push(Message::user("Go on."));
                }
                agent
            };
            if reads {
                // Once there is a view, bodies are read before they are sent. The window of this model
                // stays unknown.
                let (agent, url) = (agent("C"), format!("{}/v1/messages", proxy.url()));
                let body = agent.body().replacen("unheard-of", "other", 1);
                assert_eq!(agent.post(&url).body(body).send().await.unwrap().status(), 200);
            }
            let closed = gate.acquire().await.unwrap();
            let refused = count(&upstream.seen.refused);
            let mut asked = tokio::task::JoinSet::new();
            for _ in 0..THREADS {
                let agent = agent("A");
                asked.spawn(async move { agent.ask().await.map(drop) });
            }
            let _ = waiting.acquire().await.unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
            let refused = count(&upstream.seen.refused) - refused;
            assert_eq!(refused, if window.is_none() { THREADS } else { 0 });
            let other = agent("B");
            let answered = tokio::time::timeout(Duration::from_secs(10), other.ask()).await;
            drop(closed);
            assert_eq!(asked.join_all().await, vec![Ok(()); THREADS]);
            answered.unwrap_or_else(|_| panic!("{window:?}, {reads}: it waited")).unwrap();
        });
    }
}

/// Counts how often it is asked.
#[derive(Debug, Default)]
struct Counted(AtomicUsize);

#[threadfold::async_trait]
impl CompactionStrategy for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ladder::default().propose(view, ask).await
    }
}

/// Sends the same request from so many agents at once. All are answered. Returns the number of
/// compactions, and of different bodies that the provider got. The newest result does not fit whole, so
/// one compaction is not enough.
async fn at_once(agents: usize, window: Option<u64>) -> (usize, usize) {
    let (folder, upstream) = (Folder::new(), Upstream::start(20_000).await);
    let counted = Arc::new(Counted::default());
    let strategy = Arc::clone(&counted) as Arc<dyn CompactionStrategy>;
    let options = super::ProxyOptions { strategy, ..options(&upstream, window) };
    let proxy = Served::in_folder(options, &folder).await;
    let mut messages = vec![Message::user("Read all parts.")];
    for part in 0..12 {
        let call = ToolUse::new(format!("t{part}"), "read", serde_json::json!({"part": part}));
        let lines =
            (0..2_800).map(|line| format!("Line {line} of part {part} has {}.\n", line * 7));
        let result = ToolResult::text(format!("t{part}"), lines.collect::<String>());
        messages.push(Message::new(Role::Assistant, vec![call.into()]));
        messages.push(Message::new(Role::User, vec![result.into()]));
    }
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..agents {
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        agent.messages = messages.clone();
        asked.spawn(async move { agent.ask().await.map(drop) });
    }
    assert_eq!(asked.join_all().await, vec![Ok(()); agents]);
    let sizes: HashSet<usize> = upstream.seen.sizes.lock().unwrap().iter().copied().collect();
    (count(&counted.0), sizes.len())
}

#[test]
fn equal_requests_at_once_are_compacted_once() {
    run(async {
        let alone = at_once(1, Some(20_000)).await;
        assert_eq!(alone.1, 1);
        assert_eq!(at_once(16, Some(20_000)).await, alone);
    });
}

#[test]
fn equal_requests_that_are_refused_at_once_are_all_answered() {
    run(async {
        let _ = at_once(16, None).await;
    });
}
