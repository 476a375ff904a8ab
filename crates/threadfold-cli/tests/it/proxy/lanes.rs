//! A compaction keeps no other request waiting.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
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
